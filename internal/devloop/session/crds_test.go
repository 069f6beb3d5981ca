package session

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnObjectHoldsDataAtAPath(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"port": "hakata", "none": nil,
		"crew":   []any{map[string]any{"rank": "mate"}, map[string]any{"name": "a"}},
		"labels": map[string]any{"x": map[string]any{"value": "y"}},
	}}
	for field, want := range map[string]bool{
		"spec.port": true, "spec.none": false, "spec.absent": false, "spec.port.deeper": false,
		"spec.crew[*].name": true, "spec.crew[*].age": false, "spec.labels[key].value": true, "spec.labels[key].other": false,
	} {
		if got := has(object, parts(field)); got != want {
			t.Errorf("%s: %t", field, got)
		}
	}
}

func TestTheDifferenceOfCRDsIsShortAndLeavesOutNewOnes(t *testing.T) {
	crd := func(name, text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": text}}
	}
	before := crds{"a": crd("a", "old"), "b": crd("b", "same")}
	got := before.diff(crds{"a": crd("a", "new"), "b": crd("b", "same"), "c": crd("c", "added")})
	if !strings.Contains(got, "-spec: old\n+spec: new\n") || strings.Contains(got, "same") || strings.Contains(got, "added") {
		t.Errorf("got:\n%s", got)
	}
	long := before.diff(crds{"a": crd("a", strings.Repeat("line\n", 2*mostDiff))})
	if n := strings.Count(long, "\n"); n > mostDiff+1 || !strings.Contains(long, "more lines") {
		t.Errorf("%d lines:\n%s", n, long)
	}
}
