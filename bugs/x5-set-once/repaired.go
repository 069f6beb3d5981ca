package x5

import corev1 "k8s.io/api/core/v1"

// always sets the annotations in every reconcile. No other client annotates this ConfigMap.
//
// RIGHT: the child follows the spec.
func always(m *corev1.ConfigMap, annotations map[string]string) {
	m.Annotations = annotations
}
