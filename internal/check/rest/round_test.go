package rest

import (
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestTheSameRequestForTheThirdTimeEndsAFullRound(t *testing.T) {
	t.Parallel()
	call := func(at time.Duration, verb, resource string) trace.Entry {
		return trace.Entry{At: at * time.Second, Instance: "controller-1", Call: &trace.Call{Verb: verb, Target: trace.Target{Resource: resource, Name: "a"}}}
	}
	own := call(9, "get", "pods")
	own.Instance = ""
	for name, of := range map[string]struct {
		entries []trace.Entry
		full    bool
		asked   time.Duration
	}{
		"none":                        {nil, false, 0},
		"twice":                       {[]trace.Entry{call(5, "delete", "pods"), call(6, "delete", "pods")}, false, 6},
		"three times":                 {[]trace.Entry{call(5, "delete", "pods"), call(6, "get", "pods"), call(7, "delete", "pods"), call(9, "delete", "pods")}, true, 9},
		"twice, and once before":      {[]trace.Entry{call(3, "get", "pods"), call(5, "get", "pods"), call(6, "get", "pods")}, false, 6},
		"different ones":              {[]trace.Entry{call(5, "get", "pods"), call(6, "get", "nodes"), call(7, "delete", "pods")}, false, 7},
		"of an Event":                 {[]trace.Entry{call(5, "update", "events"), call(6, "update", "events"), call(7, "update", "events")}, false, 0},
		"watches":                     {[]trace.Entry{call(5, "watch", "pods"), call(6, "watch", "pods"), call(7, "watch", "pods")}, false, 0},
		"two, and one by the checker": {[]trace.Entry{call(5, "get", "pods"), call(6, "get", "pods"), own}, false, 6},
	} {
		full, asked := Round(of.entries, 4*time.Second)
		if full != of.full || asked != of.asked*time.Second {
			t.Errorf("%s: a full round: %v, last request at %v; want %v and %v s", name, full, asked, of.full, int(of.asked))
		}
	}
}
