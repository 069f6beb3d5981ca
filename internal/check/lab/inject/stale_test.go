package inject

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestEarlierVersionIsThatOfTheChange(t *testing.T) {
	change := func(kind string, revision int64) state.Change {
		return state.Change{Revision: revision, Ref: state.Ref{GroupKind: schema.GroupKind{Kind: kind}}}
	}
	history := state.History{Changes: []state.Change{change("Secret", 5), change("Pod", 6), change("Secret", 9)}}
	secrets := schema.GroupKind{Kind: "Secret"}
	for number, want := range []string{"5", "9"} {
		if got, err := earlier(history, secrets, number); got != want || err != nil {
			t.Errorf("change %d has the version %q, %v; want %s", number, got, err, want)
		}
	}
	if _, err := earlier(history, secrets, 2); err == nil || !strings.Contains(err.Error(), "only 2 changes to Secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestFaultThatTurnsOutToBeImpossibleIsNotApplied(t *testing.T) {
	i, controller := armed(), &instance.Set{}
	i.Attach(controller)
	createPod(i)
	i.refuse("the list is gone")
	i.refuse("something else")
	if got := i.Outcome().NotApplied; got != "the list is gone" {
		t.Errorf("the reason is %q", got)
	}
	if _, err := controller.Activity(); err != ErrOver {
		t.Errorf("the run goes on: %v", err)
	}
}
