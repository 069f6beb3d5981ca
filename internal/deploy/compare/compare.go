// Package compare shows the difference between an object in a cluster and the object that applying
// a manifest would make of it.
package compare

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
)

// bookkeeping are the fields of metadata that the API server writes, and that say nothing about what
// a manifest changes.
var bookkeeping = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// Unified returns the difference between two versions of an object as a unified diff, which is empty
// if there is none. A nil version is an object that does not exist. Values of Secrets are replaced.
func Unified(live, result *unstructured.Unstructured) (string, error) {
	before, err := text(live)
	if err != nil {
		return "", err
	}
	after, err := text(result)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: before, B: after, FromFile: title(live, "live"), ToFile: title(result, "deployed"), Context: 3,
	})
}

func title(u *unstructured.Unstructured, version string) string {
	if u == nil {
		return "/dev/null"
	}
	return cluster.IDOf(u).String() + " (" + version + ")"
}

// text returns the lines of an object's YAML.
func text(u *unstructured.Unstructured) ([]string, error) {
	if u == nil {
		return nil, nil
	}
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range bookkeeping {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	hide(u)
	data, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", cluster.IDOf(u), err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	return lines[:len(lines)-1], nil // the last one is empty
}

// hide replaces the values of a Secret by a part of their hash, so that a change is visible. The name
// and the key are hashed as well, so that equal values of different Secrets do not look equal.
func hide(u *unstructured.Unstructured) {
	if u.GetKind() != "Secret" || u.GroupVersionKind().Group != "" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := u.Object[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			hash := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%v", cluster.IDOf(u), key, values[key]))
			values[key] = fmt.Sprintf("*** (hash %x)", hash[:4])
		}
	}
}
