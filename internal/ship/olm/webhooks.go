package olm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// described lists the fields that a webhookdefinition of a ClusterServiceVersion has in common with a
// webhook of Kubernetes.
var described = []string{
	"rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy",
}

// defineWebhooks describes the webhooks, and the conversions of CRDs, for OLM. OLM makes their
// Services, certificates and configurations.
func (m *maker) defineWebhooks() error {
	for _, c := range m.configurations {
		kind := strings.TrimSuffix(c.GetKind(), "Configuration") // MutatingWebhook or ValidatingWebhook
		for _, w := range listAt(c.Object, "webhooks") {
			d, err := m.admission(w)
			if err != nil {
				return fmt.Errorf("the webhook %s in %s cannot be in a bundle for OLM: %w", textAt(w, "name"), title(c), err)
			}
			d["type"] = strings.Replace(kind, "Webhook", "AdmissionWebhook", 1)
			m.webhooks = append(m.webhooks, d)
		}
	}
	for _, o := range m.held {
		if conversionOf(o) == nil {
			continue
		}
		if err := m.addConversion(o); err != nil {
			return fmt.Errorf("the conversion of %s cannot be in a bundle for OLM: %w", title(o), err)
		}
	}
	slices.SortStableFunc(m.webhooks, func(a, b map[string]any) int {
		return cmp.Compare(textAt(a, "generateName"), textAt(b, "generateName"))
	})
	return nil
}

// admission describes a webhook of a configuration.
func (m *maker) admission(w map[string]any) (map[string]any, error) {
	name := textAt(w, "name")
	d, err := m.endpoint(mapAt(w, "clientConfig"))
	if err != nil {
		return nil, err
	}
	if err := allowed(listAt(w, "rules")); err != nil {
		return nil, err
	}
	d["generateName"] = name
	d["sideEffects"] = "None"
	for _, field := range slices.Sorted(maps.Keys(w)) {
		switch value := w[field]; {
		case slices.Contains(described, field):
			d[field] = value
		case field == "namespaceSelector" && isEmpty(value), field == "name", field == "clientConfig":
		case field == "namespaceSelector":
			m.note("OLM calls the webhook %s for the namespaces of its OperatorGroup, and has no namespaceSelector", name)
		default:
			m.note("OLM calls the webhook %s without its %s, because a ClusterServiceVersion has no such field", name, field)
		}
	}
	return d, nil
}

func isEmpty(value any) bool {
	content, ok := value.(map[string]any)
	return ok && len(content) == 0
}

// allowed refuses rules that OLM rejects, because they could block OLM itself.
func allowed(rules []map[string]any) error {
	for _, rule := range rules {
		groups, _ := rule["apiGroups"].([]any)
		if slices.Contains(groups, any("*")) || slices.Contains(groups, any("operators.coreos.com")) {
			return errors.New("its rules include OLM's own API group; name the groups that it reviews")
		}
		resources, _ := rule["resources"].([]any)
		for _, resource := range []string{"*", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			if slices.Contains(groups, any(groupHooks)) && slices.Contains(resources, any(resource)) {
				return errors.New("its rules include webhook configurations; leave them out")
			}
		}
	}
	return nil
}

// endpoint returns the fields with which OLM finds the server of a webhook.
func (m *maker) endpoint(client map[string]any) (map[string]any, error) {
	reference := mapAt(client, "service")
	if reference == nil {
		return nil, errors.New("it is called by an address, and OLM calls only Deployments of the bundle")
	}
	service := find(m.held, "Service", textAt(reference, "name"))
	if service == nil {
		return nil, fmt.Errorf("its Service %s is not part of the installation", textAt(reference, "name"))
	}
	deployment := m.selected(mapAt(service.Object, "spec", "selector"))
	if deployment == "" {
		return nil, fmt.Errorf("%s selects no Deployment of the installation", title(*service))
	}
	port := cmp.Or(numberAt(reference, "port"), 443)
	d := map[string]any{"deploymentName": deployment, "containerPort": port}
	for _, p := range listAt(service.Object, "spec", "ports") {
		if numberAt(p, "port") == port {
			d["targetPort"] = p["targetPort"]
		}
	}
	if d["targetPort"] == nil {
		d["targetPort"] = port
	}
	if at := textAt(reference, "path"); at != "" {
		d["webhookPath"] = at
	}
	return d, nil
}

// selected returns the name of the first Deployment whose Pods have all labels of a selector.
func (m *maker) selected(selector map[string]any) string {
	for _, d := range m.deployments {
		labels := mapAt(d.Object, "spec", "template", "metadata", "labels")
		matches := len(selector) > 0
		for key, value := range selector {
			matches = matches && labels[key] == value
		}
		if matches {
			return d.GetName()
		}
	}
	return ""
}

// addConversion describes the conversion of a CRD. CRDs that are converted at the same address share
// one description.
func (m *maker) addConversion(crd unstructured.Unstructured) error {
	d, err := m.endpoint(conversionOf(crd, "clientConfig"))
	if err != nil {
		return err
	}
	d["type"], d["sideEffects"] = "ConversionWebhook", "None"
	d["admissionReviewVersions"] = conversionOf(crd)["conversionReviewVersions"]
	plural := textAt(crd.Object, "spec", "names", "plural")
	for _, other := range m.webhooks {
		names, _ := other["conversionCRDs"].([]any)
		if len(names) > 0 && sameEndpoint(d, other) {
			other["conversionCRDs"] = append(names, crd.GetName())
			other["generateName"] = strings.TrimSuffix(textAt(other, "generateName"), conversionSuffix) + plural + conversionSuffix
			return nil
		}
	}
	d["conversionCRDs"] = []any{crd.GetName()}
	d["generateName"] = "c" + plural + conversionSuffix
	m.webhooks = append(m.webhooks, d)
	return nil
}

// conversionSuffix ends the names that operator-sdk gives to conversions.
const conversionSuffix = ".kb.io"

func sameEndpoint(a, b map[string]any) bool {
	for _, field := range []string{"deploymentName", "containerPort", "targetPort", "webhookPath", "admissionReviewVersions"} {
		if !reflect.DeepEqual(a[field], b[field]) {
			return false
		}
	}
	return true
}

// conversionOf returns fields of the webhook that converts the objects of a CRD; nil means that it has none.
func conversionOf(o unstructured.Unstructured, fields ...string) map[string]any {
	if groupKind(o) != crdKind || textAt(o.Object, "spec", "conversion", "strategy") != "Webhook" {
		return nil
	}
	return mapAt(o.Object, append([]string{"spec", "conversion", "webhook"}, fields...)...)
}

// serves reports whether OLM mounts a certificate in a Deployment.
func (m *maker) serves(deployment string) bool {
	return slices.ContainsFunc(m.webhooks, func(w map[string]any) bool { return w["deploymentName"] == deployment })
}

func find(objects []unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for i, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return &objects[i]
		}
	}
	return nil
}

// numberAt returns a number, which is a float64 or an int64 in decoded JSON.
func numberAt(of map[string]any, field string) int64 {
	switch n := of[field].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}
