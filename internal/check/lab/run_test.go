package lab

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestEnvironmentIsInOrder(t *testing.T) {
	if diff := cmp.Diff([]string{"A=1", "B=", "C=3"}, environ(map[string]string{"C": "3", "A": "1", "B": ""})); diff != "" {
		t.Error(diff)
	}
}

func TestATrialMayTakeLongerIfTheCreationOfItsObjectDid(t *testing.T) {
	step := func(name string, took time.Duration) evidence.Step {
		return evidence.Step{Name: name, BeganAt: time.Second, RestedAt: time.Second + took}
	}
	for _, of := range []struct {
		current string
		created time.Duration
		want    time.Duration
	}{
		{scenario.CreateStep, 0, stepTimeout},
		{"masts", time.Second, tryTimeout},
		{"masts", 7 * time.Second, 14 * time.Second},
		{"masts", 19 * time.Second, stepTimeout},
	} {
		r := &run{scenario: &scenario.Scenario{}, trying: true, current: of.current, out: &evidence.Run{}}
		if of.created > 0 {
			r.out.Steps = []evidence.Step{step(Started, 30*time.Second), step(scenario.CreateStep, of.created)}
		}
		if got := r.timeout(); got != of.want {
			t.Errorf("step %s after a creation in %s: %s, want %s", of.current, of.created, got, of.want)
		}
	}
}
