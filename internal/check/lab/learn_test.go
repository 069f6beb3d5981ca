package lab

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// paused returns a run whose only step has changes at the given times.
func paused(moments ...time.Duration) *evidence.Run {
	const began = 2 * time.Second
	out := &evidence.Run{Steps: []evidence.Step{
		{Name: Started, Rested: 10},
		{Name: "create", Began: 10, Rested: 100, BeganAt: began},
	}, Entries: []trace.Entry{{Call: &trace.Call{Verb: "watch", Code: 200}}}}
	// Changes before the first step belong to the start of the process.
	out.History.Changes = append(out.History.Changes, state.Change{Revision: 5, At: time.Minute})
	for i, at := range moments {
		out.History.Changes = append(out.History.Changes, state.Change{Revision: int64(11 + i), At: began + at})
	}
	return out
}

func TestWindowIsTwiceTheLongestPauseWithinBounds(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name string
		out  *evidence.Run
		want time.Duration
	}{
		{"nothing is written", paused(), shortestWindow},
		{"at once", paused(ms, 2*ms, 3*ms), shortestWindow},
		{"after a pause", paused(10*ms, 310*ms, 320*ms), 600 * ms},
		{"late", paused(400 * ms), 800 * ms},
		{"after ages", paused(ms, time.Minute), longestWindow},
	} {
		if got := window(test.out, &scenario.Scenario{}); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestRoundsOfAPollingControllerAreNoPauses(t *testing.T) {
	out := paused(900*time.Millisecond, 1900*time.Millisecond)
	out.Entries = nil
	if got := window(out, &scenario.Scenario{}); got != 2*briefPause {
		t.Errorf("%v", got)
	}
}

func TestPatienceSufficesForFourAttempts(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: patience, time.Second: 4 * time.Second, 3 * time.Second: 12 * time.Second, time.Minute: maxPatience,
	} {
		if got := patienceFor([]*evidence.Run{paused(time.Millisecond), paused(took)}); got != want {
			t.Errorf("for a controller that takes %v: %v, want %v", took, got, want)
		}
	}
}

func TestTailExceedsThePauseBetweenStartAndFirstWrite(t *testing.T) {
	started := trace.Entry{Instance: "c", Process: &trace.Process{What: "started"}}
	settled := trace.Entry{Step: &trace.Step{What: "settled"}}
	call := func(at time.Duration, verb string) trace.Entry {
		return trace.Entry{At: at, Instance: "c", Call: &trace.Call{Verb: verb, Target: trace.Target{Resource: "configmaps"}}}
	}
	for _, test := range []struct {
		name    string
		entries []trace.Entry
		want    time.Duration
	}{
		{"no write", []trace.Entry{started, call(0, "list")}, minTail},
		{"a quick write", []trace.Entry{started, call(0, "list"), call(100*time.Millisecond, "create")}, minTail},
		{"a write after 1.5 s", []trace.Entry{started, call(time.Second, "list"), call(2500*time.Millisecond, "create")}, 3 * time.Second},
		{"a write in a later step", []trace.Entry{started, call(0, "list"), settled, call(2*time.Second, "create")}, minTail},
		{"the second write", []trace.Entry{started, call(0, "list"), call(1, "create"), call(2*time.Second, "create")}, minTail},
		{"a very late write", []trace.Entry{started, call(0, "list"), call(time.Minute, "create")}, maxTail},
	} {
		if got := tailFor([]*evidence.Run{{Entries: test.entries}}); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestStepWithAQuietTimeDoesNotLengthenTheWindow(t *testing.T) {
	sc := &scenario.Scenario{Steps: []scenario.Step{{Name: "create", Quiet: scenario.Duration(4 * time.Second)}}}
	if got := window(paused(time.Millisecond, 3*time.Second), sc); got != shortestWindow {
		t.Errorf("%v", got)
	}
}

func TestScenarioSetsTheWindow(t *testing.T) {
	sc := &scenario.Scenario{Rest: scenario.Rest{Quiet: scenario.Duration(5 * time.Second)}}
	if got := window(paused(time.Millisecond), sc); got != 5*time.Second {
		t.Errorf("%v", got)
	}
}

func TestHeartbeatsAreNoPause(t *testing.T) {
	out := paused(time.Millisecond)
	lease := state.Change{Revision: 12, At: 4 * time.Second}
	lease.Ref.GroupKind = schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}
	out.History.Changes = append(out.History.Changes, lease)
	if got := window(out, &scenario.Scenario{}); got != shortestWindow {
		t.Errorf("%v", got)
	}
}

func TestPauseBeforeACustomNodeIsAPause(t *testing.T) {
	out := paused(time.Millisecond, 401*time.Millisecond)
	out.History.Changes[2].Ref.GroupKind = schema.GroupKind{Group: "longhorn.io", Kind: "Node"}
	if got := window(out, &scenario.Scenario{}); got != 800*time.Millisecond {
		t.Errorf("%v", got)
	}
}

func TestStreamsAreTheWatchesOpenAtTheFirstRest(t *testing.T) {
	watch := trace.Entry{Call: &trace.Call{Verb: "watch", Code: 200}}
	rest := trace.Entry{Step: &trace.Step{Name: Started, What: "settled"}}
	out := &evidence.Run{Entries: []trace.Entry{
		watch, {Call: &trace.Call{Verb: "watch", Code: 403}}, {Call: &trace.Call{Verb: "list", Code: 200}},
		watch, {Watch: &trace.Watch{Type: "ADDED"}}, {Watch: &trace.Watch{Type: "CLOSED"}}, watch, rest, watch,
	}}
	if got := streamsOf(out); got != 2 {
		t.Errorf("%d, want 2", got)
	}
}

func TestEffectiveWritesAreThoseWithARevision(t *testing.T) {
	call := func(verb, resource, version string, code int) trace.Entry {
		resource, group, _ := strings.Cut(resource, ".")
		return trace.Entry{Call: &trace.Call{Verb: verb, Target: trace.Target{Group: group, Resource: resource}, ResourceVersion: version, Code: code}}
	}
	dry := call("create", "configmaps", "11", 201)
	dry.Call.Path = "/api/v1/namespaces/default/configmaps?dryRun=All"
	out := &evidence.Run{Entries: []trace.Entry{
		call("create", "configmaps", "11", 201),
		call("update", "configmaps", "11", 200), // changed something
		call("update", "configmaps", "7", 200),  // changed nothing
		call("update", "configmaps", "12", 409),
		call("delete", "configmaps", "", 200),
		call("update", "leases.coordination.k8s.io", "12", 200),
		call("update", "leases.example.com", "12", 200), // a custom resource of that name
		call("patch", "leases.example.com", "12", 200),
		dry,
		call("get", "configmaps", "11", 200),
		{Call: &trace.Call{Verb: "create", Endpoint: "store", ResourceVersion: "11", Code: 200}},
	}}
	out.History.Changes = []state.Change{{Revision: 11}, {Revision: 12}}
	if got := effectiveWrites(out); got != 5 {
		t.Errorf("%d, want 5", got)
	}
}

func TestRestlessRunNamesItsLastWrite(t *testing.T) {
	out := &evidence.Run{Steps: []evidence.Step{{Name: "create", Restless: true}}, Entries: []trace.Entry{
		{Call: &trace.Call{Verb: "patch", Target: trace.Target{Resource: "widgets", Namespace: "default", Name: "demo"}}},
		{Call: &trace.Call{Verb: "create", Target: trace.Target{Resource: "events", Namespace: "default"}}},
		{Call: &trace.Call{Verb: "list", Target: trace.Target{Resource: "widgets"}}},
	}}
	if !restless(out) {
		t.Error("it is at rest")
	}
	if got := lastWrite(out); got != "it keeps sending PATCH widgets default/demo" {
		t.Errorf("%q", got)
	}
	out.Entries = out.Entries[1:]
	if got := lastWrite(out); got != "another client keeps writing" {
		t.Errorf("without a write by the controller: %q", got)
	}
	if got := lastWrite(&evidence.Run{}); !strings.Contains(got, "made no request") {
		t.Errorf("without any request: %q", got)
	}
}

func TestExitWithoutOutputIsReportedAsSuch(t *testing.T) {
	for said, want := range map[string]string{"": "with code 1: it printed nothing; start", "no such flag": "with code 1: no such flag; start"} {
		if got := (&GoneError{Times: 6, Code: 1, Said: said}).Error(); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

func TestExitNamesALimitOfTheSystem(t *testing.T) {
	err := &GoneError{Times: 6, Code: 1, Hint: (&Lab{noView: view.ErrUnavailable}).withoutView()}
	if want := "; the controller cannot use in-cluster configuration here, because only Linux"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
	if hint := (&Lab{}).withoutView(); hint != "" {
		t.Errorf("with views there is the hint %q", hint)
	}
}

func TestAScenarioWhoseRunsDifferIsLearntWithALongQuietTime(t *testing.T) {
	different := &SetupError{&judge.DifferentError{}}
	chosen := &scenario.Scenario{Rest: scenario.Rest{Quiet: scenario.Duration(time.Second)}}
	if slowly(&scenario.Scenario{}, &SetupError{errors.New("another error")}) != nil || slowly(chosen, different) != nil {
		t.Error("a scenario is learnt again although that does not help")
	}
	sc := &scenario.Scenario{Name: "pause", Steps: []scenario.Step{{Name: "create"}}}
	slow := slowly(sc, different)
	if slow == nil || slow.Name != sc.Name || widest(slow) != longestWindow || window(&evidence.Run{}, slow) != longestWindow {
		t.Errorf("the scenario is %+v", slow)
	}
	if sc.Rest.Quiet != 0 || widest(sc) != firstWindow {
		t.Error("the original scenario was changed")
	}
}

func TestFirstRunWaitsLongerThanTheCommonPauses(t *testing.T) {
	if firstWindow <= time.Second {
		t.Errorf("a controller that continues after a second is taken to be at rest after %s", firstWindow)
	}
}

func TestOnlyTheRunThatConfirmsACrashEndsSoon(t *testing.T) {
	l, lesson := &Lab{}, &Lesson{Scenario: &scenario.Scenario{}}
	for _, of := range []struct {
		crashed int
		want    time.Duration
	}{{0, 0}, {1, exitsAgainFor}} {
		if got := l.referenceRun(lesson, 0, of.crashed, 1).exitsFor; got != of.want {
			t.Errorf("after %d crashes, a controller that keeps exiting is restarted for %s, want %s", of.crashed, got, of.want)
		}
	}
}
