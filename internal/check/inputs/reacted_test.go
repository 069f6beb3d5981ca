package inputs

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestAReactionToATrialIsAChangeOfAnotherObject(t *testing.T) {
	t.Parallel()
	child := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	lease := state.Ref{GroupKind: schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, Namespace: "default", Name: "ellen"}
	clock := state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: "clock"}
	trials := &scenario.Trials{
		Object: scenario.ObjectRef{Namespace: "default", Name: "ellen"}, KindGroup: "Boat.sea.example.com",
		Controls: []string{"touch-1"},
		Trials: []scenario.Trial{
			{Field: "spec.masts", Verb: "change", Step: "masts", Undo: "undo-masts"},
			{Field: "spec.flag", Verb: "change", Step: "flag", Undo: "undo-flag"},
		},
	}
	spec := func(replicas, rollout string) string {
		return `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"` + rollout + `"}},"spec":{"replicas":` + replicas + `}}`
	}
	two, three, four := spec("2", "1"), spec("3", "2"), spec("4", "3")
	s := (&story{}).step("create").update(child, `{}`, two).step("touch-1").update(clock, `{"data":{"round":"1"}}`, `{"data":{"round":"2"}}`)
	want := func(what string, reaction Reaction) {
		t.Helper()
		if got := Reacted(trials, &s.run); got != reaction {
			t.Errorf("%s: %d, want %d", what, got, reaction)
		}
	}
	want("before the first trial", Unneeded)
	s.step("masts").spec(2, 3)
	want("only the object has changed", Missing)
	s.update(lease, `{"spec":{"renewTime":"a"}}`, `{"spec":{"renewTime":"b"}}`)
	want("the controller has renewed its Lease", Missing)
	s.update(clock, `{"data":{"round":"2"}}`, `{"data":{"round":"3"}}`)
	want("an object has changed that changes in each round", Missing)
	s.update(child, two, three)
	want("the child has changed", Complete)
	s.step("undo-masts").spec(3, 2)
	want("the old value has returned", Left)
	s.update(child, three, four)
	want("the child has changed to something else", Left)
	set := state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, Namespace: "default", Name: "ellen-1"}
	s.update(set, `{}`, `{"metadata":{"ownerReferences":[{"kind":"Deployment","name":"ellen","uid":"1","controller":true}]}}`)
	s.update(child, four, spec("2", "4"))
	want("the child is as before, apart from its history", Complete)
	s.step("flag").spec(2, 3).step("undo-flag").spec(3, 2)
	want("there was nothing to undo", Unneeded)
}
