package election

import (
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// writesOf builds a run from writes of the form {instance, Lease, holder}. A write without a
// Lease creates a Pod. If owned is set, an object owns each Lease.
func writesOf(owned bool, writes ...[3]string) *evidence.Run {
	out := &evidence.Run{}
	for i, w := range writes {
		revision := int64(i + 10)
		call := &trace.Call{Verb: "create", Code: 201, ResourceVersion: strconv.FormatInt(revision, 10), Target: trace.Target{Resource: "pods"}}
		if w[1] != "" {
			call.Target = trace.Target{Group: "coordination.k8s.io", Resource: "leases", Namespace: "default", Name: w[1]}
			metadata := map[string]any{}
			if owned {
				metadata["ownerReferences"] = []any{map[string]any{"kind": "Widget", "name": "w"}}
			}
			out.History.Changes = append(out.History.Changes, state.Change{
				Revision: revision,
				Ref:      state.Ref{GroupKind: schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, Namespace: "default", Name: w[1]},
				After:    state.Object{"metadata": metadata, "spec": map[string]any{"holderIdentity": w[2]}},
			})
		}
		out.Entries = append(out.Entries, trace.Entry{Instance: w[0], Call: call})
	}
	return out
}

func TestElectionIsKnownByItsHolders(t *testing.T) {
	elects := [3]string{"one", "leader", "x"}
	pod := [3]string{"one", "", ""}
	for name, test := range map[string]struct {
		runs []*evidence.Run
		want []string
	}{
		"two runs with different holders":      {[]*evidence.Run{writesOf(false, elects, pod), writesOf(false, [3]string{"one", "leader", "y"}, pod)}, []string{"default/leader"}},
		"two instances of a run":               {[]*evidence.Run{writesOf(false, elects, pod, [3]string{"two", "leader", "y"})}, []string{"default/leader"}},
		"a renewal after other work":           {[]*evidence.Run{writesOf(false, elects, pod, elects, [3]string{"two", "leader", "y"})}, []string{"default/leader"}},
		"only one holder so far":               {[]*evidence.Run{writesOf(false, elects, pod)}, nil},
		"a holder that restarts do not change": {[]*evidence.Run{writesOf(false, elects, pod), writesOf(false, elects, pod)}, nil},
		"a Lease after other work":             {[]*evidence.Run{writesOf(false, pod, elects), writesOf(false, pod, [3]string{"one", "leader", "y"})}, nil},
		"a Lease that an object owns":          {[]*evidence.Run{writesOf(true, elects), writesOf(true, [3]string{"one", "leader", "y"})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewKnown()
			for _, out := range test.runs {
				e.Learn(out)
			}
			if got := e.Names(); !slices.Equal(got, test.want) {
				t.Errorf("known are %v, want %v", got, test.want)
			}
		})
	}
}

func TestElectionLearntInAnotherLabIsKnownUntilItIsRefuted(t *testing.T) {
	e := NewKnown()
	e.Trust([]string{"default/leader"})
	if got := e.Names(); !slices.Equal(got, []string{"default/leader"}) {
		t.Errorf("known are %v", got)
	}
	e.Learn(writesOf(true, [3]string{"one", "leader", "x"}))
	if got := e.Names(); len(got) > 0 {
		t.Errorf("known are %v, although an object owns the Lease", got)
	}
}

func TestLeaseThatDoesNotExpireIsNotReleased(t *testing.T) {
	now := metav1.NewMicroTime(time.Now())
	for name, test := range map[string]struct {
		spec coordinationv1.LeaseSpec
		want bool
	}{
		"held":             {coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15)), RenewTime: &now}, true},
		"released":         {coordinationv1.LeaseSpec{HolderIdentity: new(""), LeaseDurationSeconds: new(int32(1)), RenewTime: &now}, false},
		"without a time":   {coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15))}, false},
		"held for life":    {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: &now}, false},
		"without a holder": {coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(15)), RenewTime: &now}, false},
	} {
		if got := expires(&test.spec); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
