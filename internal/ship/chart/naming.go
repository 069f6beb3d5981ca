package chart

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// keepsName reports whether the name of an object is fixed by its meaning. Kustomize, too, gives
// no prefix to these kinds.
func keepsName(o *unstructured.Unstructured) bool {
	switch o.GroupVersionKind().GroupKind() {
	case namespaceKind, definitionKind, apiServiceKind:
		return true
	}
	return false
}

// commonPrefix returns the prefix of all names, as the namePrefix of a kustomization makes it; empty
// if there is none.
func commonPrefix(objects []unstructured.Unstructured, manager string) string {
	prefix, scaffolded := strings.CutSuffix(manager, "controller-manager")
	if !scaffolded {
		prefix = manager[:strings.LastIndex(manager, "-")+1]
	}
	for i := range objects {
		if !keepsName(&objects[i]) && !strings.HasPrefix(objects[i].GetName(), prefix) {
			return ""
		}
	}
	return prefix
}

// naming gives objects the names and the namespace of a release.
type naming struct {
	prefix, namespace string
	// names maps names of objects to those in the chart, which begin with the mark fullname.
	names    map[string]string
	fullname string
	// inText and whole are the marks of the release's namespace, inside a string and as a string.
	inText, whole string
	// longest is the number of characters that names have after the prefix, where names may have
	// 63 characters.
	longest int
}

func newNaming(m *marks, chart, prefix, namespace string, objects []unstructured.Unstructured) naming {
	n := naming{
		prefix: prefix, namespace: namespace, names: map[string]string{},
		inText: m.value("$.Release.Namespace"), whole: m.quoted("$.Release.Namespace"),
	}
	if prefix == "" {
		return n
	}
	n.fullname = m.value(fmt.Sprintf("include %q $", chart+".fullname"))
	for i := range objects {
		o := &objects[i]
		if keepsName(o) {
			continue
		}
		suffix := strings.TrimPrefix(o.GetName(), prefix)
		n.names[o.GetName()] = n.newName(suffix)
		if kind := o.GetKind(); kind == "Service" || kind == "Deployment" || kind == "StatefulSet" {
			n.longest = max(n.longest, len(suffix)+1)
		}
		// The Secret does not exist yet, so it is not among the objects.
		secret, _, _ := unstructured.NestedString(o.Object, "spec", "secretName")
		if suffix, ok := strings.CutPrefix(secret, prefix); ok && o.GetKind() == "Certificate" {
			n.names[secret] = n.newName(suffix)
		}
	}
	return n
}

// newName returns the name in the chart of an object with a suffix.
func (n *naming) newName(suffix string) string {
	if n.prefix == "" {
		return suffix
	}
	return n.fullname + "-" + suffix
}

// anyName stands for the prefix of all names of a release, in texts for people.
const anyName = "<fullname>"

// readable returns a name in the chart for people.
func (n *naming) readable(name string) string {
	if n.prefix == "" {
		return name
	}
	return strings.Replace(name, n.fullname, anyName, 1)
}

// rename replaces the names of objects and of the namespace in all strings of an object.
func (n *naming) rename(fields map[string]any) {
	for key, value := range fields {
		switch value := value.(type) {
		case string:
			fields[key] = n.renamed(key, value)
		case map[string]any:
			if key != "openAPIV3Schema" { // its texts are for people
				n.rename(value)
			}
		case []any:
			n.renameItems(key, value)
		}
	}
}

func (n *naming) renameItems(key string, items []any) {
	for i, item := range items {
		switch item := item.(type) {
		case string:
			items[i] = n.renamed(key, item)
		case map[string]any:
			n.rename(item)
		case []any:
			n.renameItems(key, item)
		}
	}
}

// word matches what may be a name, or several names with dots between them.
var word = regexp.MustCompile(`[a-z0-9](?:[-a-z0-9.:]*[a-z0-9])?`)

// renamed returns the string in a field with the names of the release. A name counts only as a
// whole word; the namespace also needs surroundings that show what it is, because a word such as
// "system" occurs elsewhere.
func (n *naming) renamed(key, text string) string {
	if n.namespace != "" && text == n.namespace {
		switch key {
		case "namespace", "kubernetes.io/metadata.name", "value", "args", "command":
			return n.whole
		}
	}
	var out strings.Builder
	end := 0
	for _, at := range word.FindAllStringIndex(text, -1) {
		out.WriteString(text[end:at[0]])
		out.WriteString(n.renamedWord(text[at[0]:at[1]], text[:at[0]], text[at[1]:]))
		end = at[1]
	}
	return out.String() + text[end:]
}

// renamedWord returns a word that stands between two texts.
func (n *naming) renamedWord(word, before, after string) string {
	if name, ok := n.names[word]; ok {
		return name
	}
	if n.namespace == "" {
		return word
	}
	if word == n.namespace && (strings.HasPrefix(after, "/") && before == "" || strings.HasSuffix(before, "=") && after == "") {
		return n.inText
	}
	// SERVICE.NAMESPACE.svc, also with * as the service.
	for name, host := range n.names {
		if rest, ok := strings.CutPrefix(word, name+"."+n.namespace); ok && (rest == "" || rest[0] == '.' || rest[0] == ':') {
			return host + "." + n.inText + rest
		}
	}
	if i := strings.Index("."+word, "."+n.namespace+".svc"); i >= 0 && (i > 0 || strings.HasSuffix(before, ".")) {
		return word[:i] + n.inText + word[i+len(n.namespace):]
	}
	return word
}

// setImage replaces the image of the manager by that of the values.
func (b *builder) setImage(object map[string]any) {
	// As in package install: a whole string, or the value of a flag.
	for key, value := range object {
		object[key] = b.withImage(value)
	}
}

func (b *builder) withImage(value any) any {
	switch value := value.(type) {
	case string:
		if value == b.Image {
			return b.image
		}
		if flag, ok := strings.CutSuffix(value, "="+b.Image); ok && strings.HasPrefix(flag, "-") {
			return flag + "=" + b.image
		}
	case map[string]any:
		b.setImage(value)
	case []any:
		for i := range value {
			value[i] = b.withImage(value[i])
		}
	}
	return value
}
