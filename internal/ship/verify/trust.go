package verify

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trust writes an authority, in PEM, to all places where an object says which authority it trusts. It reports
// whether anything has changed.
func trust(u *unstructured.Unstructured, authority []byte) (changed bool) {
	bundle := base64.StdEncoding.EncodeToString(authority)
	set := func(client map[string]any) {
		if client != nil && client["caBundle"] != bundle {
			client["caBundle"], changed = bundle, true
		}
	}
	switch u.GetKind() {
	case "APIService":
		set(child(u.Object, "spec"))
	case "CustomResourceDefinition":
		set(child(u.Object, "spec", "conversion", "webhook", "clientConfig"))
	default:
		webhooks, _ := u.Object["webhooks"].([]any)
		for _, webhook := range webhooks {
			if webhook, ok := webhook.(map[string]any); ok {
				set(child(webhook, "clientConfig"))
			}
		}
	}
	return changed
}

// child returns the object at a path, or nil.
func child(of map[string]any, path ...string) map[string]any {
	for _, name := range path {
		of, _ = of[name].(map[string]any)
	}
	return of
}
