package o5

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// dropping has the bug of tektoncd/pipeline#4546, where a pipeline lost its when expressions once a client
// of v1alpha1 had read it and applied it again. In netobserv/netobserv-operator#467, a field that had
// moved to another part of the spec was lost in the same way.
type dropping struct{}

// down converts to v1alpha1.
//
// WRONG: v1alpha1 has no field for the condition, so nothing keeps it.
func (dropping) down(pipeline *unstructured.Unstructured) {
	unstructured.RemoveNestedField(pipeline.Object, "spec", "when")
}

// up converts to v1.
func (dropping) up(*unstructured.Unstructured) {}
