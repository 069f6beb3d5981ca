package lab

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestRestWaitsForAKindThatNeverObservesItsGenerationsAFewTimesOnly(t *testing.T) {
	boat, mast := schema.GroupKind{Group: "sea.example.com", Kind: "Boat"}, schema.GroupKind{Group: "sea.example.com", Kind: "Mast"}
	late := func() state.Object {
		return state.Object{"metadata": map[string]any{"generation": int64(2)}, "status": map[string]any{"observedGeneration": int64(1)}}
	}
	s := newStore([]byte("key"))
	s.now = state.Snapshot{{GroupKind: boat, Name: "ellen"}: late(), {GroupKind: boat, Name: "alma"}: late()}
	r := &run{lab: &Lab{store: s, inVain: map[schema.GroupKind]int{}}}
	for n := range mostBehind {
		if r.behind() != 2 {
			t.Fatalf("after %d rests in vain, %d objects delay rest", n, r.behind())
		}
		r.vain()
	}
	if r.behind() != 0 {
		t.Error("boats still delay rest")
	}
	s.now[state.Ref{GroupKind: mast, Name: "main"}] = late()
	if r.behind() != 1 {
		t.Error("another kind does not delay rest")
	}
	r.lesson = &Lesson{}
	if r.behind() != 0 {
		t.Error("it delays rest in a run with a fault")
	}
}

func TestAStepThatLacksOnlyAnObservedGenerationIsAtRest(t *testing.T) {
	r := &run{lab: &Lab{store: newStore([]byte("key"))}}
	for why, want := range map[rest.Reason]bool{rest.Behind: true, rest.Changes: false, rest.Asking: false} {
		if got := r.onlyBehind(&rest.Verdict{Why: why}); got != want {
			t.Errorf("%s: %t, want %t", why, got, want)
		}
	}
}
