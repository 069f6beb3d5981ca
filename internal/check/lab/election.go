package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// elections knows the Leases with which the instances of the controller elect a leader. A
// controller may also write Leases for other purposes, so a Lease counts only if
//
//   - each instance that writes the Lease writes it before it does any other work,
//   - two instances have held it under different names, and
//   - no object owns it.
//
// Only if these names differ does a restarted instance have to wait for the Lease.
type elections struct {
	mu      sync.Mutex
	holders map[string]map[string]bool // by "namespace/name" of the Lease
	other   map[string]bool            // Leases for another purpose
	trusted map[string]bool            // learnt in another lab
}

func newElections() *elections {
	return &elections{holders: map[string]map[string]bool{}, other: map[string]bool{}, trusted: map[string]bool{}}
}

// learn reads the Leases of a run.
func (e *elections) learn(out *evidence.Run) {
	written := map[string]state.Change{}
	for _, c := range out.History.Changes {
		if request.IsLeaseKind(c.Ref.GroupKind) && c.After != nil {
			written[formatRevision(c.Revision)] = c
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	type writer struct{ instance, lease string }
	worked, early := map[string]bool{}, map[writer]bool{}
	for i := range out.Entries {
		entry := &out.Entries[i]
		if entry.Call == nil || entry.Instance == "" || entry.Call.Code >= 300 {
			continue
		}
		if request.IsWork(entry.Call) {
			worked[entry.Instance] = true
		}
		c, ok := written[entry.Call.ResourceVersion]
		if !ok || !request.IsLease(entry.Call.Target) || !request.IsWrite(entry.Call) {
			continue
		}
		w := writer{entry.Instance, leaseName(c.Ref)}
		early[w] = early[w] || !worked[w.instance]
		e.note(c.Ref, c.After, early[w])
	}
}

func leaseName(ref state.Ref) string { return ref.Namespace + "/" + ref.Name }

func (e *elections) note(ref state.Ref, object state.Object, early bool) {
	name := leaseName(ref)
	if !early || len(object.Owners()) > 0 {
		e.other[name] = true
	}
	holder := readLease(ref, object).holder
	if holder == "" {
		return
	}
	if e.holders[name] == nil {
		e.holders[name] = map[string]bool{}
	}
	e.holders[name][holder] = true
}

// trust adds Leases that another lab has learnt.
func (e *elections) trust(names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		e.trusted[name] = true
	}
}

// known lists the Leases with which a leader is elected, as "namespace/name".
func (e *elections) known() (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := maps.Clone(e.trusted)
	for name, holders := range e.holders {
		all[name] = all[name] || len(holders) > 1
	}
	for name, elects := range all {
		if elects && !e.other[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// release returns a function that releases the Leases of instances that are gone, as if the
// Leases had expired before the next instance starts: an instance can be down for any time. It
// must not be called while an instance is up. A Lease that does not expire, because it has no
// duration or is never renewed, keeps its holder.
func (l *Lab) release(ctx context.Context, log *trace.Log) func() {
	return func() {
		for _, name := range l.elections.known() {
			text := "Lease " + name + " expired while the controller was down"
			switch released, err := l.releaseLease(ctx, name); {
			case err != nil:
				text = fmt.Sprintf("Lease %s could not be released, so it has to expire: %v", name, err)
			case !released:
				continue
			}
			log.Record(trace.Entry{Fault: &trace.Fault{What: "lease", Text: text}})
		}
	}
}

// releaseLease writes what client-go's leader election writes when a leader ends with
// ReleaseOnCancel, so every instance that waits for a Lease understands it.
func (l *Lab) releaseLease(ctx context.Context, name string) (released bool, err error) {
	namespace, name, _ := strings.Cut(name, "/")
	leases := l.client.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(namespace)
	for range 5 {
		object, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, ignoreNotFound(err)
		}
		var lease coordinationv1.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &lease); err != nil {
			return false, err
		}
		if !expires(&lease.Spec) {
			return false, nil
		}
		lease.Spec = releasedFrom(&lease.Spec, time.Now())
		if object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&lease); err != nil {
			return false, err
		}
		object.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		_, err = leases.Update(ctx, object, metav1.UpdateOptions{FieldManager: otherClient})
		if err == nil || !apierrors.IsConflict(err) { // the last renewal may have been on its way
			return err == nil, err
		}
	}
	return false, errors.New("the Lease kept changing")
}

// expires reports whether a Lease has a holder and expires unless it is renewed.
func expires(spec *coordinationv1.LeaseSpec) bool {
	return spec.HolderIdentity != nil && *spec.HolderIdentity != "" &&
		spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds > 0 && spec.RenewTime != nil
}

func releasedFrom(spec *coordinationv1.LeaseSpec, now time.Time) coordinationv1.LeaseSpec {
	record := resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, AcquireTime: metav1.NewTime(now), RenewTime: metav1.NewTime(now),
	}
	if spec.LeaseTransitions != nil {
		record.LeaderTransitions = int(*spec.LeaseTransitions)
	}
	return resourcelock.LeaderElectionRecordToLeaseSpec(&record)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
