package suite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// text returns the text at a path of keys, or "".
func text(value map[string]any, keys ...string) string {
	for _, key := range keys[:len(keys)-1] {
		value, _ = value[key].(map[string]any)
	}
	out, _ := value[keys[len(keys)-1]].(string)
	return out
}

// refOf returns the reference to an object. The namespace is the one of the object, and otherwise
// the given one, unless the kind is known to have no namespace.
func refOf(value map[string]any, namespace string) scenario.ObjectRef {
	ref := scenario.ObjectRef{
		APIVersion: text(value, "apiVersion"), Kind: text(value, "kind"),
		Namespace: text(value, "metadata", "namespace"), Name: text(value, "metadata", "name"),
	}
	if clusterScoped[ref.Kind] {
		ref.Namespace = ""
	} else if ref.Namespace == "" {
		ref.Namespace = namespace
	}
	return ref
}

// clusterScoped lists kinds of Kubernetes that have no namespace. A namespace in a reference to
// another such kind does no harm, because a check ignores it.
var clusterScoped = map[string]bool{
	"APIService": true, "ClusterRole": true, "ClusterRoleBinding": true, "CustomResourceDefinition": true, "IngressClass": true,
	"MutatingWebhookConfiguration": true, "Namespace": true, "Node": true, "PersistentVolume": true, "PriorityClass": true,
	"RuntimeClass": true, "StorageClass": true, "ValidatingWebhookConfiguration": true,
}

// sameKind reports whether two references have the same kind, perhaps in two versions.
func sameKind(a, b scenario.ObjectRef) bool {
	of := func(r scenario.ObjectRef) schema.GroupKind {
		return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
	}
	return of(a) == of(b)
}

// sameObject reports whether two references name the same object.
func sameObject(a, b scenario.ObjectRef) bool {
	return sameKind(a, b) && a.Name == b.Name && sameNamespace(a, b)
}

func sameNamespace(a, b scenario.ObjectRef) bool {
	return cmp.Or(a.Namespace, "default") == cmp.Or(b.Namespace, "default")
}

// wrongRef returns the reason why a scenario cannot name the object, or "".
func wrongRef(ref scenario.ObjectRef) string {
	switch {
	case ref.APIVersion == "" || ref.Kind == "":
		return "it has no apiVersion or no kind"
	case ref.Name == "":
		return "it has no name"
	case strings.ContainsAny(ref.Name, "/%") || ref.Name == "." || ref.Name == "..":
		return "its name is not valid"
	case ref.Namespace != "" && len(validation.IsDNS1123Label(ref.Namespace)) > 0:
		return "its namespace is not valid"
	}
	if _, err := schema.ParseGroupVersion(ref.APIVersion); err != nil {
		return "its apiVersion is not valid"
	}
	return ""
}

// describe returns the kind and the name of an object.
func describe(ref scenario.ObjectRef) string {
	return strings.TrimSpace(cmp.Or(ref.Kind, "object without a kind") + " " + ref.Name)
}

// endpoint matches text that has a meaning of its own in scenarios.
var endpoint = regexp.MustCompile(`\$\(endpoint\.`)

// expression matches text that chainsaw evaluates.
var expression = regexp.MustCompile(`(?s)^(\(.+\)|\\.+\\)$`)

// expressionKey matches keys that chainsaw evaluates.
var expressionKey = regexp.MustCompile(`^(~|\(|\\)|->\s*\w+$`)

// unsupported returns the path of the first text in a value that a scenario cannot contain, and the
// reason, or "".
func unsupported(value any, expressions bool) (at, why string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if expressions && expressionKey.MatchString(key) {
				return key, key + ": expressions are not supported"
			}
			if at, why = unsupported(v[key], expressions); why != "" {
				return strings.TrimSuffix(key+"."+at, "."), why
			}
		}
	case []any:
		for i, item := range v {
			if at, why = unsupported(item, expressions); why != "" {
				return strings.TrimSuffix(fmt.Sprintf("[%d].%s", i, at), "."), why
			}
		}
	case string:
		switch {
		case expressions && expression.MatchString(v):
			return "", v + ": expressions are not supported"
		case endpoint.MatchString(v):
			return "", "$(endpoint.…) has a meaning of its own in scenarios"
		}
	}
	return "", ""
}

// withNamespace returns a copy of a value in which the namespace of the case replaces its variable:
// ($namespace) in chainsaw, and $NAMESPACE in fields that hold a namespace.
func withNamespace(value any, namespace string) any { return replaceNamespace(value, "", namespace) }

func replaceNamespace(value any, key, namespace string) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			out[k] = replaceNamespace(inner, k, namespace)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = replaceNamespace(inner, key, namespace)
		}
		return out
	case string:
		if v == "($namespace)" || key == "namespace" && (v == "$NAMESPACE" || v == "${NAMESPACE}") {
			return cmp.Or(namespace, "default")
		}
	}
	return value
}

// manifest returns the value as a manifest, with the types of numbers that Kubernetes' libraries
// expect.
func manifest(value map[string]any) (scenario.Manifest, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return scenario.Manifest{}, err
	}
	var m scenario.Manifest
	return m, json.Unmarshal(data, &m)
}

// change returns the value without the fields that identify the object, as a merge patch. It is nil
// if nothing is left.
func change(value map[string]any) map[string]any {
	out := maps.Clone(value)
	delete(out, "apiVersion")
	delete(out, "kind")
	if metadata, isMap := out["metadata"].(map[string]any); isMap {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		delete(metadata, "namespace")
		out["metadata"] = metadata
		if len(metadata) == 0 {
			delete(out, "metadata")
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
