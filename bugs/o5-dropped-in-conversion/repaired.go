package o5

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// keeping converts without a loss.
type keeping struct{}

// kept is the annotation with the condition of a pipeline in v1alpha1.
const kept = "bugs.koboshi.dev/when"

// down converts to v1alpha1.
//
// RIGHT: an annotation keeps what v1alpha1 cannot express.
func (keeping) down(pipeline *unstructured.Unstructured) {
	when, found, err := unstructured.NestedString(pipeline.Object, "spec", "when")
	if err != nil || !found {
		return
	}
	unstructured.RemoveNestedField(pipeline.Object, "spec", "when")
	annotations := pipeline.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kept] = when
	pipeline.SetAnnotations(annotations)
}

// up converts to v1, and takes the condition from the annotation.
func (keeping) up(pipeline *unstructured.Unstructured) {
	annotations := pipeline.GetAnnotations()
	when, found := annotations[kept]
	if !found {
		return
	}
	delete(annotations, kept)
	pipeline.SetAnnotations(annotations)
	_ = unstructured.SetNestedField(pipeline.Object, when, "spec", "when") // the spec is an object
}
