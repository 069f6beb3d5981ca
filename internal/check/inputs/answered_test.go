package inputs

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestAStepOfATrialIsAnsweredByAnotherObject(t *testing.T) {
	t.Parallel()
	child := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	lease := state.Ref{GroupKind: schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, Namespace: "default", Name: "ellen"}
	clock := state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: "clock"}
	trials := &scenario.Trials{
		Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
		Controls: []string{"touch-1"},
		Trials:   []scenario.Trial{{Field: "spec.masts", Verb: "change", Step: "masts", Undo: "undo-masts"}},
	}
	const two, three, four = `{"spec":{"replicas":2}}`, `{"spec":{"replicas":3}}`, `{"spec":{"replicas":4}}`
	s := (&story{}).step("create").update(child, `{}`, two).step("touch-1").update(clock, `{"data":{"round":"1"}}`, `{"data":{"round":"2"}}`)
	want := func(what string, answered bool) {
		t.Helper()
		if got := Answered(trials, &s.run); got != answered {
			t.Errorf("%s: %t", what, got)
		}
	}
	want("before the first trial", false)
	s.step("masts").spec(2, 3)
	want("only the object has changed", false)
	s.update(lease, `{"spec":{"renewTime":"a"}}`, `{"spec":{"renewTime":"b"}}`)
	want("the controller has renewed its Lease", false)
	s.update(clock, `{"data":{"round":"2"}}`, `{"data":{"round":"3"}}`)
	want("an object has changed that changes in each round", false)
	s.update(child, two, three)
	want("the child has changed", true)
	s.step("undo-masts").spec(3, 2)
	want("the old value has returned", false)
	s.update(child, three, four)
	want("the child has changed to something else", false)
	s.update(child, four, two)
	want("the child is as before", true)
}
