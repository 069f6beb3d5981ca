package subject

import (
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PointWebhooks replaces the service of each webhook with a URL, which consists of base,
// such as https://127.0.3.7:9443, and the path of the webhook. It changes webhook
// configurations and the conversion webhooks of CRDs. It returns other objects, and
// webhooks that already name a URL, unchanged. It does not modify its arguments.
func PointWebhooks(configs []unstructured.Unstructured, base string, ca []byte) []unstructured.Unstructured {
	pointed := make([]unstructured.Unstructured, 0, len(configs))
	for _, config := range configs {
		if !servesWebhooks(config) {
			pointed = append(pointed, config)
			continue
		}
		config = *config.DeepCopy()
		for _, client := range clientConfigs(config) {
			point(client, base, ca)
		}
		pointed = append(pointed, config)
	}
	return pointed
}

// NamesService reports whether any webhook of the object names a service.
func NamesService(object unstructured.Unstructured) bool {
	if !servesWebhooks(object) {
		return false
	}
	for _, client := range clientConfigs(object) {
		if _, ok := client["service"].(map[string]any); ok {
			return true
		}
	}
	return false
}

func servesWebhooks(object unstructured.Unstructured) bool {
	group := object.GroupVersionKind().Group
	switch object.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return group == "admissionregistration.k8s.io"
	case "CustomResourceDefinition":
		return group == "apiextensions.k8s.io"
	}
	return false
}

// clientConfigs returns the clientConfigs of all webhooks in the object. They are parts of
// the object, not copies.
func clientConfigs(object unstructured.Unstructured) []map[string]any {
	var found []map[string]any
	add := func(part any, path ...string) {
		for _, field := range path {
			within, ok := part.(map[string]any)
			if !ok {
				return
			}
			part = within[field]
		}
		if client, ok := part.(map[string]any); ok {
			found = append(found, client)
		}
	}
	webhooks, _ := object.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		add(webhook, "clientConfig")
	}
	add(object.Object["spec"], "conversion", "webhook", "clientConfig")
	return found
}

func point(client map[string]any, base string, ca []byte) {
	service, ok := client["service"].(map[string]any)
	if !ok {
		return
	}
	path, _ := service["path"].(string)
	delete(client, "service")
	client["url"] = strings.TrimSuffix(base, "/") + "/" + strings.TrimPrefix(path, "/")
	client["caBundle"] = base64.StdEncoding.EncodeToString(ca)
}
