package judge

import (
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// The history may learn of a revision a moment later than the controller does. If the controller
// then writes the same content again, this write changes nothing.
func TestAWriteThatChangesNothingIsNotTheAuthorOfTheRevisionThatItWasSentWith(t *testing.T) {
	for sent, want := range map[string]bool{"4": true, "5": false} {
		run := &evidence.Run{
			History: state.History{Changes: []state.Change{{Revision: 5, At: 100 * time.Millisecond, Op: state.Updated}}},
			Entries: []trace.Entry{{At: 110 * time.Millisecond, Instance: "controller-1", Call: &trace.Call{
				Verb: "update", Code: 200, Took: 50 * time.Millisecond, ResourceVersion: "5",
				Target:  trace.Target{Group: "x", Version: "v1", Resource: "widgets", Name: "w"},
				Request: []byte(`{"kind":"Widget","metadata":{"name":"w","resourceVersion":"` + sent + `"}}`),
			}}},
		}
		if got := authors(run)[5] != nil; got != want {
			t.Errorf("a write that was sent with resourceVersion %s is the author of 5: %t", sent, got)
		}
	}
}

// The time of the arrival is computed from two readings of the clock, between which a busy machine may pause.
func TestACreationOrAnUpdateOfAnOlderRevisionIsTheAuthorWhateverTheClockSays(t *testing.T) {
	for _, c := range []struct {
		verb, sent string
		want       bool
	}{
		{"create", "", true}, {"update", "4", true}, {"update", "5", false}, {"update", "", false}, {"patch", "", false},
	} {
		run := &evidence.Run{
			History: state.History{Changes: []state.Change{{Revision: 5, At: 100 * time.Millisecond, Op: state.Updated}}},
			Entries: []trace.Entry{{At: 150 * time.Millisecond, Instance: "controller-1", Call: &trace.Call{
				Verb: c.verb, Code: 200, Took: 5 * time.Millisecond, ResourceVersion: "5",
				Target:  trace.Target{Group: "x", Version: "v1", Resource: "widgets", Name: "w"},
				Request: []byte(`{"kind":"Widget","metadata":{"name":"w","resourceVersion":"` + c.sent + `"}}`),
			}}},
		}
		if got := authors(run)[5] != nil; got != c.want {
			t.Errorf("%s that was sent with resourceVersion %q is the author of 5: %t", c.verb, c.sent, got)
		}
	}
}
