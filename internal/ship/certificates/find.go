package certificates

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// webhooks are the objects that call the webhooks of an operator, or serve them.
type webhooks struct {
	callers []caller
	service *unstructured.Unstructured
	// pod is the template of the Pods behind the Service, and container the manager in it.
	pod       map[string]any
	container map[string]any
}

// caller is an object that makes the API server call webhooks.
type caller struct {
	object *unstructured.Unstructured
	// kind is the name of the kind in flags of the manager.
	kind string
}

// callers has the kinds of callers.
var callers = map[string]string{
	"MutatingWebhookConfiguration.admissionregistration.k8s.io":   "mutating",
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io": "validating",
	"CustomResourceDefinition.apiextensions.k8s.io":               "conversion",
}

// find finds the webhooks among the objects that install an operator.
func find(objects []unstructured.Unstructured, image string) (*webhooks, error) {
	w := &webhooks{}
	var namespace, name string
	for i := range objects {
		kind, ok := callers[objects[i].GroupVersionKind().GroupKind().String()]
		if !ok {
			continue
		}
		called := services(objects[i].Object)
		for _, service := range called {
			if name != "" && (service[0] != namespace || service[1] != name) {
				return nil, fmt.Errorf("the webhooks are in the Services %s and %s, and --certificates supports one; omit --certificates, and give each Service its certificate in config/default", name, service[1])
			}
			namespace, name = service[0], service[1]
		}
		if len(called) > 0 {
			w.callers = append(w.callers, caller{&objects[i], kind})
		}
	}
	if name == "" {
		return nil, errors.New("config/default has no webhooks, and only they need certificates; omit --certificates, or create a webhook with koboshi create webhook")
	}
	return w, w.findServer(objects, namespace, name, image)
}

// services returns the namespaces and names of the Services that an object makes the API server call.
func services(object map[string]any) (all [][2]string) {
	webhooks := maps(object["webhooks"])
	conversion, ok, err := unstructured.NestedMap(object, "spec", "conversion", "webhook")
	if err == nil && ok {
		webhooks = append(webhooks, conversion)
	}
	for _, webhook := range webhooks {
		namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
		name, ok, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
		if ok {
			all = append(all, [2]string{namespace, name})
		}
	}
	return all
}

// findServer finds the Service, and the manager behind it.
func (w *webhooks) findServer(objects []unstructured.Unstructured, namespace, name, image string) error {
	for i, o := range objects {
		if o.GetKind() == "Service" && o.GetNamespace() == namespace && o.GetName() == name {
			w.service = &objects[i]
		}
	}
	if w.service == nil {
		return fmt.Errorf("the webhooks are behind the Service %s/%s, which config/default does not have; add it", namespace, name)
	}
	selector, _, _ := unstructured.NestedStringMap(w.service.Object, "spec", "selector")
	for _, o := range objects {
		template, ok, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "template")
		fields, _ := template.(map[string]any)
		labels, _, _ := unstructured.NestedStringMap(fields, "metadata", "labels")
		if !ok || o.GetNamespace() != namespace || !contains(labels, selector) {
			continue
		}
		w.pod, _ = fields["spec"].(map[string]any)
		for _, c := range maps(w.pod["containers"]) {
			if c["image"] == image {
				w.container = c
				return nil
			}
		}
	}
	return fmt.Errorf("the Service %s of the webhooks selects no Pod that runs the manager; correct its selector", name)
}

// contains reports whether labels match a selector.
func contains(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}
