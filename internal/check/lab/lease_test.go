package lab

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// leased is a run in whose store there is a Lease, as the API server keeps it.
func leased(t *testing.T, spec coordinationv1.LeaseSpec) *run {
	t.Helper()
	s := newStore(nil)
	s.begin()
	object := stored(t, coordinationv1.SchemeGroupVersion.WithKind("Lease"), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leader"}, Spec: spec,
	})
	s.take(7, []storage.Commit{{Key: "/registry/leases/default/leader", Value: object, Revision: 7}})
	return &run{lab: &Lab{store: s}}
}

// spec is what a Lease says that was acquired and renewed so long before now.
func spec(now time.Time, holder string, acquired, renewed time.Duration) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(15)),
		AcquireTime: new(metav1.NewMicroTime(now.Add(-acquired))), RenewTime: new(metav1.NewMicroTime(now.Add(-renewed))),
	}
}

func TestWhoIsStartedAnewIsWaitedForUntilTheLeaseHasRunOut(t *testing.T) {
	now := time.Now()
	const term = 15*time.Second*3/2 + upTimeout // of a Lease of 15 s
	for name, test := range map[string]struct {
		spec coordinationv1.LeaseSpec
		a    activity
		want time.Duration
	}{
		"it asks for the Lease of one that is gone": {spec(now, "gone", time.Minute, 6*time.Second), activity{instances: 1, electing: true, begun: now.Add(-5 * time.Second)}, term - 5*time.Second},
		"it may still ask for it":                   {spec(now, "gone", time.Minute, 2*time.Second), activity{instances: 1, begun: now.Add(-time.Second)}, term - time.Second},
		"it never asked":                            {spec(now, "gone", time.Minute, 6*time.Second), activity{instances: 1, begun: now.Add(-5 * time.Second)}, 0},
		"it has taken it":                           {spec(now, "next", time.Second, time.Second), activity{instances: 1, electing: true, begun: now.Add(-5 * time.Second)}, 0},
		"nobody holds it":                           {spec(now, "", time.Minute, 6*time.Second), activity{instances: 1, electing: true, begun: now.Add(-5 * time.Second)}, 0},
		"it has run out long ago":                   {spec(now, "gone", time.Hour, time.Minute), activity{instances: 1, electing: true, begun: now.Add(-term)}, 0},
		"another one leads":                         {spec(now, "first", time.Minute, 6*time.Second), activity{instances: 2, electing: true, begun: now.Add(-5 * time.Second)}, 0},
		"nobody is up":                              {spec(now, "gone", time.Minute, 6*time.Second), activity{begun: now.Add(-5 * time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := leased(t, test.spec).succession(&test.a, now)
			if diff := got - test.want; diff < -time.Millisecond || diff > time.Millisecond {
				t.Errorf("%v to wait for, not %v", got, test.want)
			}
		})
	}
}

func TestWhoHasTakenALeaseHasBegunThen(t *testing.T) {
	now := time.Now()
	a := activity{instances: 1, electing: true, begun: now.Add(-20 * time.Second)}
	leased(t, spec(now, "next", 2*time.Second, time.Second)).succession(&a, now)
	if since := now.Sub(a.begun); since < 1900*time.Millisecond || since > 2100*time.Millisecond {
		t.Errorf("it has begun %v ago, not the 2 s for which it leads", since)
	}
}

func TestALeaseForADayIsNotWaitedForThatLong(t *testing.T) {
	now := time.Now()
	held := spec(now, "gone", time.Hour, time.Minute)
	held.LeaseDurationSeconds = new(int32(86400))
	a := activity{instances: 1, electing: true, begun: now}
	if got := leased(t, held).succession(&a, now); got != longestTerm {
		t.Errorf("%v, not %v", got, longestTerm)
	}
}

func TestALeaseWithoutATermIsOfTheUsualOne(t *testing.T) {
	r := leased(t, coordinationv1.LeaseSpec{HolderIdentity: new("a")})
	if got, want := r.handover(), usualDuration*3/2+upTimeout; got != want {
		t.Errorf("%v, not %v", got, want)
	}
	r.lab.store.begin() // what there is then is the plane's own
	if got := r.handover(); got != 0 {
		t.Errorf("%v for a Lease of the plane's own", got)
	}
}
