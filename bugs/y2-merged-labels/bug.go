package y2

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// merge adds the declared labels to the existing ones.
//
// WRONG: a label that is no longer declared stays for ever. In grafana/loki#9860 and
// open-telemetry/opentelemetry-operator#3324, labels, annotations and other fields were merged in the
// same way.
func merge(m *corev1.ConfigMap, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	maps.Copy(m.Labels, labels)
}
