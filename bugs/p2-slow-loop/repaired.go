package p2

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ifChanged keeps the time of the last transition, and reports that a write is needed only if the
// condition is new.
func ifChanged(s *Status, c metav1.Condition) bool { return meta.SetStatusCondition(&s.Conditions, c) }
