package scenario

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func sampleOf(file, apiVersion, kind, name string, spec map[string]any) *sampled {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	if spec != nil {
		object["spec"] = spec
	}
	return &sampled{file: file, object: unstructured.Unstructured{Object: object}, primary: spec != nil}
}

func TestASecretIsGivenThatAFieldNamesWithoutItsKind(t *testing.T) {
	t.Parallel()
	tenant := sampleOf("tenant.yaml", "sea.example.com/v1", "Tenant", "north", map[string]any{
		"configuration": map[string]any{"name": "tide"}, "berthRef": map[string]any{"name": "quay"},
	})
	secret, other := sampleOf("tide.yaml", "v1", "Secret", "tide", nil), sampleOf("foam.yaml", "v1", "Secret", "foam", nil)
	berth, namesake := sampleOf("quay.yaml", "sea.example.com/v1", "Berth", "quay", nil), sampleOf("quay-map.yaml", "v1", "ConfigMap", "quay", nil)
	needs := library{tenant, secret, other, berth, namesake}.needs(tenant)
	for s, want := range map[*sampled]bool{secret: true, other: false, berth: true, namesake: false} {
		if got := slices.Contains(needs, s); got != want {
			t.Errorf("%s %s is needed: %t, want %t", s.kind(), s.object.GetName(), got, want)
		}
	}
}
