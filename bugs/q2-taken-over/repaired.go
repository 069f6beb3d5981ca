package q2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controlled accepts only the ConfigMap that the setting controls.
//
// RIGHT: an object without the controller's owner reference belongs to a user.
func controlled(setting *Setting, existing *corev1.ConfigMap) bool {
	return metav1.IsControlledBy(existing, setting)
}
