package inputs

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestAResourceIsUnreadyIfItsStatusDoesNotSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	const ready = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Sailing"}]}}`
	not := func(status, reason, message string) string {
		return `{"status":{"conditions":[{"type":"Ready","status":"` + status + `","reason":"` + reason + `","message":"` + message + `"}]}}`
	}
	for name, of := range map[string]struct {
		field, value, before, after string
		want                        Outcome
	}{
		"it waits":                             {"spec.masts", "3", ready, not("False", "Rigging", "2 of 3 masts stand"), Unready},
		"it does not know":                     {"spec.masts", "3", ready, not("Unknown", "Rigging", ""), Unready},
		"another condition says what is wrong": {"spec.masts", "3", ready, `{"status":{"conditions":[{"type":"Degraded","status":"True","message":"the mast is missing"}]}}`, Effect},
		"the condition is gone":                {"spec.masts", "3", ready, `{"status":{"phase":"Rigging"}}`, Unready},
		"it says what is wrong":                {"spec.masts", "3", ready, not("False", "Rigging", "cannot carry 3 masts"), Effect},
		"the reason says what is wrong":        {"spec.sail", `"x"`, ready, not("False", "SailNotFound", ""), Effect},
		"it was not ready before":              {"spec.masts", "3", not("False", "Rigging", ""), not("False", "Rigging", "2 of 3"), Effect},
		"it is still ready":                    {"spec.masts", "3", ready, not("True", "Anchored", ""), Effect},
		"there are to be none":                 {"spec.masts", "0", ready, not("False", "Rigging", ""), Effect},
		"it is stopped on purpose":             {"spec.moored.suspended", "true", ready, not("False", "Moored", ""), Effect},
		"a field is removed, and it waits":     {"spec.masts", "", ready, not("False", "Rigging", ""), Unready},
	} {
		s := (&story{}).step("create").update(boat, `{}`, of.before).step("touch-1")
		s.step("change").update(boat, of.before, of.before).update(boat, of.before, of.after)
		s.step("undo").update(boat, of.after, of.after).update(boat, of.after, of.before).step("later")
		trials := &scenario.Trials{
			Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com", Controls: []string{"touch-1"},
			Trials: []scenario.Trial{{Field: of.field, Verb: "change", Value: json.RawMessage(of.value), Step: "change", Undo: "undo"}},
		}
		s.run.History.Changes[1].After = nil
		tried := Judge(trials, &s.run)[0]
		if tried.Outcome != of.want {
			t.Errorf("%s: %s (%s), want %s", name, tried.Outcome, tried.Why, of.want)
		}
		if trouble := tried.Outcome == Unready || strings.Contains(name, "says what is wrong"); tried.Trouble != trouble {
			t.Errorf("%s: trouble is %t", name, tried.Trouble)
		}
		if tried.Outcome == Unready && strings.Contains(tried.Why, "2 of 3") {
			t.Errorf("%s: the reason has the message, which differs from field to field: %s", name, tried.Why)
		}
	}
}

func TestAControllerStallsIfItNoLongerDoesWhatItDidTwice(t *testing.T) {
	t.Parallel()
	did := func(outcome Outcome, signs ...string) Tried { return Tried{Outcome: outcome, Signs: signs} }
	for name, of := range map[string]struct {
		done        []Tried
		want, clear bool
	}{
		"it does nothing":              {[]Tried{did(Effect, "a", "b"), did(Effect, "a"), did(Inert)}, true, true},
		"it only prints an error":      {[]Tried{did(Effect, "a"), did(Effect, "a"), did(Told)}, true, true},
		"it catches up later":          {[]Tried{did(Effect, "a"), did(Effect, "a"), did(Effect)}, true, true},
		"it does something else":       {[]Tried{did(Effect, "a"), did(Effect, "a"), did(Effect, "c")}, true, true},
		"it goes on":                   {[]Tried{did(Effect, "a", "b"), did(Effect, "a"), did(Effect, "a")}, false, true},
		"it did it only once":          {[]Tried{did(Effect, "a"), did(Inert), did(Inert)}, false, false},
		"it did something else before": {[]Tried{did(Effect, "a"), did(Effect, "b"), did(Inert)}, false, false},
		"it panics":                    {[]Tried{did(Effect, "a"), did(Effect, "a"), did(Crashed)}, false, false},
		"it never comes to rest":       {[]Tried{did(Effect, "a"), did(Effect, "a"), did(Restless)}, false, false},
		"there was no time":            {[]Tried{did(Effect, "a"), did(Effect, "a"), did(Unknown)}, false, false},
		"the twin was refused":         {[]Tried{did(Refused), did(Refused), did(Refused)}, false, false},
		"the run ended early":          {[]Tried{did(Effect, "a"), did(Effect, "a")}, false, false},
	} {
		if stalls, clear := Stalls(of.done); stalls != of.want || clear != of.clear {
			t.Errorf("%s: stalls: %t, clear: %t", name, stalls, clear)
		}
	}
}

func TestAResourceThatWaitsForTheClusterIsNotUnready(t *testing.T) {
	t.Parallel()
	ref := func(group, kind string) state.Ref {
		return state.Ref{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Namespace: "default", Name: "ellen-0"}
	}
	const address = `"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}`
	for name, of := range map[string]struct {
		ref    state.Ref
		object string
		want   Outcome
	}{
		"a Pod that runs":              {ref("", "Pod"), `{"status":{"phase":"Running"}}`, Unready},
		"a Pod without a node":         {ref("", "Pod"), `{"status":{"phase":"Pending"}}`, Effect},
		"a claim without a volume":     {ref("", "PersistentVolumeClaim"), `{"status":{"phase":"Pending"}}`, Effect},
		"a Service in the cluster":     {ref("", "Service"), `{"spec":{"type":"ClusterIP"},"status":{"loadBalancer":{}}}`, Unready},
		"a Service without an address": {ref("", "Service"), `{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}}}`, Effect},
		"a Service with an address":    {ref("", "Service"), `{"spec":{"type":"LoadBalancer"},` + address + `}`, Unready},
		"an Ingress without one":       {ref("networking.k8s.io", "Ingress"), `{"spec":{}}`, Effect},
		"an Ingress with one":          {ref("networking.k8s.io", "Ingress"), `{` + address + `}`, Unready},
	} {
		const ready, not = `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
		s := (&story{}).step("create").update(of.ref, `{}`, of.object).update(boat, `{}`, ready)
		s.step("change").update(boat, ready, ready).update(boat, ready, not)
		s.step("undo").update(boat, not, not).update(boat, not, ready).step("later")
		trials := &scenario.Trials{
			Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
			Trials: []scenario.Trial{{Field: "spec.nodeSelector", Verb: "add", Value: json.RawMessage(`{"koboshi":"koboshi"}`), Step: "change", Undo: "undo"}},
		}
		if got := Judge(trials, &s.run)[0]; got.Outcome != of.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Outcome, got.Why, of.want)
		}
	}
}
