package lab

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// leased returns a run whose store holds a Lease in the API server's encoding.
func leased(t *testing.T, spec coordinationv1.LeaseSpec) *run {
	t.Helper()
	s := newStore(nil)
	s.begin(time.Now(), nil)
	object := encoded(t, coordinationv1.SchemeGroupVersion.WithKind("Lease"), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leader"}, Spec: spec,
	})
	s.take(7, []storage.Commit{{Key: "/registry/leases/default/leader", Value: object, Revision: 7}})
	return &run{lab: &Lab{store: s}}
}

// spec returns the spec of a Lease, given how long ago the Lease was acquired and renewed.
func spec(now time.Time, holder string, acquired, renewed time.Duration) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(15)),
		AcquireTime: new(metav1.NewMicroTime(now.Add(-acquired))), RenewTime: new(metav1.NewMicroTime(now.Add(-renewed))),
	}
}

func TestRestartedControllerIsGivenTimeForTheLeaseToExpire(t *testing.T) {
	now := time.Now()
	const term = 15*time.Second*3/2 + rest.UpTimeout // the term of a Lease of 15 s
	for name, test := range map[string]struct {
		spec coordinationv1.LeaseSpec
		a    instance.Activity
		want time.Duration
	}{
		"it requests the Lease of a holder that is gone": {spec(now, "gone", time.Minute, 6*time.Second), instance.Activity{Instances: 1, Electing: true, Begun: now.Add(-5 * time.Second)}, term - 5*time.Second},
		"it may still request the Lease":                 {spec(now, "gone", time.Minute, 2*time.Second), instance.Activity{Instances: 1, Begun: now.Add(-time.Second)}, term - time.Second},
		"it never requested the Lease":                   {spec(now, "gone", time.Minute, 6*time.Second), instance.Activity{Instances: 1, Begun: now.Add(-5 * time.Second)}, 0},
		"it has taken the Lease":                         {spec(now, "next", time.Second, time.Second), instance.Activity{Instances: 1, Electing: true, Begun: now.Add(-5 * time.Second)}, 0},
		"the Lease has no holder":                        {spec(now, "", time.Minute, 6*time.Second), instance.Activity{Instances: 1, Electing: true, Begun: now.Add(-5 * time.Second)}, 0},
		"the Lease expired long ago":                     {spec(now, "gone", time.Hour, time.Minute), instance.Activity{Instances: 1, Electing: true, Begun: now.Add(-term)}, 0},
		"another instance leads":                         {spec(now, "first", time.Minute, 6*time.Second), instance.Activity{Instances: 2, Electing: true, Begun: now.Add(-5 * time.Second)}, 0},
		"no instance is up":                              {spec(now, "gone", time.Minute, 6*time.Second), instance.Activity{Begun: now.Add(-5 * time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := leased(t, test.spec).succession(&test.a, now)
			if diff := got - test.want; diff < -time.Millisecond || diff > time.Millisecond {
				t.Errorf("the wait is %v, want %v", got, test.want)
			}
		})
	}
}

func TestControllerThatCouldNotElectDuringAnOutageIsGivenTimeForItsNextAttempt(t *testing.T) {
	now := time.Now()
	free := spec(now, "", time.Minute, 6*time.Second)
	waiting := instance.Activity{Instances: 1, Electing: true}
	openShift := Lesson{Elections: []string{"default/leader"}, Lease: 137 * time.Second} // its retry period is 26 s
	for name, test := range map[string]struct {
		spec   coordinationv1.LeaseSpec
		a      instance.Activity
		lesson Lesson
		back   time.Duration
		least  time.Duration
		most   time.Duration
	}{
		"its request has failed":    {free, waiting, openShift, time.Second, 57 * time.Second, 274 * time.Second},
		"its request left no trace": {free, instance.Activity{Instances: 1, Unheard: 1}, openShift, time.Second, 57 * time.Second, 274 * time.Second},
		"the outage was long ago":   {free, waiting, openShift, 5 * time.Minute, 0, 0},
		"there was no outage":       {free, waiting, openShift, 0, 0, 0},
		"it holds the Lease":        {spec(now, "next", time.Second, time.Second), waiting, openShift, time.Second, 0, 0},
		"it elects no leader":       {free, waiting, Lesson{}, time.Second, 0, 0},
		"it has not asked for one":  {free, instance.Activity{Instances: 1}, openShift, time.Second, 0, 0},
		"two instances, one leads":  {free, instance.Activity{Instances: 2, Electing: true}, openShift, time.Second, 0, 0},
		"the usual Lease of 15 s":   {free, waiting, Lesson{Elections: openShift.Elections, Lease: 15 * time.Second}, time.Second, 4 * time.Second, 30 * time.Second},
		"the usual one, after 30 s": {free, waiting, Lesson{Elections: openShift.Elections, Lease: 15 * time.Second}, 31 * time.Second, 0, 0},
	} {
		r := leased(t, test.spec)
		r.lesson = &test.lesson
		if got := r.nextAttempt(&test.a, test.back); got < test.least || got > test.most {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestNewLeaderBeginsWhenItTakesTheLease(t *testing.T) {
	now := time.Now()
	a := instance.Activity{Instances: 1, Electing: true, Begun: now.Add(-20 * time.Second)}
	leased(t, spec(now, "next", 2*time.Second, time.Second)).succession(&a, now)
	if since := now.Sub(a.Begun); since < 1900*time.Millisecond || since > 2100*time.Millisecond {
		t.Errorf("the controller began %v ago, although it became the leader 2 s ago", since)
	}
}

func TestLeaseForADayIsNotWaitedFor(t *testing.T) {
	now := time.Now()
	held := spec(now, "gone", time.Hour, time.Minute)
	held.LeaseDurationSeconds = new(int32(86400))
	a := instance.Activity{Instances: 1, Electing: true, Begun: now}
	if got := leased(t, held).succession(&a, now); got != 4*time.Minute {
		t.Errorf("%v, not %v", got, 4*time.Minute)
	}
}

func TestLeaseWithoutADurationHasTheDefaultTerm(t *testing.T) {
	r := leased(t, coordinationv1.LeaseSpec{HolderIdentity: new("a")})
	if got, want := r.handover(), 15*time.Second*3/2+rest.UpTimeout; got != want {
		t.Errorf("%v, not %v", got, want)
	}
	r.lab.store.begin(time.Now(), nil) // Leases before this belong to the plane
	if got := r.handover(); got != 0 {
		t.Errorf("%v for a Lease of the plane", got)
	}
}

func TestElectionRecordInAConfigMapIsALease(t *testing.T) {
	s := newStore(nil)
	s.begin(time.Now(), nil)
	object := encoded(t, corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "leader",
		Annotations: map[string]string{request.LeaderAnnotation: `{"holderIdentity":"gone","leaseDurationSeconds":8,"acquireTime":"2026-01-01T00:00:00Z","renewTime":"2026-01-01T00:00:01Z"}`},
	}})
	s.take(7, []storage.Commit{{Key: "/registry/configmaps/default/leader", Value: object, Revision: 7}})
	r := &run{lab: &Lab{store: s}}
	now := time.Now()
	a := instance.Activity{Instances: 1, Electing: true, Begun: now}
	if got, want := r.succession(&a, now), 12*time.Second+rest.UpTimeout; got != want {
		t.Errorf("the wait for a holder that is gone is %v, want %v", got, want)
	}
	if got := election.Longest(&evidence.Run{History: s.History()}); got != 8*time.Second {
		t.Errorf("the duration in the record is 8 s, but %v was learnt", got)
	}
}

func TestCustomLeaseIsNoElection(t *testing.T) {
	s := newStore(nil)
	s.begin(time.Now(), nil)
	object := []byte(`{"apiVersion":"example.com/v1","kind":"Lease","metadata":{"namespace":"default","name":"car"},"spec":{"holderIdentity":"a"}}`)
	s.take(7, []storage.Commit{{Key: "/registry/example.com/leases/default/car", Value: object, Revision: 7}})
	r := &run{lab: &Lab{store: s}}
	if held, extra := r.leases(), r.handover(); len(held) != 0 || extra != 0 {
		t.Errorf("the custom Lease is mistaken for a leader election: %v, %v", held, extra)
	}
	if got := election.Longest(&evidence.Run{History: s.History()}); got != 0 {
		t.Errorf("the longest Lease of the run is %v", got)
	}
}

func TestOnlyAControllerWhoseLeasesAreReleasedIsDisturbed(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		holder    string
		elections []string
		waits     bool
	}{
		"a known election":   {"gone", []string{"default/leader"}, false},
		"an unknown Lease":   {"gone", []string{"default/other"}, true},
		"no holder":          {"", nil, false},
		"no known elections": {"gone", nil, true},
	} {
		out := &evidence.Run{History: leased(t, spec(now, tt.holder, time.Minute, time.Second)).lab.store.History()}
		if got := election.MustWait(out, tt.elections); got != tt.waits {
			t.Errorf("%s: %t", name, got)
		}
	}
	if election.MustWait(&evidence.Run{}, nil) {
		t.Error("a controller without a Lease waits for one")
	}
}
