package q2

import corev1 "k8s.io/api/core/v1"

// anyConfigMap accepts every ConfigMap.
//
// WRONG: if a ConfigMap of a user has the name of the setting, the controller overwrites it
// and becomes its owner. When the setting is deleted, the garbage collector deletes the
// user's ConfigMap. The bug is taken from kelos-dev/kelos#1328 and
// przemekhys/homeassistant-operator#7.
func anyConfigMap(*Setting, *corev1.ConfigMap) bool { return true }
