package rejection

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const digit = `Service "1-job" is invalid: metadata.name: Invalid value: "1-job": a DNS-1035 label must start with a letter`

// write is a request of the controller. A creation has its name only in the body.
func write(at time.Duration, verb, name string, code int, message string) trace.Entry {
	body, _ := json.Marshal(map[string]any{"kind": "Service", "metadata": map[string]any{"name": name}})
	c := &trace.Call{Verb: verb, Target: trace.Target{Resource: "services", Namespace: "default", Name: name}, Request: body, Code: code, Message: message}
	if verb == "create" {
		c.Target.Name = ""
	}
	return trace.Entry{At: at, Instance: "a", Call: c}
}

func TestAWriteIsRejectedIfItNeverSucceedsInTheStep(t *testing.T) {
	t.Parallel()
	step := evidence.Step{BeganAt: 10, RestedAt: 100}
	for name, of := range map[string]struct {
		entries []trace.Entry
		want    string
	}{
		"twice":                {[]trace.Entry{write(20, "create", "1-job", 422, digit), write(30, "create", "1-job", 422, digit)}, "Service default/1-job metadata.name"},
		"once":                 {[]trace.Entry{write(20, "create", "1-job", 422, digit)}, ""},
		"before the step":      {[]trace.Entry{write(1, "create", "1-job", 422, digit), write(30, "create", "1-job", 422, digit)}, ""},
		"then created anew":    {[]trace.Entry{write(20, "update", "web", 422, digit), write(30, "update", "web", 422, digit), write(40, "delete", "web", 200, ""), write(50, "create", "web", 201, "")}, ""},
		"a conflict":           {[]trace.Entry{write(20, "update", "web", 409, ""), write(30, "update", "web", 409, "")}, ""},
		"several fields":       {[]trace.Entry{write(20, "update", "web", 422, `Service "web" is invalid: [spec.a: Required value, spec.b: Required value]`), write(30, "update", "web", 422, `Service "web" is invalid: [spec.a: Required value, spec.b: Required value]`)}, "Service default/web spec.a"},
		"without a field":      {[]trace.Entry{write(20, "update", "web", 422, "no"), write(30, "update", "web", 422, "no")}, "Service default/web "},
		"another one succeeds": {[]trace.Entry{write(20, "update", "web", 422, "no"), write(25, "update", "other", 200, ""), write(30, "update", "web", 422, "no")}, "Service default/web "},
	} {
		found := In(&evidence.Run{Entries: of.entries, Took: 200}, &step)
		got := ""
		if len(found) > 0 {
			got = found[0].Object() + " " + found[0].Field()
		}
		if got != of.want || len(found) > 1 {
			t.Errorf("%s: %q, want %q", name, got, of.want)
		}
	}
}

func TestAProblemIsToldInTheStatusOrInAnEvent(t *testing.T) {
	t.Parallel()
	boat := state.Ref{GroupKind: schema.GroupKind{Group: "sea.example.com", Kind: "Boat"}, Namespace: "default", Name: "ellen"}
	event := state.Ref{GroupKind: schema.GroupKind{Kind: "Event"}, Namespace: "default", Name: "ellen.1"}
	change := func(ref state.Ref, text string) state.Change {
		after := state.Object{}
		if err := json.Unmarshal([]byte(text), (*map[string]any)(&after)); err != nil {
			t.Fatal(err)
		}
		return state.Change{Revision: 5, Ref: ref, Op: state.Updated, Before: state.Object{}, After: after}
	}
	for name, of := range map[string]struct {
		change state.Change
		want   Told
	}{
		"nothing":           {change(boat, `{"status":{"observedGeneration":2}}`), Told{}},
		"a condition":       {change(boat, `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"ServiceInvalid"}]}}`), Told{InStatus: true}},
		"only the time":     {change(boat, `{"status":{"lastFailureTime":"failed at 12:00"}}`), Told{}},
		"only the spec":     {change(boat, `{"spec":{"onError":"fail"}}`), Told{}},
		"a warning":         {change(event, `{"type":"Warning"}`), Told{InEvents: true}},
		"an ordinary Event": {change(event, `{"type":"Normal"}`), Told{}},
	} {
		run := &evidence.Run{History: state.History{Changes: []state.Change{of.change}}}
		if got := Tell(run, &evidence.Step{Began: 4, Rested: 6}, []string{"Boat.sea.example.com"}); got != of.want {
			t.Errorf("%s: %+v, want %+v", name, got, of.want)
		}
	}
}
