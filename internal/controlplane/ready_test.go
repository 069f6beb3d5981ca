package controlplane

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAllReadyNeedsEveryNode(t *testing.T) {
	t.Parallel()
	node := func(conditions ...corev1.NodeCondition) corev1.Node {
		return corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	unknown := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	pressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}
	for name, test := range map[string]struct {
		nodes []corev1.Node
		want  bool
	}{
		"one":                 {[]corev1.Node{node(pressure, ready)}, true},
		"two":                 {[]corev1.Node{node(ready), node(ready)}, true},
		"one of two":          {[]corev1.Node{node(ready), node()}, false},
		"unknown":             {[]corev1.Node{node(unknown)}, false},
		"another condition":   {[]corev1.Node{node(pressure)}, false},
		"not one, said twice": {[]corev1.Node{node(), node(pressure, unknown)}, false},
	} {
		if got := allReady(test.nodes); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestFailingChecksOfReadyzAreNamed(t *testing.T) {
	t.Parallel()
	const answer = `[+]ping ok
[-]poststarthook/rbac/bootstrap-roles failed: reason withheld
[+]etcd ok
[-]informer-sync failed: reason withheld
readyz check failed
`
	for body, want := range map[string][]string{
		answer: {"poststarthook/rbac/bootstrap-roles", "informer-sync"},
		"ok":   nil,
		"":     nil,
	} {
		if got := failingChecks([]byte(body)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
