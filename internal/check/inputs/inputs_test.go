package inputs

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var boat = state.Ref{GroupKind: schema.GroupKind{Group: "sea.example.com", Kind: "Boat"}, Namespace: "default", Name: "ellen"}

// story builds the record of a run with one trial.
type story struct {
	run      evidence.Run
	revision int64
	now      time.Duration
}

func (s *story) step(name string) *story {
	if n := len(s.run.Steps); n > 0 {
		s.run.Steps[n-1].Rested, s.run.Steps[n-1].RestedAt = s.revision, s.now
	}
	s.now += time.Second
	s.run.Steps = append(s.run.Steps, evidence.Step{Name: name, Began: s.revision, BeganAt: s.now})
	return s
}

// update records a change of an object from one JSON to another.
func (s *story) update(ref state.Ref, before, after string) *story {
	s.revision++
	s.now += time.Millisecond
	c := state.Change{Revision: s.revision, At: s.now, Ref: ref, Op: state.Updated}
	for text, to := range map[string]*state.Object{before: &c.Before, after: &c.After} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			panic(err)
		}
	}
	s.run.History.Changes = append(s.run.History.Changes, c)
	return s
}

// spec is the change that the step makes itself.
func (s *story) spec(from, to int) *story {
	return s.update(boat, fmt.Sprintf(`{"spec":{"masts":%d}}`, from), fmt.Sprintf(`{"spec":{"masts":%d}}`, to))
}

func (s *story) call(c trace.Call) *story {
	s.now += time.Millisecond
	s.run.Entries = append(s.run.Entries, trace.Entry{At: s.now, Instance: "controller-1", Call: &c})
	return s
}

func TestTheOutcomeOfATrialIsWhatTheControllerDidInItsSteps(t *testing.T) {
	t.Parallel()
	child := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	clock := func(s *story, n int) *story {
		return s.update(child, fmt.Sprintf(`{"status":{"ticks":%d}}`, n), fmt.Sprintf(`{"status":{"ticks":%d}}`, n+1))
	}
	for name, of := range map[string]struct {
		change, undo func(s *story)
		want         Outcome
	}{
		"nothing happens": {nil, nil, Inert},
		"the generation is noted": {func(s *story) {
			s.update(boat, `{"status":{"observedGeneration":1,"at":"2026-01-01T00:00:00Z"}}`, `{"status":{"observedGeneration":2,"at":"2026-01-01T00:00:01Z"}}`)
		}, nil, Inert},
		"the status says more":                        {func(s *story) { s.update(boat, `{"status":{"masts":2}}`, `{"status":{"masts":3}}`) }, nil, Effect},
		"a child changes":                             {func(s *story) { s.update(child, `{"spec":{"replicas":2}}`, `{"spec":{"replicas":3}}`) }, nil, Effect},
		"a child changes only at the return":          {nil, func(s *story) { s.update(child, `{"spec":{"list":[1]}}`, `{"spec":{"list":[1,2]}}`) }, Effect},
		"a child changes as it does without a change": {func(s *story) { clock(s, 5) }, func(s *story) { clock(s, 6) }, Inert},
		"the controller asks for what the value names": {func(s *story) {
			s.call(trace.Call{Verb: "get", Target: trace.Target{Resource: "secrets", Name: "koboshi"}})
		}, nil, Effect},
		"the controller asks for something else": {func(s *story) {
			s.call(trace.Call{Verb: "get", Target: trace.Target{Resource: "secrets", Name: "other"}})
		}, nil, Inert},
		"an external endpoint is called": {func(s *story) { s.call(trace.Call{Verb: "put", Endpoint: "store"}) }, nil, Effect},
		"the change is refused":          {func(s *story) { s.run.Steps[len(s.run.Steps)-1].Refused = "no" }, nil, Refused},
		"the return is refused":          {nil, func(s *story) { s.run.Steps[len(s.run.Steps)-1].Refused = "no" }, Refused},
		"the controller panics":          {func(s *story) { s.run.Steps[len(s.run.Steps)-1].Crashed = true }, nil, Crashed},
		"it panics at the return":        {nil, func(s *story) { s.run.Steps[len(s.run.Steps)-1].Crashed = true }, Crashed},
		"it does not come to rest":       {func(s *story) { s.run.Steps[len(s.run.Steps)-1].Restless = true }, nil, Restless},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clock((&story{}).step("create").step("touch-1").update(boat, `{"metadata":{"annotations":{"check.koboshi.dev/touched":"0"}}}`, `{"metadata":{"annotations":{"check.koboshi.dev/touched":"1"}}}`), 1)
			s.step("change").spec(2, 3)
			if of.change != nil {
				of.change(s)
			}
			s.step("undo").spec(3, 2)
			if of.undo != nil {
				of.undo(s)
			}
			s.step("later")
			trials := &scenario.Trials{
				Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com", Controls: []string{"touch-1"},
				Trials: []scenario.Trial{
					{Field: "spec.masts", Verb: "change", Value: json.RawMessage(`"koboshi"`), Step: "change", Undo: "undo"},
					{Field: "spec.flag", Step: "never", Undo: "undo-never"},
				},
			}
			tried := Judge(trials, &s.run)
			if tried[0].Outcome != of.want || tried[1].Outcome != Unknown {
				t.Errorf("the outcomes are %s and %s, want %s and unknown", tried[0].Outcome, tried[1].Outcome, of.want)
			}
			if Handled(tried) != (of.want == Effect) {
				t.Errorf("handled: %t", Handled(tried))
			}
		})
	}
}

func TestChangedNamesEachValueThatDiffers(t *testing.T) {
	t.Parallel()
	var before, after any
	for text, to := range map[string]*any{
		`{"a":1,"list":[{"x":1},{"x":2}],"gone":true,"metadata":{"generation":1},"times":["2026-01-01T00:00:00Z"]}`:   &before,
		`{"a":2,"list":[{"x":1},{"x":3}],"new":{"y":1},"metadata":{"generation":2},"times":["2026-01-02T00:00:00Z"]}`: &after,
	} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := changed(before, after), []string{"a", "gone", "list.[1].x", "new"}; !slices.Equal(got, want) {
		t.Errorf("changed are %q, want %q", got, want)
	}
}

func TestAFieldIsInertOnlyIfNothingInItHasAnEffect(t *testing.T) {
	t.Parallel()
	trial := func(verb, field string, outcome Outcome) Tried {
		return Tried{Trial: scenario.Trial{Verb: verb, Field: field}, Outcome: outcome}
	}
	tried := []Tried{
		trial("empty", "spec.security", Inert), trial("add", "spec.security.user", Effect), // {} is the default
		trial("remove", "spec.method", Inert), // the default, too
		trial("change", "spec.color", Inert), trial("empty", "spec.color", Inert),
		trial("change", "spec.size", Inert), trial("zero", "spec.size", Effect),
		trial("append", "spec.items", Inert), trial("change", "spec.items[].name", Crashed),
		trial("add", "spec.item", Inert), trial("change", "spec.item", Inert),
		trial("change", "spec.late", Inert), trial("zero", "spec.late", Unknown), trial("zero", "spec.color", Refused),
	}
	var got []string
	for _, i := range InertFields(tried) {
		got = append(got, tried[i].Field)
	}
	if want := []string{"spec.color", "spec.item"}; !slices.Equal(got, want) {
		t.Errorf("inert are %q, want %q", got, want)
	}
}
