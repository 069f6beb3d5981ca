package inputs

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var service = state.Ref{GroupKind: schema.GroupKind{Kind: "Service"}, Namespace: "default", Name: "ellen"}

// marks are two trials that are made together.
func marks() *scenario.Trials {
	trial := func(field, mark string) scenario.Trial {
		return scenario.Trial{Field: field, Verb: "add", Mark: mark, Step: "mark", Then: "then-mark", Undo: "undo-mark"}
	}
	return &scenario.Trials{
		Title: "boat", Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
		Trials: []scenario.Trial{trial("spec.deck.labels", "koboshi-m001"), trial("spec.bow.labels", "koboshi-m002")},
	}
}

// labels is the JSON of an object with labels.
func labels(of ...string) string {
	text := ""
	for i, value := range of {
		if value != "" {
			text += fmt.Sprintf(`,"koboshi-m%03d":"koboshi-m%03d-%s"`, i+1, i+1, value)
		}
	}
	return `{"metadata":{"labels":{"app":"ellen"` + text + `}}}`
}

// marked returns the record of a run in which a Service has the given labels after each step.
func marked(ref state.Ref, after ...string) *story {
	s, was := (&story{}).step(scenario.CreateStep), labels()
	s.update(ref, `{}`, was).step("touch-1")
	s.run.History.Changes[0].Op = state.Created
	s.run.History.Changes[0].Before = nil
	for i, name := range []string{"mark", "then-mark", "undo-mark"} {
		s.step(name).update(boat, `{"spec":{}}`, fmt.Sprintf(`{"spec":{"n":"koboshi-m002-a","i":%d}}`, i))
		if after[i] != was {
			s.update(ref, was, after[i])
			was = after[i]
		}
	}
	return s.step("later")
}

func TestTheTextOfAFieldShowsWhatBecomesOfItAmongOthers(t *testing.T) {
	t.Parallel()
	claim := state.Ref{GroupKind: schema.GroupKind{Kind: "PersistentVolumeClaim"}, Namespace: "default", Name: "ellen"}
	for name, of := range map[string]struct {
		ref   state.Ref
		after []string
		want  []Outcome
	}{
		"both are passed on":               {service, []string{labels("a", "a"), labels("b", "b"), labels()}, []Outcome{Effect, Effect}},
		"one is not":                       {service, []string{labels("a"), labels("b"), labels()}, []Outcome{Effect, Inert}},
		"a new value is not":               {service, []string{labels("a", "a"), labels("b", "a"), labels()}, []Outcome{Effect, Once}},
		"the first value comes too late":   {service, []string{labels("a"), labels("b", "b"), labels()}, []Outcome{Effect, Effect}},
		"one stays":                        {service, []string{labels("a", "a"), labels("b", "b"), labels("", "b")}, []Outcome{Effect, Kept}},
		"the first value stays":            {service, []string{labels("a", "a"), labels("b", "a"), labels("", "a")}, []Outcome{Effect, Kept}},
		"both stay at what keeps its data": {claim, []string{labels("a", "a"), labels("b", "b"), labels("b", "b")}, []Outcome{Effect, Effect}},
		"nothing is passed on":             {service, []string{labels(), labels(), labels()}, []Outcome{Unknown, Unknown}},
	} {
		var got []Outcome
		for _, tried := range Judge(marks(), &marked(of.ref, of.after...).run) {
			got = append(got, tried.Outcome)
		}
		if diff := cmp.Diff(of.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
}

func TestNoFieldIsBlamedForWhatManyChangesTogetherDid(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *story){
		"a crash":                      func(s *story) { s.run.Steps[2].Crashed = true },
		"no rest":                      func(s *story) { s.run.Steps[4].Restless = true },
		"a refusal":                    func(s *story) { s.run.Steps[3].Refused = "no" },
		"the end of the run before it": func(s *story) { s.run.Steps = s.run.Steps[:4] },
	} {
		s := marked(service, labels("a"), labels("b"), labels())
		spoil(s)
		for _, tried := range Judge(marks(), &s.run) {
			if tried.Outcome != Unknown {
				t.Errorf("%s: %s is %s", name, tried.Field, tried.Outcome)
			}
		}
	}
}

func TestAStepOfManyChangesEndsEarlyOnceAllTextsAreInPlace(t *testing.T) {
	t.Parallel()
	all := []string{labels("a", "a"), labels("b", "b"), labels()}
	one := []string{labels("a"), labels("b"), labels()}
	kept := []string{labels("a", "a"), labels("b", "b"), labels("", "b")}
	for name, of := range map[string]struct {
		after []string
		steps int
		want  Reaction
	}{
		"before the changes":               {all, 2, Unneeded},
		"all have arrived":                 {all, 3, Complete},
		"one is missing":                   {one, 3, Missing},
		"the second values have arrived":   {all, 4, Complete},
		"only what had arrived is awaited": {one, 4, Complete},
		"all are gone":                     {all, 5, Complete},
		"one stays":                        {kept, 5, Missing},
	} {
		s := marked(service, of.after...)
		// The run is still in the step with the given number.
		last := s.run.Steps[of.steps]
		s.run.Steps = s.run.Steps[:of.steps]
		for n, c := range s.run.History.Changes {
			if c.Revision > last.Began {
				s.run.History.Changes = s.run.History.Changes[:n]
				break
			}
		}
		if got := Reacted(marks(), &s.run); got != of.want {
			t.Errorf("%s: %d, want %d", name, got, of.want)
		}
	}
}

func TestATextIsMissingOnlyAfterAFullRoundOfASlowController(t *testing.T) {
	t.Parallel()
	patient := marks()
	patient.Patient = []string{"mark", "then-mark", "undo-mark"}
	for name, of := range map[string]struct {
		first, second int // requests in the steps with the two texts
		want          []Outcome
	}{
		"two full rounds":                  {3, 3, []Outcome{Once, Inert}},
		"none with the second text":        {3, 2, []Outcome{Unknown, Unknown}},
		"none with the first text":         {1, 3, []Outcome{Unknown, Unknown}},
		"it makes no requests in a round":  {0, 0, []Outcome{Once, Inert}},
		"many requests, but all too early": {6, 1, []Outcome{Unknown, Unknown}},
	} {
		s := marked(service, labels("a"), labels("a"), labels())
		for n, step := range s.run.Steps[2:4] {
			for i := range []int{of.first, of.second}[n] {
				s.run.Entries = append(s.run.Entries, trace.Entry{
					At: step.BeganAt + time.Duration(i)*time.Microsecond, Instance: "controller-1",
					Call: &trace.Call{Verb: "delete", Target: trace.Target{Resource: "pods", Name: "a"}},
				})
			}
		}
		var got []Outcome
		for _, tried := range Judge(patient, &s.run) {
			got = append(got, tried.Outcome)
		}
		if diff := cmp.Diff(of.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
}

func TestAMissingTextShowsNothingWhileTheAPIServerRejectsAWrite(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]Outcome{"": Inert, "mark": Unknown, "then-mark": Unknown} {
		s := marked(service, labels("a"), labels("b"), labels())
		for _, m := range s.run.Steps {
			for range 2 {
				if m.Name == step {
					s.run.Entries = append(s.run.Entries, trace.Entry{At: m.BeganAt, Instance: "controller-1", Call: &trace.Call{
						ID: 1, Verb: "update", Target: trace.Target{Resource: "services", Name: "ellen"}, Code: 422, Message: "no",
					}})
				}
			}
		}
		tried := Judge(marks(), &s.run)
		if tried[0].Outcome != Effect || tried[1].Outcome != want {
			t.Errorf("a write is rejected in step %q: the text that arrives is %s, and the other %s, not %s", step, tried[0].Outcome, tried[1].Outcome, want)
		}
	}
}
