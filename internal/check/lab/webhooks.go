package lab

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// NeedsWebhooks reports whether the API server refuses a step while the controller is down,
// because it would have to call the controller's webhooks. If the objects of the step are
// not known, any webhook counts.
func NeedsWebhooks(s *subject.Subject, step *scenario.Step) bool {
	changes, known := changesOf(step)
	return !known && len(s.Webhooks) > 0 || slices.ContainsFunc(changes, s.Refused)
}

// changesOf returns the changes that a step sends to the API server, and reports whether these are
// all of its changes.
func changesOf(step *scenario.Step) (changes []subject.Change, known bool) {
	known = len(step.Run) == 0
	add := func(ref scenario.ObjectRef, subresource string, operations ...string) {
		for _, operation := range operations {
			changes = append(changes, subject.Change{
				Kind:        schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
				Subresource: subresource, Namespace: ref.Namespace, Operation: operation,
			})
		}
	}
	for _, m := range step.Apply {
		object := unstructured.Unstructured{Object: m.Object}
		known = known && m.Object != nil
		add(scenario.ObjectRef{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace()}, "", "CREATE", "UPDATE")
	}
	if step.Patch != nil {
		add(step.Patch.ObjectRef, step.Patch.Subresource, "UPDATE")
	}
	if step.Scale != nil {
		add(step.Scale.ObjectRef, "scale", "UPDATE")
	}
	if step.Delete != nil {
		add(step.Delete.ObjectRef, "", "DELETE")
	}
	return changes, known
}
