package lab

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/upgrade"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// rolloutOf returns a run whose upgrade has the given requests for ConfigMaps, each as an instance, a verb
// and a name. Each write except a deletion makes a revision.
func rolloutOf(requests ...[3]string) *evidence.Run {
	out := &evidence.Run{}
	begin := func(step string) {
		out.Entries = append(out.Entries, trace.Entry{Step: &trace.Step{Name: step, What: "started"}})
	}
	begin("create")
	out.Entries = append(out.Entries, trace.Entry{Instance: "old-1", Call: &trace.Call{Verb: "create"}})
	begin(upgrade.Up)
	for i, r := range requests {
		call := &trace.Call{
			Verb: r[1], Code: 200, Target: trace.Target{Version: "v1", Resource: "configmaps", Namespace: "default", Name: r[2]},
			Request: json.RawMessage(`{"metadata":{"namespace":"default","name":"` + r[2] + `","resourceVersion":"1"}}`),
		}
		if r[1] == "create" || r[1] == "update" {
			revision := int64(10 + i)
			call.ResourceVersion = strconv.FormatInt(revision, 10)
			out.History.Changes = append(out.History.Changes, state.Change{
				Revision: revision, Ref: state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: r[2]},
			})
		}
		out.Entries = append(out.Entries, trace.Entry{Instance: r[0], Call: call})
	}
	return out
}

func TestTheNewVersionIsKilledAtItsWritesThatChangeSomethingExceptTheLast(t *testing.T) {
	lesson := &Lesson{Reference: &judge.Reference{Mask: &state.Mask{}}}
	run := rolloutOf(
		[3]string{"old-1", "update", "b"}, [3]string{"new-2", "get", "a"}, [3]string{"new-2", "create", "a"},
		[3]string{"new-2", "delete", "b"}, [3]string{"new-2", "update", "a"}, [3]string{"new-2", "update", "a"},
	)
	var got []string
	for _, f := range killsOf(run, lesson) {
		if f.Kind != fault.KillLost || f.Point.Step != upgrade.Up {
			t.Errorf("%+v", f)
		}
		got = append(got, f.Point.Verb+" "+f.Point.Object+" "+strconv.Itoa(f.Point.Occurrence))
	}
	if want := []string{"create default/a 1", "delete default/b 1", "update default/a 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if kills := killsOf(rolloutOf([3]string{"new-2", "update", "a"}), lesson); len(kills) > 0 {
		t.Errorf("a kill after the only write equals a restart at rest: %v", kills)
	}
}
