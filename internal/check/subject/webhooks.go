package subject

import (
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// PointWebhooks replaces the service of each webhook with a URL, which consists of base,
// such as https://127.0.3.7:9443, and the path of the webhook. It changes webhook
// configurations and the conversion webhooks of CRDs. It returns other objects, and
// webhooks that already name a URL, unchanged. It does not modify its arguments.
func PointWebhooks(configs []unstructured.Unstructured, base string, ca []byte) []unstructured.Unstructured {
	return withClients(configs, func(client map[string]any) { point(client, base, ca) })
}

// TrustWebhooks lets the API server trust an authority at each webhook that names a service, and keeps
// the service. Otherwise, it is the same as PointWebhooks.
func TrustWebhooks(configs []unstructured.Unstructured, ca []byte) []unstructured.Unstructured {
	return withClients(configs, func(client map[string]any) {
		if _, ok := client["service"].(map[string]any); ok {
			client["caBundle"] = base64.StdEncoding.EncodeToString(ca)
		}
	})
}

// withClients returns copies of the objects, in which change has changed the clientConfig of each webhook.
func withClients(configs []unstructured.Unstructured, change func(client map[string]any)) []unstructured.Unstructured {
	changed := make([]unstructured.Unstructured, 0, len(configs))
	for _, config := range configs {
		if servesWebhooks(config) {
			config = *config.DeepCopy()
			for _, client := range clientConfigs(config) {
				change(client)
			}
		}
		changed = append(changed, config)
	}
	return changed
}

// NamesService reports whether any webhook of the object names a service.
func NamesService(object unstructured.Unstructured) bool { return len(services(object)) > 0 }

// Services returns the services that the controller's webhooks name.
func (s *Subject) Services() (all []types.NamespacedName) {
	for _, object := range slices.Concat(s.Install, s.Webhooks) {
		for _, service := range services(object) {
			if !slices.Contains(all, service) {
				all = append(all, service)
			}
		}
	}
	return all
}

func services(object unstructured.Unstructured) (all []types.NamespacedName) {
	if !servesWebhooks(object) {
		return nil
	}
	for _, client := range clientConfigs(object) {
		if service, ok := client["service"].(map[string]any); ok {
			namespace, _ := service["namespace"].(string)
			name, _ := service["name"].(string)
			all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return all
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
