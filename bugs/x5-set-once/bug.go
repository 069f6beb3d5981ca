package x5

import corev1 "k8s.io/api/core/v1"

// once sets the annotations of a new ConfigMap.
//
// WRONG: if they change later, the ConfigMap keeps the old ones. The bug is taken from
// spotahome/redis-operator#400; Percona's operator for MongoDB had it, too (K8SPSMDB-742).
func once(m *corev1.ConfigMap, annotations map[string]string) {
	if m.UID == "" {
		m.Annotations = annotations
	}
}
