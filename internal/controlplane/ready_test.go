package controlplane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

func TestPollTellsTheCauseAndTheLastError(t *testing.T) {
	t.Parallel()
	refused, fell := errors.New("connection refused"), errors.New("etcd fell over")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	err := (&Plane{}).poll(ctx, "/readyz", func(context.Context) (bool, error) {
		if asked++; asked == 3 {
			cancel(fell)
		}
		return false, refused
	})
	if !errors.Is(err, refused) || !errors.Is(err, fell) || !strings.Contains(err.Error(), "/readyz") {
		t.Errorf("%v, want both %v and %v, and what it waited for", err, fell, refused)
	}
}

func TestPollEndsWithTheFirstYes(t *testing.T) {
	t.Parallel()
	asked := 0
	err := (&Plane{}).poll(t.Context(), "x", func(context.Context) (bool, error) {
		asked++
		switch asked {
		case 1:
			return true, errors.New("an error is no yes")
		case 2:
			return false, nil
		}
		return true, nil
	})
	if err != nil || asked != 3 {
		t.Errorf("%v after %d questions, want none after 3", err, asked)
	}
}

func TestWhoeverWaitsLongIsToldWhatFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := &Plane{opts: Options{Waiting: func(what string) { told = append(told, what) }}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*tellInterval-pollInterval)
		defer cancel()
		if err := p.poll(ctx, "the nodes", func(context.Context) (bool, error) { return false, errors.New("connection refused") }); err == nil {
			t.Error("no error, though the answer was never yes")
		}
		if want := []string{"the nodes (connection refused)", "the nodes (connection refused)"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		told = nil
		if err := p.poll(t.Context(), "the nodes", func(context.Context) (bool, error) { return true, nil }); err != nil || told != nil {
			t.Errorf("%v, told %q; want nothing", err, told)
		}
	})
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
