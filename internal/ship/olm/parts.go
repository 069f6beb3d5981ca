package olm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// parts has the objects of an installation by the part of a bundle to which they belong.
type parts struct {
	space          *unstructured.Unstructured // the namespace of the operator
	deployments    []unstructured.Unstructured
	accounts       []unstructured.Unstructured
	roles          []unstructured.Unstructured // and ClusterRoles
	bindings       []unstructured.Unstructured // and ClusterRoleBindings
	configurations []unstructured.Unstructured // of admission webhooks
	certificates   []unstructured.Unstructured // of cert-manager, and their issuers
	// held are the objects that become files as they are, among them CRDs.
	held []unstructured.Unstructured
}

const (
	groupRBAC  = "rbac.authorization.k8s.io"
	groupHooks = "admissionregistration.k8s.io"
	groupCerts = "cert-manager.io"
)

var (
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
)

// holds has the kinds of objects that OLM creates from files, by their group. They are those of the
// table in operator-registry's pkg/lib/bundle/supported_resources.go, which knows no groups.
var holds = map[string][]string{
	"":                      {"ConfigMap", "Secret", "Service", "ServiceAccount"},
	"apiextensions.k8s.io":  {"CustomResourceDefinition"},
	"autoscaling.k8s.io":    {"VerticalPodAutoscaler"},
	"console.openshift.io":  {"ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleQuickStart", "ConsoleYAMLSample"},
	"monitoring.coreos.com": {"PodMonitor", "PrometheusRule", "ServiceMonitor"},
	"networking.k8s.io":     {"NetworkPolicy"},
	"policy":                {"PodDisruptionBudget"},
	"scheduling.k8s.io":     {"PriorityClass"},
	groupRBAC:               {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
}

// describes has the kinds whose content the ClusterServiceVersion has.
var describes = map[string][]string{
	"apps":     {"Deployment"},
	groupHooks: {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
}

// sortObjects fills the parts, and refuses objects that a bundle cannot have.
func (m *maker) sortObjects() error {
	first := slices.IndexFunc(m.Objects, func(o unstructured.Unstructured) bool { return groupKind(o) == deploymentKind })
	if first < 0 {
		return errors.New("OLM installs only operators that run in a Deployment, and the manifests have none; change the manifests, or omit --olm")
	}
	m.namespace = m.Objects[first].GetNamespace()
	var refused []string
	for _, o := range m.Objects {
		if why := m.refuses(o); why != "" {
			refused = append(refused, fmt.Sprintf("\n  %s: %s", title(o), why))
			continue
		}
		m.put(*o.DeepCopy())
	}
	if len(refused) > 0 {
		return fmt.Errorf("a bundle for OLM cannot have these objects; leave them out with a kustomization of your own, and name it with --kustomization:%s", strings.Join(refused, ""))
	}
	return nil
}

// put adds an object to the part to which it belongs.
func (m *maker) put(o unstructured.Unstructured) {
	to := &m.held
	switch kind := groupKind(o); {
	case kind == namespaceKind:
		m.space = &o
		return
	case kind == deploymentKind:
		to = &m.deployments
	case kind == schema.GroupKind{Kind: "ServiceAccount"}:
		to = &m.accounts
	case kind.Group == groupRBAC && strings.HasSuffix(kind.Kind, "Role"):
		to = &m.roles
	case kind.Group == groupRBAC:
		to = &m.bindings
	case kind.Group == groupHooks:
		to = &m.configurations
	case kind.Group == groupCerts:
		to = &m.certificates
	}
	*to = append(*to, o)
}

// refuses returns why a bundle cannot have an object, or "".
func (m *maker) refuses(o unstructured.Unstructured) string {
	kind := groupKind(o)
	if kind == namespaceKind {
		if o.GetName() != m.namespace {
			return "OLM creates no namespaces"
		}
		return ""
	}
	if at := o.GetNamespace(); at != "" && at != m.namespace {
		return fmt.Sprintf("it is in the namespace %s, and OLM creates all objects in the namespace of the operator", at)
	}
	if kind.Group == groupCerts || slices.Contains(holds[kind.Group], kind.Kind) || slices.Contains(describes[kind.Group], kind.Kind) {
		return ""
	}
	return "OLM creates no objects of this kind"
}

func groupKind(o unstructured.Unstructured) schema.GroupKind { return o.GroupVersionKind().GroupKind() }

// title names an object for people.
func title(o unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// titles names several objects.
func titles(objects []unstructured.Unstructured) string {
	var all []string
	for _, o := range objects {
		all = append(all, title(o))
	}
	return strings.Join(all, ", ")
}

// mapAt, listAt and textAt read fields of decoded JSON. A field that is missing, or has another type, is empty.
func mapAt(of map[string]any, fields ...string) map[string]any {
	for _, field := range fields {
		of, _ = of[field].(map[string]any)
	}
	return of
}

// listAt returns the mappings in a list.
func listAt(of map[string]any, fields ...string) (all []map[string]any) {
	last := len(fields) - 1
	list, _ := mapAt(of, fields[:last]...)[fields[last]].([]any)
	for _, item := range list {
		if item, ok := item.(map[string]any); ok {
			all = append(all, item)
		}
	}
	return all
}

func textAt(of map[string]any, fields ...string) string {
	last := len(fields) - 1
	text, _ := mapAt(of, fields[:last]...)[fields[last]].(string)
	return text
}
