// Package compare shows the difference between an object in a cluster and the object that applying
// a manifest would make of it.
package compare

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
)

// bookkeeping are the fields of metadata that the API server writes, and that say nothing about what
// a manifest changes.
var bookkeeping = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// Unified returns the difference between two versions of an object as a unified diff, which is empty
// if there is none. A nil version is an object that does not exist. Values of Secrets are hidden.
func Unified(live, result *unstructured.Unstructured) (string, error) {
	before, after := relevant(live), relevant(result)
	hide(before, after)
	from, err := lines(before)
	if err != nil {
		return "", err
	}
	to, err := lines(after)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: from, B: to, FromFile: title(live, "live"), ToFile: title(result, "deployed"), Context: 3,
	})
}

func title(u *unstructured.Unstructured, version string) string {
	if u == nil {
		return "/dev/null"
	}
	return cluster.IDOf(u).String() + " (" + version + ")"
}

// relevant returns a copy of an object without the fields that a manifest does not change.
func relevant(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range bookkeeping {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u
}

func lines(u *unstructured.Unstructured) ([]string, error) {
	if u == nil {
		return nil, nil
	}
	data, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", cluster.IDOf(u), err)
	}
	all := strings.SplitAfter(string(data), "\n")
	return all[:len(all)-1], nil // the last one is empty
}

// hide replaces the values of Secrets, so that only their changes are visible, as in kubectl diff. A
// hash would be shorter, but a person could test guesses with it.
func hide(before, after *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		old, updated := values(before, field), values(after, field)
		for key, value := range old {
			now, ok := updated[key]
			switch {
			case ok && now != value:
				old[key], updated[key] = "*** (before)", "*** (after)"
			case ok:
				old[key], updated[key] = hidden, hidden
			default:
				old[key] = hidden
			}
		}
		for key := range updated {
			if _, ok := old[key]; !ok {
				updated[key] = hidden
			}
		}
	}
}

const hidden = "***"

// values returns the values of a Secret, and removes kubectl's copy of them.
func values(u *unstructured.Unstructured, field string) map[string]any {
	if u == nil || u.GetKind() != "Secret" || u.GroupVersionKind().Group != "" {
		return nil
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	all, _ := u.Object[field].(map[string]any)
	return all
}
