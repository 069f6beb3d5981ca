package judge

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestAWriteThatIsRejectedForEverIsARemarkUnlessAStatusSaysSo(t *testing.T) {
	t.Parallel()
	rejected := func(times int) (entries []trace.Entry) {
		for i := range times {
			entries = append(entries, trace.Entry{At: 20, Instance: "controller-1", Call: &trace.Call{
				ID: int64(i), Verb: "update", Code: 422, Message: `Service "web" is invalid: spec.type: Unsupported value: "x"`,
				Target: trace.Target{Resource: "services", Namespace: "default", Name: "web"},
			}})
		}
		return entries
	}
	change := func(kind schema.GroupKind, text string) state.Change {
		after := map[string]any{}
		if err := json.Unmarshal([]byte(text), &after); err != nil {
			t.Fatal(err)
		}
		return state.Change{Revision: 5, Op: state.Updated, Ref: state.Ref{GroupKind: kind, Namespace: "default", Name: "web"}, Before: state.Object{}, After: after}
	}
	boat := schema.GroupKind{Group: "sea.example.com", Kind: "Boat"}
	for name, of := range map[string]struct {
		first, second int // rejected requests in each run
		change        state.Change
		want          string // in the sentence
	}{
		"in both runs":         {2, 3, change(boat, `{"status":{"phase":"Running"}}`), "and no status says so"},
		"in one run":           {2, 0, change(boat, `{"status":{"phase":"Running"}}`), ""},
		"with a condition":     {2, 2, change(boat, `{"status":{"conditions":[{"type":"Ready","message":"the Service is invalid"}]}}`), ""},
		"with only an Event":   {2, 2, change(schema.GroupKind{Kind: "Event"}, `{"type":"Warning"}`), "only Events say so"},
		"rejected only once":   {1, 1, change(boat, `{}`), ""},
		"a condition of a Pod": {2, 2, change(schema.GroupKind{Kind: "Pod"}, `{"status":{"reason":"Error"}}`), "and no status says so"},
	} {
		var inputs []*input
		for _, n := range []int{of.first, of.second} {
			run := &evidence.Run{
				Entries: rejected(n), Steps: []evidence.Step{{Name: "change", Began: 4, Rested: 6, BeganAt: 10, RestedAt: 100}},
				History: state.History{Changes: []state.Change{of.change}},
			}
			inputs = append(inputs, newInput(&Reference{Scenario: &scenario.Scenario{Name: "boat-change"}}, run, &subject.Subject{Primary: []string{"Boat.sea.example.com"}}))
		}
		found := refusedLate(inputs)
		if (len(found) == 1) != (of.want != "") || len(found) == 1 && !strings.Contains(found[0].Sentence, of.want) {
			t.Errorf("%s: %+v, want %q", name, found, of.want)
		}
		if len(found) == 1 && (found[0].Differences[0] != state.Difference{Object: "services default/web", Path: "spec.type"}) {
			t.Errorf("%s: the place is %+v", name, found[0].Differences)
		}
	}
}
