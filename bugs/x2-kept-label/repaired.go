package x2

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ours is the annotation that lists the labels that came from the spec.
const ours = "bugs.koboshi.dev/labels"

// replaced sets the labels of the spec, and removes those that came from an earlier spec.
//
// RIGHT: labels that somebody else has added stay, and nothing else does.
func replaced(m *corev1.ConfigMap, labels map[string]string) {
	for key := range strings.SplitSeq(m.Annotations[ours], ",") {
		delete(m.Labels, key)
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	maps.Copy(m.Labels, labels)
	m.Annotations[ours] = strings.Join(slices.Sorted(maps.Keys(labels)), ",")
}
