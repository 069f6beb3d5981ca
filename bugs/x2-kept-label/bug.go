package x2

import corev1 "k8s.io/api/core/v1"

// added adds the labels of the spec to those of the ConfigMap.
//
// WRONG: a label that is no longer in the spec stays on the ConfigMap. The bug is taken from
// k8ssandra/cass-operator#330; Percona's operator for MongoDB had the same with annotations.
func added(m *corev1.ConfigMap, labels map[string]string) {
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	for key, value := range labels {
		m.Labels[key] = value
	}
}
