package verify

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnAuthorityIsTrustedWhereverAnObjectNamesOne(t *testing.T) {
	for kind, tc := range map[string]struct {
		object map[string]any
		client func(map[string]any) map[string]any
	}{
		"MutatingWebhookConfiguration": {
			map[string]any{"webhooks": []any{map[string]any{"clientConfig": map[string]any{"service": map[string]any{}}}}},
			func(o map[string]any) map[string]any {
				return o["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
			},
		},
		"CustomResourceDefinition": {
			map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{}}}}},
			func(o map[string]any) map[string]any {
				return child(o, "spec", "conversion", "webhook", "clientConfig")
			},
		},
		"APIService": {
			map[string]any{"spec": map[string]any{"group": "x"}},
			func(o map[string]any) map[string]any { return child(o, "spec") },
		},
	} {
		u := &unstructured.Unstructured{Object: tc.object}
		u.SetKind(kind)
		if !trust(u, []byte("authority")) || tc.client(u.Object)["caBundle"] != "YXV0aG9yaXR5" {
			t.Errorf("%s: %v", kind, u.Object)
		}
		if trust(u, []byte("authority")) {
			t.Errorf("%s changes although it already trusts the authority", kind)
		}
	}
}

func TestACRDWithoutAConversionWebhookTrustsNobody(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"conversion": map[string]any{"strategy": "None"}}}}
	if trust(u, []byte("authority")) {
		t.Errorf("%v", u.Object)
	}
}
