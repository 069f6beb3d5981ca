package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// These are the reasons why other clients leave an object alone.
const (
	losesData = "deleting it also deletes what users keep in it, so no controller is expected to make it again"
	setUpOnce = "it is part of the installation, and a controller is not expected to watch over it"
	history   = "it is a record of the past, and not even Kubernetes' own controllers make it again"
	finished  = "it has finished, and a controller is not expected to repeat it"
)

// spared lists the kinds whose objects other clients neither delete nor change, with the
// reason. Deleting a CRD deletes all resources of its kind, and deleting a claim deletes
// data: a controller that makes everything again would hide the loss.
var spared = map[schema.GroupKind]string{
	{Kind: "Namespace"}:             losesData,
	{Kind: "PersistentVolumeClaim"}: losesData,
	{Kind: "PersistentVolume"}:      losesData,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               losesData,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: setUpOnce,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   setUpOnce,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           setUpOnce,
	{Group: "apps", Kind: "ControllerRevision"}:                                     history,
}

// lasting returns the objects that a controller is expected to restore when a step is at rest. why
// is the reason why it is not expected to restore the others.
func (r *reading) lasting(refs []state.Ref, s step) (lasting []state.Ref, why string) {
	for _, ref := range refs {
		switch object := r.at(ref, s); {
		case hasFinished(ref, object):
			why = finished
		case isRecord(ref, object):
			why = history
		default:
			lasting = append(lasting, ref)
		}
	}
	return lasting, why
}

// isRecord reports whether a Secret or a ConfigMap holds a time. A controller that stores when
// it last acted keeps a record there. If another client changes the record, the controller cannot
// know what it was.
func isRecord(ref state.Ref, object state.Object) bool {
	if ref.GroupKind != (schema.GroupKind{Kind: "Secret"}) && ref.GroupKind != (schema.GroupKind{Kind: "ConfigMap"}) {
		return false
	}
	data, _ := object["data"].(map[string]any)
	for _, value := range data {
		if text, ok := value.(string); ok && state.IsTime(text) {
			return true
		}
	}
	return false
}

// hasFinished reports whether an object is a Job or a Pod that has ended, successfully or
// not.
func hasFinished(ref state.Ref, object state.Object) bool {
	status, _ := object["status"].(map[string]any)
	switch ref.GroupKind {
	case schema.GroupKind{Kind: "Pod"}:
		return status["phase"] == "Succeeded" || status["phase"] == "Failed"
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		conditions, _ := status["conditions"].([]any)
		return slices.ContainsFunc(conditions, func(v any) bool {
			condition, _ := v.(map[string]any)
			return (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True"
		})
	}
	return false
}
