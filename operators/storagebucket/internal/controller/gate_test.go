package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

var (
	aStore  = types.NamespacedName{Namespace: "ns", Name: "store"}
	aBucket = types.NamespacedName{Namespace: "ns", Name: "bucket"}
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

func statusWith(healthy metav1.ConditionStatus) *storagev1.ObjectStoreStatus {
	return &storagev1.ObjectStoreStatus{Conditions: []metav1.Condition{{Type: storagev1.ConditionHealthy, Status: healthy}}}
}

func TestAStoreNobodyAskedYetIsJudgedByItsStatus(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]standing{metav1.ConditionTrue: up, metav1.ConditionFalse: down} {
		if got := newGate().standingOf(aStore, "i", statusWith(status)); got != want {
			t.Errorf("Healthy %s: standing %d, want %d", status, got, want)
		}
	}
	if got := newGate().standingOf(aStore, "i", &storagev1.ObjectStoreStatus{}); got != doubtful {
		t.Errorf("no condition: standing %d, want doubtful", got)
	}
}

func TestAnotherConnectionIsDoubtfulUntilItWasChecked(t *testing.T) {
	g := newGate()
	g.settle(aStore, "old", up, noon)
	if got := g.standingOf(aStore, "new", statusWith(metav1.ConditionTrue)); got != doubtful {
		t.Errorf("standing %d, want doubtful", got)
	}
	g.settle(aStore, "new", up, noon)
	if got := g.standingOf(aStore, "new", statusWith(metav1.ConditionTrue)); got != up {
		t.Errorf("standing %d, want up", got)
	}
}

func TestABucketsFailureIsBelievedOnlyAfterItsStoreAnswered(t *testing.T) {
	g := newGate()
	g.settle(aStore, "i", up, noon.Add(-time.Minute))
	if g.believe(aBucket, aStore, "i", noon) {
		t.Fatal("the first failure was believed")
	}
	if got := g.standingOf(aStore, "i", statusWith(metav1.ConditionTrue)); got != doubtful {
		t.Fatalf("standing %d, want doubtful", got)
	}
	if g.believe(aBucket, aStore, "i", noon.Add(time.Second)) {
		t.Fatal("a failure was believed before the store was asked")
	}
	g.settle(aStore, "i", up, noon.Add(2*time.Second))
	if !g.believe(aBucket, aStore, "i", noon.Add(3*time.Second)) {
		t.Fatal("the failure was not believed although the store answered since")
	}
}

func TestOneStoreDoesNotTakeAllWorkers(t *testing.T) {
	g := newGate()
	leave, ok := g.enter(aStore, 2)
	if _, second := g.enter(aStore, 2); !ok || !second {
		t.Fatal("not all of two buckets were admitted")
	}
	if _, third := g.enter(aStore, 2); third {
		t.Fatal("a third bucket was admitted, beyond the limit of two")
	}
	if _, other := g.enter(aBucket, 2); !other {
		t.Fatal("a bucket of another store was not admitted")
	}
	leave()
	if _, again := g.enter(aStore, 2); !again {
		t.Fatal("no bucket was admitted after one had left")
	}
}

func TestAStoreThatIsDownIsDoubtfulUntilItsStatusSaysSo(t *testing.T) {
	g := newGate()
	g.settle(aStore, "i", down, noon)
	if got := g.standingOf(aStore, "i", statusWith(metav1.ConditionTrue)); got != doubtful {
		t.Errorf("standing %d, want doubtful", got)
	}
	if got := g.standingOf(aStore, "i", statusWith(metav1.ConditionFalse)); got != down {
		t.Errorf("standing %d, want down", got)
	}
}

func TestABucketThatAnsweredIsDoubtedAnew(t *testing.T) {
	g := newGate()
	g.settle(aStore, "i", up, noon)
	g.believe(aBucket, aStore, "i", noon)
	g.settle(aStore, "i", up, noon.Add(time.Second))
	g.trust(aBucket)
	if g.believe(aBucket, aStore, "i", noon.Add(2*time.Second)) {
		t.Fatal("a failure long after the last was believed without asking the store")
	}
}
