package rest

import (
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestARetryIsDueAfterTwiceTheLastPause(t *testing.T) {
	type try struct {
		at   time.Duration
		name string
		code int
	}
	for name, tt := range map[string]struct {
		tries []try
		want  time.Duration
	}{
		"nothing failed":               {[]try{{1 * time.Second, "a", 200}}, 0},
		"one failure tells no pause":   {[]try{{1 * time.Second, "a", 500}}, 0},
		"a growing pause":              {[]try{{1 * time.Second, "a", 500}, {2 * time.Second, "a", 500}, {10 * time.Second, "a", 500}}, 28 * time.Second},
		"a lost answer is a failure":   {[]try{{1 * time.Second, "a", 0}, {3 * time.Second, "a", 0}}, 9 * time.Second},
		"a success ends the series":    {[]try{{1 * time.Second, "a", 500}, {2 * time.Second, "a", 500}, {4 * time.Second, "a", 200}}, 0},
		"another object is another":    {[]try{{1 * time.Second, "a", 500}, {2 * time.Second, "b", 500}}, 0},
		"no pause longer than the cap": {[]try{{0, "a", 500}, {100 * time.Second, "a", 500}}, 162 * time.Second},
	} {
		var entries []trace.Entry
		for _, try := range tt.tries {
			entries = append(entries, trace.Entry{At: try.at, Instance: "controller-1", Call: &trace.Call{
				Verb: "patch", Code: try.code, Target: trace.Target{Version: "v1", Resource: "configmaps", Namespace: "default", Name: try.name},
			}})
		}
		if got := RetryDue(entries); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
