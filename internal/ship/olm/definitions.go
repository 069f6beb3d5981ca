package olm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Definition describes one version of a custom resource by the markers of its Go type.
type Definition struct {
	Kind schema.GroupVersionKind
	// DisplayName is empty if no marker has one.
	DisplayName string
	Resources   []Resource
	// Order is the position among all definitions; Last means that no marker has one.
	Order        int
	Spec, Status []Descriptor
}

// Last is the order of definitions and descriptors without a marker for it.
const Last = math.MaxInt

// Resource is a kind of objects that belong to a custom resource.
type Resource struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Descriptor describes a field of a custom resource for the forms of a catalog.
type Descriptor struct {
	Path         string   `json:"path"`
	DisplayName  string   `json:"displayName,omitempty"`
	Description  string   `json:"description,omitempty"`
	XDescriptors []string `json:"x-descriptors,omitempty"`
	Order        int      `json:"-"`
}

// owned describes the CRDs. Markers have precedence over the base, and the base over what the CRDs say.
func (m *maker) owned() []any {
	type entry struct {
		order   int
		content map[string]any
	}
	var all []entry
	for _, crd := range m.held {
		if groupKind(crd) != crdKind {
			continue
		}
		for _, v := range listAt(crd.Object, "spec", "versions") {
			if served, _ := v["served"].(bool); served {
				order, content := m.describe(crd, v)
				all = append(all, entry{order, content})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(textAt(a.content, "name"), textAt(b.content, "name")),
			-version.CompareKubeAwareVersionStrings(textAt(a.content, "version"), textAt(b.content, "version")))
	})
	var list []any
	for _, e := range all {
		list = append(list, e.content)
	}
	return list
}

// describe describes one version of a CRD.
func (m *maker) describe(crd unstructured.Unstructured, v map[string]any) (order int, content map[string]any) {
	kind := textAt(crd.Object, "spec", "names", "kind")
	content = map[string]any{
		"name": crd.GetName(), "version": v["name"], "kind": kind, "displayName": Title(kind),
	}
	if text := textAt(v, "schema", "openAPIV3Schema", "description"); text != "" {
		content["description"] = text
	}
	order = Last
	for i, known := range listAt(m.Base, "spec", "customresourcedefinitions", "owned") {
		if known["name"] == content["name"] && known["version"] == content["version"] {
			order = i
			for field, value := range known {
				content[field] = value
			}
		}
	}
	for _, d := range m.Marked {
		if d.Kind == (schema.GroupVersionKind{Group: textAt(crd.Object, "spec", "group"), Version: textAt(v, "name"), Kind: kind}) {
			order = min(order, d.Order)
			d.apply(content)
		}
	}
	return order, content
}

// apply replaces what the markers say.
func (d Definition) apply(content map[string]any) {
	if d.DisplayName != "" {
		content["displayName"] = d.DisplayName
	}
	if len(d.Resources) > 0 {
		content["resources"] = d.Resources
	}
	if len(d.Spec) > 0 {
		content["specDescriptors"] = d.Spec
	}
	if len(d.Status) > 0 {
		content["statusDescriptors"] = d.Status
	}
}

// examples returns the samples of the CRDs as the annotation alm-examples has them.
func (m *maker) examples() (string, error) {
	samples := []any{}
	for _, s := range m.Samples {
		if slices.ContainsFunc(m.held, func(crd unstructured.Unstructured) bool { return defines(crd, s.GroupVersionKind()) }) {
			samples = append(samples, s.Object)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(samples)
	return strings.TrimSpace(text.String()), err
}

// defines reports whether a CRD serves a kind.
func defines(crd unstructured.Unstructured, kind schema.GroupVersionKind) bool {
	return groupKind(crd) == crdKind && textAt(crd.Object, "spec", "group") == kind.Group && textAt(crd.Object, "spec", "names", "kind") == kind.Kind &&
		slices.ContainsFunc(listAt(crd.Object, "spec", "versions"), func(v map[string]any) bool {
			return textAt(v, "name") == kind.Version && v["served"] == true
		})
}

// Title splits a name in the style of Go, or with hyphens, into words that begin with capital letters, as
// operator-sdk does.
func Title(name string) string {
	var words []string
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(".-_ ", r) }) {
		var word []rune
		for i, r := range []rune(part) {
			if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(word[len(word)-1]) {
				words = append(words, string(word))
				word = nil
			}
			if len(word) == 0 {
				r = unicode.ToUpper(r)
			}
			word = append(word, r)
		}
		words = append(words, string(word))
	}
	return strings.Join(words, " ")
}
