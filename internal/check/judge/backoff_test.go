package judge

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// repeated returns updates of one object, separated by the given pauses in milliseconds.
func repeated(pauses ...int) (entries []trace.Entry, end time.Duration) {
	end = time.Second
	for i, pause := range append([]int{0}, pauses...) {
		end += time.Duration(pause) * time.Millisecond
		entries = append(entries, trace.Entry{Seq: int64(i), At: end, Instance: "a", Call: &trace.Call{
			Verb: "update", Code: http.StatusOK, Target: trace.Target{Version: "v1", Resource: "services", Namespace: "default", Name: "sample"},
		}})
	}
	return entries, end
}

func TestRetriesAfterAnErrorAreNoLoop(t *testing.T) {
	for name, c := range map[string]struct {
		pauses []int
		loop   bool
	}{
		"a loop":                       {[]int{200, 201, 198, 200}, true},
		"a loop on a busy machine":     {[]int{120, 190, 150, 210}, true},
		"a doubled pause":              {[]int{80, 160, 320}, false},
		"a doubled pause, often":       {[]int{40, 80, 160, 320}, false},
		"requests that take some time": {[]int{102, 113, 220, 395}, false},
		"three writes":                 {[]int{184, 273}, false},
	} {
		writes, end := repeated(c.pauses...)
		s := evidence.Step{RestedAt: time.Second, Watched: end - time.Second, Idle: writes}
		if got := len(idleLoops(&state.Mask{}, &evidence.Run{Entries: writes}, s)) > 0; got != c.loop {
			t.Errorf("%s: %v, not %v", name, got, c.loop)
		}
	}
}

func TestAControllerThatCannotReachASimulatedPodDoesNotLoop(t *testing.T) {
	writes, end := repeated(200, 201, 198, 200)
	exec := trace.Entry{Seq: 99, At: writes[2].At, Instance: "a", Call: &trace.Call{
		Verb: "create", Code: http.StatusNotImplemented,
		Target: trace.Target{Version: "v1", Resource: "pods", Subresource: "exec", Namespace: "default", Name: "sample-0"},
	}}
	run := &evidence.Run{Entries: append(writes, exec)}
	s := evidence.Step{RestedAt: time.Second, Watched: end - time.Second, Idle: run.Entries}
	if loops := idleLoops(&state.Mask{}, run, s); len(loops) > 0 {
		t.Errorf("found %v", loops[0].what)
	}
	restless := evidence.Step{BeganAt: 0, RestedAt: end, Restless: true}
	if l, found := restlessLoop(&state.Mask{}, nil, run, restless); found {
		t.Errorf("found %v", l.what)
	}
	exec.Call.Code = http.StatusSwitchingProtocols
	s.Idle = slices.Concat(writes, []trace.Entry{exec})
	if loops := idleLoops(&state.Mask{}, run, s); len(loops) == 0 {
		t.Error("a loop with commands that succeed is not found")
	}
}
