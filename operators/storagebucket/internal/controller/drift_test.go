package controller

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

func drifting(i int, interval time.Duration) *storagev1.StorageBucket {
	b := &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: fmt.Sprint("bucket-", i), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
	}}
	b.Spec.DriftInterval.Duration = interval
	return b
}

func TestRestartsMoreFrequentThanTheIntervalDoNotStarveTheDriftCheck(t *testing.T) {
	const week = 7 * 24 * time.Hour
	const buckets = 100
	last := metav1.NewTime(noon)
	starved := 0
	for i := range buckets {
		b := drifting(i, week)
		b.Status.LastDriftCheckTime = &last
		checked := false
		for day := range 9 { // the manager starts at noon and runs for a day
			d, start := newDriftClock(), noon.Add(time.Duration(day)*24*time.Hour)
			for at := start; at.Before(start.Add(24 * time.Hour)); at = at.Add(time.Minute) {
				if !d.due(b, at) {
					continue
				}
				if at.Sub(noon) < week {
					t.Fatalf("compared again after %v", at.Sub(noon))
				}
				checked = true
			}
		}
		if !checked {
			starved++
		}
	}
	if starved > 0 {
		t.Errorf("%d of %d buckets were not compared in 9 days, with an interval of 7", starved, buckets)
	}
}

func TestOverdueDriftChecksAreSpreadOverTheCatchUpAfterARestart(t *testing.T) {
	d := newDriftClock()
	last := metav1.NewTime(noon.Add(-48 * time.Hour))
	atOnce := 0
	for i := range 1000 {
		b := drifting(i, 24*time.Hour)
		b.Status.LastDriftCheckTime = &last
		if d.due(b, noon) {
			atOnce++
		}
		if !d.due(b, noon.Add(driftCatchUp)) {
			t.Fatal("not due after the catch-up")
		}
	}
	if atOnce > 20 {
		t.Errorf("%d of 1000 are due at once", atOnce)
	}
}

func TestADriftCheckMovesByAnIntervalAndFollowsTheSpec(t *testing.T) {
	d, b := newDriftClock(), drifting(1, time.Hour)
	d.checked(b, noon)
	if d.due(b, noon.Add(59*time.Minute)) || !d.due(b, noon.Add(time.Hour)) {
		t.Error("not due an hour after the last")
	}
	b.Spec.DriftInterval.Duration = 2 * time.Hour
	if d.due(b, noon.Add(90*time.Minute)) || !d.due(b, noon.Add(2*time.Hour)) {
		t.Error("not due after the new interval")
	}
	future := metav1.NewTime(noon.Add(1000 * time.Hour))
	b.Status.LastDriftCheckTime = &future
	d.forget(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
	_ = d.due(b, noon)
	if !d.due(b, noon.Add(driftCatchUp)) {
		t.Error("a stored time in the future delays the comparison")
	}
}

func TestTheTimeOfADriftCheckIsStoredWhenItMovedByAHeartbeat(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { stamp := metav1.NewTime(noon.Add(d)); return &stamp }
	for _, tc := range []struct {
		stored, current *metav1.Time
		heartbeat       time.Duration
		want            bool
	}{
		{nil, nil, time.Hour, false},
		{nil, at(0), time.Hour, true},
		{at(0), at(10 * time.Minute), time.Hour, false},
		{at(0), at(time.Hour), time.Hour, true},
		{at(0), at(24 * time.Hour), time.Hour, true},
		{at(0), at(24 * time.Hour), 0, false},
	} {
		status := storagev1.StorageBucketStatus{LastDriftCheckTime: tc.current}
		if got := worthWriting(&storagev1.StorageBucketStatus{LastDriftCheckTime: tc.stored}, &status, tc.heartbeat); got != tc.want {
			t.Errorf("from %v to %v with a heartbeat of %v: %v", tc.stored, tc.current, tc.heartbeat, got)
		}
	}
}
