package inputs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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

// create records a new object.
func (s *story) create(ref state.Ref) *story {
	s.revision++
	s.now += time.Millisecond
	s.run.History.Changes = append(s.run.History.Changes, state.Change{Revision: s.revision, At: s.now, Ref: ref, Op: state.Created, After: state.Object{}})
	return s
}

// say records what the controller prints in the step.
func (s *story) say(text string) *story {
	s.run.Steps[len(s.run.Steps)-1].Said += text
	return s
}

func (s *story) call(c trace.Call) *story {
	s.now += time.Millisecond
	s.run.Entries = append(s.run.Entries, trace.Entry{At: s.now, Instance: "controller-1", Call: &c})
	return s
}

func TestTheOutcomeOfATrialIsWhatTheControllerDidInItsSteps(t *testing.T) {
	t.Parallel()
	child := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	other := state.Ref{GroupKind: schema.GroupKind{Kind: "Service"}, Namespace: "default", Name: "ellen"}
	secret := state.Ref{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "default", Name: "ellen"}
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
		"the status says more": {func(s *story) { s.update(boat, `{"status":{"masts":2}}`, `{"status":{"masts":3}}`) }, nil, Effect},
		"a child changes and changes back": {func(s *story) { s.update(child, `{"spec":{"replicas":2}}`, `{"spec":{"replicas":3}}`) },
			func(s *story) { s.update(child, `{"spec":{"replicas":3}}`, `{"spec":{"replicas":2}}`) }, Effect},
		"a child changes, and stays as it is": {func(s *story) { s.update(child, `{"spec":{"replicas":2}}`, `{"spec":{"replicas":3}}`) }, nil, Kept},
		"a child is left over":                {func(s *story) { s.create(other) }, nil, Kept},
		"a Secret is left over":               {func(s *story) { s.create(secret) }, nil, Effect},
		"a counter of a child increases": {func(s *story) {
			s.update(child, `{"metadata":{"annotations":{"n":"1"}}}`, `{"metadata":{"annotations":{"n":"2"}}}`)
		},
			func(s *story) {
				s.update(child, `{"metadata":{"annotations":{"n":"2"}}}`, `{"metadata":{"annotations":{"n":"3"}}}`)
			}, Effect},
		"the controller prints the new value":         {func(s *story) { s.say("reconciling koboshi\n") }, nil, Told},
		"the controller prints a problem":             {func(s *story) { s.say("E1126 12:00:01.5 masts: not supported\n") }, nil, Told},
		"the controller prints what it prints anyway": {func(s *story) { s.say("ERROR 7 the sea is rough\n") }, nil, Inert},
		"a write is refused": {func(s *story) {
			s.call(trace.Call{Verb: "update", Target: trace.Target{Resource: "services", Name: "ellen"}, Code: 422})
		}, nil, Effect},
		"a write is in conflict": {func(s *story) {
			s.call(trace.Call{Verb: "update", Target: trace.Target{Resource: "services", Name: "ellen"}, Code: 409})
		}, nil, Inert},
		"a child is rejected for ever": {func(s *story) {
			for range 2 {
				s.call(trace.Call{ID: 1, Verb: "update", Target: trace.Target{Resource: "services", Name: "ellen"}, Code: 422, Message: "no"})
			}
		}, nil, Rejected},
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
		"it repeats a write": {func(s *story) {
			for range manyWrites {
				s.call(trace.Call{Verb: "update", Code: 200, Target: trace.Target{Resource: "configmaps", Name: "other"}})
			}
		}, nil, Restless},
		"it writes many objects": {func(s *story) {
			for i := range manyWrites {
				s.call(trace.Call{Verb: "update", Code: 200, Target: trace.Target{Resource: "configmaps", Name: "other-" + strconv.Itoa(i)}})
			}
		}, nil, Inert},
		"it does not come to rest": {func(s *story) { s.run.Steps[len(s.run.Steps)-1].Restless = true }, nil, Restless},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clock((&story{}).step("create").step("touch-1").say("ERROR 3 the sea is rough\n").update(boat, `{"metadata":{"annotations":{"check.koboshi.dev/touched":"0"}}}`, `{"metadata":{"annotations":{"check.koboshi.dev/touched":"1"}}}`), 1)
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
			if Handled(tried) != (of.want == Effect || of.want == Kept) {
				t.Errorf("handled: %t", Handled(tried))
			}
		})
	}
}

func TestWhatARolloutLeavesIsNotKept(t *testing.T) {
	t.Parallel()
	deployment := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	set := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, Namespace: "default", Name: "ellen-1"}
	slice := state.Ref{GroupKind: schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, Namespace: "default", Name: "ellen-x"}
	annotated := func(key, value string) string { return `{"metadata":{"annotations":{"` + key + `":"` + value + `"}}}` }
	owned := func(owner, replicas string) string {
		return `{"metadata":{"ownerReferences":[{"kind":"` + owner + `","uid":"1","controller":true}]},"spec":{"replicas":` + replicas + `}}`
	}
	const revision = "deployment.kubernetes.io/revision"
	for name, of := range map[string]struct {
		ref           state.Ref
		before, after string
		want          Outcome
	}{
		"the number of the rollout":         {deployment, annotated(revision, "1"), annotated(revision, "2"), Effect},
		"another annotation":                {deployment, annotated("sails", "1"), annotated("sails", "2"), Kept},
		"the replicas of an old ReplicaSet": {set, owned("Deployment", "1"), owned("Deployment", "0"), Effect},
		"a ReplicaSet of the controller":    {set, owned("Boat", "1"), owned("Boat", "0"), Kept},
		"the addresses of Pods":             {slice, `{"endpoints":["a"]}`, `{"endpoints":["b"]}`, Effect},
	} {
		s := (&story{}).step("create").update(of.ref, `{}`, of.before).step("change").spec(2, 3).update(of.ref, of.before, of.after)
		s.step("undo").spec(3, 2).step("later")
		trials := &scenario.Trials{
			Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
			Trials: []scenario.Trial{{Field: "spec.masts", Verb: "change", Step: "change", Undo: "undo"}},
		}
		if got := Judge(trials, &s.run)[0]; got.Outcome != of.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Outcome, got.Why, of.want)
		}
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
		trial("change", "spec.deletionPolicy", Inert), trial("change", "spec.timeoutSeconds", Inert),
		trial("change", "spec.late", Inert), trial("zero", "spec.late", Unknown), trial("zero", "spec.color", Refused),
		trial("add", "spec.labels", Inert), trial("empty", "spec.labels", Unknown),
		trial("change", "spec.tags", Inert), trial("empty", "spec.tags", Unknown),
	}
	var got []string
	for _, i := range InertFields(tried) {
		got = append(got, tried[i].Field)
	}
	if want := []string{"spec.color", "spec.item", "spec.labels"}; !slices.Equal(got, want) {
		t.Errorf("inert are %q, want %q", got, want)
	}
}

// together builds the record of trials of many fields. each acts in the steps of the trial.
func together(n int, each func(s *story, i int, step string)) (*scenario.Trials, *story) {
	s := (&story{}).step("create").step("touch-1").update(boat, `{"metadata":{"annotations":{"check.koboshi.dev/touched":"0"}}}`, `{"metadata":{"annotations":{"check.koboshi.dev/touched":"1"}}}`)
	trials := &scenario.Trials{Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com", Controls: []string{"touch-1"}}
	for i := range n {
		change, undo := fmt.Sprintf("change-%d", i), fmt.Sprintf("undo-%d", i)
		trials.Trials = append(trials.Trials, scenario.Trial{Field: fmt.Sprintf("spec.f%d", i), Verb: "change", Step: change, Undo: undo})
		each(s.step(change).spec(2, 3), i, "change")
		each(s.step(undo).spec(3, 2), i, "undo")
	}
	return trials, s.step("later")
}

func TestWhatHappensInEachTrialAndDoesNotComeBackIsNoEffect(t *testing.T) {
	t.Parallel()
	child := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	status := func(n int) string { return fmt.Sprintf(`{"status":{"reconciles":%d}}`, n) }
	hash := map[string]string{"change": "a", "undo": "b"}
	for name, of := range map[string]struct {
		each func(s *story, i int, step string)
		want Outcome
	}{
		"a counter of reconciles": {func(s *story, i int, step string) {
			n := 2 * i
			if step == "undo" {
				n++
			}
			s.update(boat, status(n), status(n+1))
		}, Inert},
		"a hash of the spec": {func(s *story, _ int, step string) {
			to := hash[step]
			from := map[string]string{"a": "b", "b": "a"}[to]
			s.update(child, `{"spec":{"hash":"`+from+`"}}`, `{"spec":{"hash":"`+to+`"}}`)
		}, Effect},
	} {
		tried := func() []Tried { trials, s := together(fewestTrials, of.each); return Judge(trials, &s.run) }()
		if got := tried[3].Outcome; got != of.want {
			t.Errorf("%s: %s, want %s", name, got, of.want)
		}
	}
}

func TestAFieldWhoseSecondValueHasNoEffectIsUsedOnce(t *testing.T) {
	t.Parallel()
	service := state.Ref{GroupKind: schema.GroupKind{Kind: "Service"}, Namespace: "default", Name: "ellen"}
	label := func(s *story, from, to string) {
		s.update(service, `{"metadata":{"labels":{"a":"`+from+`"}}}`, `{"metadata":{"labels":{"a":"`+to+`"}}}`)
	}
	for name, of := range map[string]struct {
		then func(s *story)
		want Outcome
	}{
		"it is kept": {func(s *story) { label(s, "1", "2") }, Kept},
		"no effect":  {func(*story) {}, Once},
		"a status":   {func(s *story) { s.update(boat, `{"status":{"a":1}}`, `{"status":{"a":2}}`) }, Effect},
		"an effect":  {func(s *story) { label(s, "1", "2") }, Effect},
		"a message":  {func(s *story) { s.say("ERROR labels cannot be changed\n") }, Effect},
	} {
		s := (&story{}).step("create").create(service).step("add").spec(2, 3)
		label(s, "", "1")
		of.then(s.step("then").spec(3, 4))
		s.step("undo").spec(4, 2)
		if of.want != Kept {
			label(s, "1", "")
		}
		trials := &scenario.Trials{
			Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
			Trials: []scenario.Trial{{Field: "spec.labels", Verb: "add", Step: "add", Then: "then", Undo: "undo"}},
		}
		if got := Judge(trials, &s.step("later").run)[0].Outcome; got != of.want {
			t.Errorf("%s: %s, want %s", name, got, of.want)
		}
	}
}

func TestAControllerThatReactsToFewFieldsIsDeaf(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		effects, inert int
		want           bool
	}{{1, 9, true}, {0, 9, true}, {9, 9, false}, {1, 3, false}, {14, 40, true}, {15, 40, false}} {
		var tried []Tried
		for i := range of.effects + of.inert {
			outcome := Inert
			if i < of.effects {
				outcome = Effect
			}
			field := fmt.Sprintf("spec.f%d", i)
			tried = append(tried, Tried{Trial: scenario.Trial{Field: field, Verb: "empty"}, Outcome: Inert}, Tried{Trial: scenario.Trial{Field: field, Verb: "change"}, Outcome: outcome})
		}
		if got := Deaf(tried); got != of.want {
			t.Errorf("%d fields with an effect, %d without: %t", of.effects, of.inert, got)
		}
	}
}

func TestTrialsThatWereNotReachedSayWhichStepDidNotComeToRest(t *testing.T) {
	t.Parallel()
	trials := &scenario.Trials{KindGroup: "Boat.sea.example.com", Trials: []scenario.Trial{
		{Field: "spec.masts", Verb: "change", Step: "masts", Undo: "undo-masts"},
		{Field: "spec.flag", Verb: "change", Step: "flag", Undo: "undo-flag"},
	}}
	for name, of := range map[string]struct {
		steps []string
		want  string
	}{
		"the creation": {[]string{"create"}, "the controller did not come to rest in step create (it keeps writing)"},
		"a trial":      {[]string{"create", "masts"}, ""},
	} {
		s := &story{}
		for _, step := range of.steps {
			s.step(step)
		}
		last := &s.run.Steps[len(s.run.Steps)-1]
		last.Restless, last.Unrest = true, "it keeps writing"
		if got := Judge(trials, &s.run)[1]; got.Outcome != Unknown || got.Why != of.want {
			t.Errorf("%s: %s %q, want %q", name, got.Outcome, got.Why, of.want)
		}
	}
}

func TestACreatedObjectThatStaysAfterItsDeletionIsStuck(t *testing.T) {
	t.Parallel()
	trials := &scenario.Trials{
		Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
		Trials: []scenario.Trial{{Field: "metadata.name", Verb: "create", Value: []byte(`"1-ellen"`), Step: "name", Undo: "undo"}},
	}
	odd := boat
	odd.Name = "1-ellen"
	const held, leaving = `{"metadata":{"finalizers":["a/b"]}}`, `{"metadata":{"finalizers":["a/b"],"deletionTimestamp":"2026-11-26T10:00:00Z"}}`
	for name, of := range map[string]struct {
		ref  state.Ref
		want Outcome
	}{
		"the created object stays": {odd, Stuck},
		"another object stays":     {boat, Effect},
	} {
		s := (&story{}).step("create").create(boat).step("name").create(of.ref).step("undo").update(of.ref, held, leaving).step("later")
		if got := Judge(trials, &s.run)[0]; got.Outcome != of.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Outcome, got.Why, of.want)
		}
	}
}

func TestWhatKubernetesMakesOfAChangeMayDiffer(t *testing.T) {
	earlier := Tried{Signs: []string{"StatefulSet.apps default/db spec.replicas", "created Pod default/db-0 "}}
	for name, of := range map[string]struct {
		signs []string
		shows bool
	}{
		"the same":                         {earlier.Signs, true},
		"other Pods and another status":    {[]string{"StatefulSet.apps default/db spec.replicas", "created Pod default/db-x7s2k ", "StatefulSet.apps default/db status.updatedReplicas"}, true},
		"the status of the resource":       {[]string{"StatefulSet.apps default/db spec.replicas", "Boat.sea.example.com default/ellen status.phase"}, false},
		"another field":                    {[]string{"StatefulSet.apps default/db spec.replicas", "Service default/db spec.type"}, false},
		"only what Kubernetes makes of it": {[]string{"created Pod default/db-0 "}, true},
		"only another Pod":                 {[]string{"created Pod default/db-1 "}, false},
		"nothing":                          {nil, false},
	} {
		if got := (&Tried{Signs: of.signs}).Shows(&earlier); got != of.shows {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheRecordOfAnElectionIsNoEffect(t *testing.T) {
	config := state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: "lock"}
	record := func(n int) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"%d"}}}`, n)
	}
	s := (&story{}).step("started").step("create").create(boat).step("masts").spec(1, 2).update(config, record(1), record(2)).step("undo-masts").spec(2, 1).update(config, record(2), record(3)).step("end")
	trials := &scenario.Trials{KindGroup: boat.String(), Object: scenario.ObjectRef{Name: boat.Name, Namespace: boat.Namespace},
		Trials: []scenario.Trial{{Field: "spec.masts", Verb: "change", Step: "masts", Undo: "undo-masts"}}}
	if got := Judge(trials, &s.run); got[0].Outcome != Inert {
		t.Errorf("the outcome is %+v", got[0])
	}
}
