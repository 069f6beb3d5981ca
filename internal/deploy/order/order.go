package order

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/served"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
)

// Phases are the objects of a deployment in the order in which they are applied. Each phase has to
// work before the next one begins.
type Phases struct {
	Namespaces, CRDs []*unstructured.Unstructured
	// Main has the workloads and everything that they need.
	Main []*unstructured.Unstructured
	// Webhooks has the webhook configurations. They come after the workloads that answer them,
	// because otherwise the API server refuses what the webhooks cover.
	Webhooks []*unstructured.Unstructured
	// Custom has the objects of the CRDs. They need the webhooks, also those of conversions.
	Custom []*unstructured.Unstructured
}

// Split returns the phases of a list of objects, which it sorts.
func Split(objects []unstructured.Unstructured) (p Phases) {
	install.Sort(objects)
	defined := definitions(objects)
	for i := range objects {
		u := &objects[i]
		into := &p.Main
		if _, custom := defined[u.GroupVersionKind().GroupKind()]; custom {
			into = &p.Custom
		}
		switch {
		case IsNamespace(u):
			into = &p.Namespaces
		case served.IsCRD(u):
			into = &p.CRDs
		case IsWebhook(u):
			into = &p.Webhooks
		}
		*into = append(*into, u)
	}
	return p
}

// All returns the objects of all phases.
func (p Phases) All() []*unstructured.Unstructured {
	return slices.Concat(p.Namespaces, p.CRDs, p.Main, p.Webhooks, p.Custom)
}

// IsNamespace reports whether an object is a Namespace.
func IsNamespace(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Namespace" && u.GetAPIVersion() == "v1"
}

// IsWebhook reports whether an object is a webhook configuration.
func IsWebhook(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == "admissionregistration.k8s.io" &&
		slices.Contains([]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, u.GetKind())
}

// workloads are the kinds that keep Pods running.
var workloads = []string{"Deployment", "StatefulSet", "DaemonSet"}

// IsWorkload reports whether an object keeps Pods running.
func IsWorkload(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().Group == "apps" && slices.Contains(workloads, u.GetKind())
}

// definitions returns the kinds that the CRDs in a list define, and whether they are namespaced.
func definitions(objects []unstructured.Unstructured) map[schema.GroupKind]bool {
	defined := map[schema.GroupKind]bool{}
	for i := range objects {
		if !served.IsCRD(&objects[i]) {
			continue
		}
		kind, scope := Defined(&objects[i])
		defined[kind] = scope == "Namespaced"
	}
	return defined
}

// Defined returns the kind that a CRD defines, and its scope.
func Defined(crd *unstructured.Unstructured) (kind schema.GroupKind, scope string) {
	kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ = unstructured.NestedString(crd.Object, "spec", "scope")
	return kind, scope
}
