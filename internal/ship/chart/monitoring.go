package chart

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	monitoringGroup = "monitoring.coreos.com"
	metricsFlag     = "--metrics-bind-address="
)

// addMetrics adds the switches of the metrics and of what Prometheus Operator needs.
func (b *builder) addMetrics() error {
	b.addMetricsSwitch()
	existing := false
	for _, t := range b.templates {
		if t.is(monitoringGroup, "") {
			existing = true
			t.only(".Values.metrics.serviceMonitor.enabled")
		}
	}
	service := b.metricsService()
	if !existing && service == nil {
		return nil
	}
	b.values.add("metrics.serviceMonitor.enabled", "Creates what tells Prometheus Operator, which must be in the cluster, to scrape the metrics.", existing, boolean())
	if existing {
		return nil
	}
	t := b.monitor(service)
	t.conditions = append(slices.Clone(service.conditions), ".Values.metrics.serviceMonitor.enabled")
	b.templates = append(b.templates, t)
	b.more(fields(t.object.Object, "metadata"), "labels", "metrics.serviceMonitor.labels", "Labels by which your Prometheus selects ServiceMonitors.", objectOfTexts())
	return nil
}

// addMetricsSwitch adds a value that turns off the metrics, if the manager has kubebuilder's flag.
func (b *builder) addMetricsSwitch() {
	args := items(b.manager.container, "args")
	for i, arg := range args {
		text, _ := arg.(string)
		address, ok := strings.CutPrefix(text, metricsFlag)
		if !ok || address == "0" {
			continue
		}
		b.values.add("metrics.enabled", "Serves metrics. They are for clients that may GET the path /metrics.", true, boolean())
		args[i] = metricsFlag + b.value(fmt.Sprintf("ternary %q \"0\" $.Values.metrics.enabled", address))
		for _, t := range b.templates {
			if t.is("", "Service") || t.is(rbacGroup, "ClusterRole") || t.is(rbacGroup, "ClusterRoleBinding") {
				if strings.Contains(t.suffix, "metrics") {
					t.only(".Values.metrics.enabled")
				}
			}
		}
		return
	}
}

// metricsService returns the Service of the metrics; nil if there is none.
func (b *builder) metricsService() *template {
	for _, t := range b.find("", "Service") {
		if strings.Contains(t.suffix, "metrics") && len(items(inner(t.object.Object, "spec"), "ports")) > 0 {
			return t
		}
	}
	return nil
}

// monitor returns the ServiceMonitor of a Service, as kubebuilder scaffolds it.
func (b *builder) monitor(service *template) *template {
	port, _ := items(inner(service.object.Object, "spec"), "ports")[0].(map[string]any)
	endpoint := map[string]any{"path": "/metrics", "scheme": "http", "port": port["name"]}
	if !slices.Contains(items(b.manager.container, "args"), any("--metrics-secure=false")) {
		endpoint["scheme"] = "https"
		endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		endpoint["tlsConfig"] = b.metricsTLS(service)
	}
	labels := map[string]any{}
	for name, value := range service.object.GetLabels() {
		if name != "app.kubernetes.io/managed-by" {
			labels[name] = value
		}
	}
	return b.newTemplate(monitoringGroup+"/v1", "ServiceMonitor", "controller-manager-metrics-monitor", map[string]any{
		"endpoints": []any{endpoint}, "selector": map[string]any{"matchLabels": labels},
	})
}

// metricsTLS returns how Prometheus verifies the certificate of a Service. Without a certificate of
// cert-manager, the manager has one that it has signed itself.
func (b *builder) metricsTLS(service *template) map[string]any {
	for _, t := range b.find(certManagerGroup, "Certificate") {
		names := items(inner(t.object.Object, "spec"), "dnsNames")
		host := service.object.GetName() + "." + b.inText + ".svc"
		if slices.Contains(names, any(host)) {
			secret, _, _ := unstructured.NestedString(t.object.Object, "spec", "secretName")
			return map[string]any{
				"serverName": host,
				"ca":         map[string]any{"secret": map[string]any{"name": secret, "key": "ca.crt"}},
			}
		}
	}
	return map[string]any{"insecureSkipVerify": true}
}

// newTemplate adds an object that the kustomization does not have.
func (b *builder) newTemplate(version, kind, suffix string, spec map[string]any) *template {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "spec": spec}}
	o.SetName(b.newName(suffix))
	o.SetNamespace(b.whole)
	o.SetLabels(map[string]string{"app.kubernetes.io/name": b.name})
	return &template{object: o, suffix: suffix}
}

// addNetworkPolicy adds the switch of the policies; without one in the objects, it adds the one that
// kubebuilder scaffolds.
func (b *builder) addNetworkPolicy() error {
	existing := b.find("networking.k8s.io", "NetworkPolicy")
	b.values.add("networkPolicy.enabled", "Limits the connections to the manager.", len(existing) > 0, boolean())
	if len(existing) == 0 {
		existing = []*template{b.policy()}
		b.templates = append(b.templates, existing...)
	}
	for _, t := range existing {
		t.only(".Values.networkPolicy.enabled")
	}
	return nil
}

// policy returns a policy that allows what the Services of the manager need: metrics for namespaces
// with the label metrics: enabled, and everything else, such as webhooks, for all clients.
func (b *builder) policy() *template {
	pods, _ := b.podTemplate()
	labels := inner(inner(pods, "metadata"), "labels")
	selector, _, _ := unstructured.NestedMap(b.manager.object.Object, "spec", "selector")
	ingress := []any{}
	for _, t := range b.find("", "Service") {
		spec := inner(t.object.Object, "spec")
		if !selects(inner(spec, "selector"), labels) {
			continue
		}
		rule := map[string]any{"ports": targets(spec)}
		if strings.Contains(t.suffix, "metrics") {
			rule["from"] = []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"metrics": "enabled"}}}}
		}
		ingress = append(ingress, rule)
	}
	return b.newTemplate("networking.k8s.io/v1", "NetworkPolicy", "controller-manager", map[string]any{
		"podSelector": selector, "policyTypes": []any{"Ingress"}, "ingress": ingress,
	})
}

// selects reports whether a selector of a Service selects Pods with certain labels.
func selects(selector, labels map[string]any) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// targets returns the ports of Pods to which a Service leads.
func targets(service map[string]any) (ports []any) {
	for _, item := range items(service, "ports") {
		port, ok := item.(map[string]any)
		if !ok {
			continue
		}
		target := map[string]any{"port": port["targetPort"]}
		if target["port"] == nil {
			target["port"] = port["port"]
		}
		if port["protocol"] != nil {
			target["protocol"] = port["protocol"]
		}
		ports = append(ports, target)
	}
	return ports
}
