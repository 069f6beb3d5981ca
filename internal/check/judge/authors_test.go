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
