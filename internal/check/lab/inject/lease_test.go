package inject

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestOnlyRequestsAboutElectionsFailWithoutALease(t *testing.T) {
	deaf := deafTo(map[state.Ref]election.Lease{
		{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "d", Name: "leader"}: {Holder: "a"},
	})
	for target, fails := range map[trace.Target]bool{
		{Group: "coordination.k8s.io", Resource: "leases", Namespace: "d", Name: "any"}: true,
		{Resource: "configmaps", Namespace: "d", Name: "leader"}:                        true,
		{Resource: "configmaps", Namespace: "d", Name: "other"}:                         false,
		{Resource: "configmaps", Namespace: "e", Name: "leader"}:                        false,
		{Resource: "configmaps", Namespace: "d"}:                                        false,
		{Resource: "secrets", Namespace: "d", Name: "leader"}:                           false,
		{Group: "example.com", Resource: "leases", Namespace: "d", Name: "any"}:         false,
	} {
		a, decided := deaf(&trace.Call{Verb: "update", Target: target})
		if decided != fails || (a.Answer != nil) != fails {
			t.Errorf("%v: decided %t, the answer is %+v", target, decided, a.Answer)
		}
	}
}

// leases is a store that holds one election, in a ConfigMap.
type leases struct {
	touched broadcast.Signal
	mu      sync.Mutex
	holder  string
}

func (l *leases) Objects() map[state.Ref]state.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	ref := state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "d", Name: "leader"}
	return map[state.Ref]state.Object{ref: {"metadata": map[string]any{"annotations": map[string]any{
		request.LeaderAnnotation: `{"holderIdentity":"` + l.holder + `","leaseDurationSeconds":15}`,
	}}}}
}

func (l *leases) History() state.History { return state.History{} }

func (l *leases) Touched() <-chan struct{} { return l.touched.Next() }

func (l *leases) take(holder string) {
	l.mu.Lock()
	l.holder = holder
	l.mu.Unlock()
	l.touched.Fire()
}

func TestASecondInstanceTakesTheElectionOfAConfigMap(t *testing.T) {
	store, c := &leases{holder: "one"}, sleeping(t)
	i := New(Config{Fault: fault.Fault{Kind: fault.LoseLease, Point: fault.Point{Step: "s"}}, Log: trace.NewLog(time.Now()), Store: store})
	i.Attach(c)
	i.Enter("s")
	if done, err := i.Strike(t.Context()); done || err != nil {
		t.Fatalf("done is %t, %v, although the world has to come to rest with two instances", done, err)
	}
	both := c.Instances()
	if len(both) != 2 {
		t.Fatalf("%d instances run", len(both))
	}
	renewal := &trace.Call{Verb: "update", Target: trace.Target{Resource: "configmaps", Namespace: "d", Name: "leader"}}
	struck := make(chan error, 1)
	go func() {
		done, err := i.Strike(t.Context())
		if err == nil && !done {
			err = errors.New("a third phase follows")
		}
		struck <- err
	}()
	for !i.Holds() { // the second phase begins
		runtime.Gosched()
	}
	if both[0].Decide(renewal).Answer == nil || both[1].Decide(renewal).Answer != nil {
		t.Error("it is not the leader whose renewal fails")
	}
	store.take("two")
	if err := <-struck; err != nil {
		t.Fatal(err)
	}
	if i.Release("s"); both[0].Decide(renewal).Answer != nil {
		t.Error("the renewal still fails at rest")
	}
}
