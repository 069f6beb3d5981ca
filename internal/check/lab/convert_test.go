package lab

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/conversion"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// convertsObjects converts objects with a webhook that drops one field and keeps another one in an
// annotation.
func convertsObjects(t *testing.T, l *Lab) {
	convertAs(t, l, 0, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
		if o.GroupVersionKind().Version == "v2" {
			if annotations["kept"] == "yes" {
				_ = unstructured.SetNestedField(o.Object, "green", "spec", "color")
			}
			return
		}
		unstructured.RemoveNestedField(o.Object, "spec", "old")
		if color, _, _ := unstructured.NestedString(o.Object, "spec", "color"); color == "green" {
			annotations["kept"] = "yes"
			unstructured.RemoveNestedField(o.Object, "spec", "color")
		}
		if size > 0 {
			_ = unstructured.SetNestedField(o.Object, "a default", "spec", "added")
		}
		o.SetAnnotations(annotations)
	})
	part := func(version, spec string) map[string]any {
		return fromYAML(t, "{apiVersion: example.com/"+version+", kind: Part, metadata: {name: p, namespace: default}, spec: "+spec+"}").Object
	}
	r := &run{lab: l, controller: instance.New(t.Context(), instance.Config{}), converting: &converting{
		Convertible: &scenario.Convertible{
			Kind: "Part.example.com", Group: "example.com", Resource: "parts", Namespaced: true, Storage: "v2", Versions: []string{"v1", "v2"},
			Objects: []map[string]any{part("v2", "{size: 2, color: green, old: x}"), part("v1", "{size: 1}"), part("v2", "none")},
		},
		within: time.Minute, failed: map[string]string{},
	}}
	if err := r.convert(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := r.converting
	if c.result.Made != 2 || c.result.Refused != 1 || c.result.Left != 0 || len(c.failed) != 1 {
		t.Errorf("%+v, %v", c.result, c.failed)
	}
	var lost []string
	for _, f := range conversion.Judge(c.trips, c.allows()) {
		for _, d := range f.Differences {
			lost = append(lost, f.Scenario+" "+d.Path)
		}
	}
	if !slices.Equal(lost, []string{"part-example-com-v2-to-v1 spec.old"}) {
		t.Errorf("%q is lost", lost)
	}
	c.within = -time.Second
	if err := r.convert(t.Context()); err != nil || c.result.Left != 3 {
		t.Errorf("without time, %d are left, %v", c.result.Left, err)
	}
}
