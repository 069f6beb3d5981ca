package state

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/request"
)

// Rule determines how a field is compared.
type Rule string

// These are the rules, from the mildest to the strictest. Learning replaces a rule only
// with a stricter one.
const (
	// Set sorts a list, so that it is compared as a multiset.
	Set Rule = "set"
	// Random compares only which places hold the same string, not the string itself.
	Random Rule = "random"
	// Keys compares the values of a map as a multiset, and ignores the keys.
	Keys Rule = "keys"
	// Type compares only the JSON type of a field, and whether the field exists.
	Type Rule = "type"
	// Ignore drops a field.
	Ignore Rule = "ignore"
)

// strictness ranks the rules.
var strictness = map[Rule]int{"": 0, Set: 1, Random: 2, Keys: 2, Type: 3, Ignore: 4}

// ofAll holds the rules for every kind. The server maintains these fields, or the
// canonical name of the object already contains them. Parts of paths are separated by
// dots; [] stands for an element of a list.
var ofAll = map[string]Rule{
	"apiVersion":                          Ignore,
	"kind":                                Ignore,
	"metadata.name":                       Ignore,
	"metadata.namespace":                  Ignore,
	"metadata.uid":                        Ignore,
	"metadata.resourceVersion":            Ignore,
	"metadata.generation":                 Ignore,
	"metadata.creationTimestamp":          Ignore,
	"metadata.managedFields":              Ignore,
	"metadata.selfLink":                   Ignore,
	"metadata.deletionGracePeriodSeconds": Ignore,
	"metadata.finalizers":                 Set,
	"metadata.ownerReferences":            Set,
	// The number of rollouts of a Deployment depends on how it reached its state.
	"metadata.annotations.deployment.kubernetes.io/revision":         Ignore,
	"metadata.annotations.deployment.kubernetes.io/revision-history": Ignore,
}

// ofWorkload holds the rules for the kinds whose status Kubernetes' own controllers write.
// Messages of Kubernetes' own controllers depend not only on the state of an object, but
// also on how the object reached it.
var ofWorkload = map[string]Rule{
	"status.conditions.[].reason":  Ignore,
	"status.conditions.[].message": Ignore,
	"status.collisionCount":        Ignore,
	"status.terminatingReplicas":   Ignore,
	"status.currentRevision":       Ignore,
	"status.updateRevision":        Ignore,
}

// ofWebhooks holds the rules for webhooks, which use a different address and certificate
// in each lab.
var ofWebhooks = map[string]Rule{
	"webhooks.[].clientConfig.caBundle": Type,
	"webhooks.[].clientConfig.url":      Type,
}

// ofKind holds the rules for individual kinds of Kubernetes itself.
var ofKind = map[string]map[string]Rule{
	"Deployment.apps":  ofWorkload,
	"ReplicaSet.apps":  ofWorkload,
	"StatefulSet.apps": ofWorkload,
	"DaemonSet.apps":   ofWorkload,
	"Job.batch": {
		"status.uncountedTerminatedPods": Ignore,
	},
	"Pod": {
		"spec.volumes":                                Set,
		"spec.nodeName":                               Ignore,
		"status.podIP":                                Type,
		"status.podIPs":                               Type,
		"status.hostIP":                               Type,
		"status.hostIPs":                              Type,
		"status.conditions.[].reason":                 Ignore,
		"status.conditions.[].message":                Ignore,
		"status.containerStatuses.[].containerID":     Ignore,
		"status.containerStatuses.[].imageID":         Ignore,
		"status.containerStatuses.[].restartCount":    Ignore,
		"status.containerStatuses.[].lastState":       Ignore,
		"status.initContainerStatuses.[].state":       Ignore,
		"status.initContainerStatuses.[].lastState":   Ignore,
		"status.initContainerStatuses.[].imageID":     Ignore,
		"status.initContainerStatuses.[].containerID": Ignore,
	},
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io": ofWebhooks,
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":   ofWebhooks,
	"CustomResourceDefinition.apiextensions.k8s.io": {
		"spec.conversion.webhook.clientConfig.caBundle": Type,
		"spec.conversion.webhook.clientConfig.url":      Type,
	},
	"Lease.coordination.k8s.io": {
		"spec.renewTime":        Ignore,
		"spec.acquireTime":      Ignore,
		"spec.leaseTransitions": Ignore,
	},
	"PersistentVolumeClaim": {
		"spec.volumeName": Type,
		"metadata.annotations.volume.kubernetes.io/selected-node": Ignore,
		"status.conditions": Ignore, // such as Unused, which follows from the Pods
	},
	"Service": {
		"spec.clusterIP":           Type,
		"spec.clusterIPs":          Type,
		"spec.ports":               Set, // the API merges them by port and protocol
		"spec.ports.[].nodePort":   Type,
		"spec.healthCheckNodePort": Type,
	},
}

// maintained lists kinds whose objects the cluster itself maintains, in addition to the
// kinds that package request identifies. They are never compared.
var maintained = map[string]bool{
	"ControllerRevision.apps":                                 true,
	"CSINode.storage.k8s.io":                                  true,
	"IPAddress.networking.k8s.io":                             true,
	"ServiceCIDR.networking.k8s.io":                           true,
	"APIService.apiregistration.k8s.io":                       true,
	"FlowSchema.flowcontrol.apiserver.k8s.io":                 true,
	"PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": true,
}

// ownKind reports whether the cluster itself maintains all objects of a kind. For
// ConfigMaps, it returns false, because the cluster maintains only some of them.
func ownKind(kind schema.GroupKind) bool {
	return request.IsBookkeepingObject(kind, nil) || request.IsDerived(kind) || maintained[kind.String()]
}

// isBookkeeping reports whether the cluster itself maintains an object.
func isBookkeeping(ref Ref, object Object) bool {
	kind := ref.String()
	switch {
	case ownKind(ref.GroupKind), request.IsBookkeepingObject(ref.GroupKind, object):
		return true
	case kind == "ConfigMap" && (ref.Name == "kube-root-ca.crt" || ref.Namespace == "kube-system" &&
		(ref.Name == "extension-apiserver-authentication" || strings.HasPrefix(ref.Name, "kube-apiserver-"))):
		return true
	case kind == "Namespace" && strings.HasPrefix(ref.Name, "kube-"):
		return true
	case kind == "ReplicaSet.apps" && object.MadeUpstream():
		// The number of old ReplicaSets that a Deployment keeps depends on how the Deployment
		// reached its state.
		spec, _ := object["spec"].(map[string]any)
		return number(spec["replicas"]) == 0
	}
	return false
}

// hashes lists labels whose values are hashes of templates.
var hashes = map[string]bool{
	"pod-template-hash":        true,
	"controller-revision-hash": true,
}

var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)`)
	uuidPattern = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
	// The service account volume of a Pod has a random name.
	tokenVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}\b`)
)

func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case int32:
		return float64(n)
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}
