// Package certificates changes where the webhooks of an operator get their certificate from, in the
// manifests that install the operator.
//
//	objects of config/default ──find──▶ webhooks ─┬─cert-manager──▶ Issuer, Certificate, annotations, volume
//	                                              └─self-signed───▶ Secret, roles, flags of the manager
package certificates

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Source is the source of the certificates.
type Source string

const (
	// CertManager means cert-manager, as in kubebuilder's config/default.
	CertManager Source = "cert-manager"
	// SelfSigned means the manager itself, with the package internal/certificates of a project that
	// Koboshi has scaffolded.
	SelfSigned Source = "self-signed"
)

// Manager describes the program that serves the webhooks.
type Manager struct {
	// Image is the image of the manager in the manifests.
	Image string
	// HasFlag reports whether the manager has a flag.
	HasFlag func(name string) bool
}

// sources has what each source changes.
var sources = map[Source]func([]unstructured.Unstructured, *webhooks, Manager) ([]unstructured.Unstructured, error){
	CertManager: certManager,
	SelfSigned:  selfSigned,
}

// ParseSource parses the name of a source.
func ParseSource(text string) (Source, error) {
	if text == "olm" {
		return "", fmt.Errorf("OLM always gives the webhooks of a bundle their certificate: make one with --olm; for everything else, use %s or %s", CertManager, SelfSigned)
	}
	if _, ok := sources[Source(text)]; !ok {
		return "", fmt.Errorf("%q is no source of certificates; use %s or %s", text, CertManager, SelfSigned)
	}
	return Source(text), nil
}

// Apply returns the objects with webhooks that get their certificate from a source. The objects
// themselves are changed.
func Apply(objects []unstructured.Unstructured, source Source, m Manager) ([]unstructured.Unstructured, error) {
	w, err := find(objects, m.Image)
	if err != nil {
		return nil, err
	}
	return sources[source](objects, w, m)
}

// newObject returns an object in the namespace of the webhooks, with the labels of their Service.
func (w *webhooks) newObject(apiVersion, kind, name string, fields map[string]any) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	o.SetLabels(w.service.GetLabels())
	if !strings.HasPrefix(kind, "Cluster") {
		o.SetNamespace(w.service.GetNamespace())
	}
	for field, value := range fields {
		o.Object[field] = value
	}
	return o
}

// argument returns the value of the first flag that is given, among some names, or "".
func (w *webhooks) argument(names ...string) string {
	args := texts(w.container["args"])
	for i, arg := range args {
		name, value, found := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || !slices.Contains(names, name):
		case found:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}

// addArgument adds a flag to the manager.
func (w *webhooks) addArgument(name, value string) {
	args, _ := w.container["args"].([]any)
	w.container["args"] = append(args, "--"+name+"="+value)
}

// texts returns the texts in a list.
func texts(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		text, _ := item.(string)
		all = append(all, text)
	}
	return all
}

// maps returns the objects in a list.
func maps(list any) (all []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}
