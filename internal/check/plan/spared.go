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

// lasting returns the objects that have not finished when a step is at rest.
func (r *reading) lasting(refs []state.Ref, s step) []state.Ref {
	return slices.DeleteFunc(slices.Clone(refs), func(ref state.Ref) bool { return hasFinished(ref, r.at(ref, s)) })
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
