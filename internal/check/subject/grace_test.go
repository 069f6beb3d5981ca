package subject

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestGracePeriodIsThatOfTheInstallation(t *testing.T) {
	object := func(kind string, spec map[string]any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	}
	five := map[string]any{"terminationGracePeriodSeconds": int64(5)}
	for name, tt := range map[string]struct {
		self []unstructured.Unstructured
		want time.Duration
	}{
		"nothing is installed":     {nil, 30 * time.Second},
		"a Pod without the field":  {[]unstructured.Unstructured{object("Pod", map[string]any{})}, 30 * time.Second},
		"a Pod":                    {[]unstructured.Unstructured{object("Service", nil), object("Pod", five)}, 5 * time.Second},
		"a Deployment":             {[]unstructured.Unstructured{object("Deployment", map[string]any{"template": map[string]any{"spec": five}})}, 5 * time.Second},
		"a text instead of a time": {[]unstructured.Unstructured{object("Pod", map[string]any{"terminationGracePeriodSeconds": "5"})}, 30 * time.Second},
	} {
		if got := (&Subject{Self: tt.self}).Grace(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
