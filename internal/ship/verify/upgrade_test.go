package verify

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
)

func id(kind, name string) cluster.ID {
	return cluster.ID{Kind: schema.GroupKind{Kind: kind}, Namespace: "sea", Name: name}
}

// texts returns objects and their reasons as texts.
func texts(all []ready.Pending) (lines []string) {
	for _, p := range all {
		lines = append(lines, p.String())
	}
	return lines
}

func TestAnUpgradeMustNotDeleteOrRecreateWhatUsersHave(t *testing.T) {
	before := snapshot{
		"1": id("Ship", "anna"), "2": id("Service", "anna"), "3": id("Service", "berta"), "4": id("ConfigMap", "berta"),
		// These may be replaced.
		"5": id("ConfigMap", "berta-4f1e"), "6": id("ReplicaSet", "anna-1"), "7": id("Pod", "anna-1-x"), "8": id("Pod", "berta-0"),
	}
	after := snapshot{
		"1": id("Ship", "anna"), "13": id("Service", "berta"), "14": id("ConfigMap", "berta"),
		"15": id("ConfigMap", "berta-7c41"), "16": id("ReplicaSet", "anna-2"), "17": id("Pod", "anna-2-y"), "18": id("Pod", "berta-0"),
	}
	want := []string{
		"ConfigMap sea/berta: it was deleted, and created again", "Service sea/anna: it was deleted", "Service sea/berta: it was deleted, and created again",
	}
	if diff := cmp.Diff(want, texts(before.lost(after))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSnapshotsAreComparedInBothDirections(t *testing.T) {
	before, after := snapshot{"1": id("Ship", "anna"), "2": id("Ship", "berta")}, snapshot{"1": id("Ship", "anna"), "3": id("Ship", "clara")}
	want := []string{"Ship sea/berta: it was there before", "Ship sea/clara: it was not there before"}
	if diff := cmp.Diff(want, texts(after.changed(before))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestANewLeaderIsAwaitedUntilTheLeaseOfTheOldOneExpires(t *testing.T) {
	gone := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	lease := func(holder string, renewed time.Duration) coordinationv1.Lease {
		l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "sea", Name: "leader"}}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, new(int32(15))
		l.Spec.RenewTime = &metav1.MicroTime{Time: gone.Add(renewed)}
		return l
	}
	for name, c := range map[string]struct {
		lease coordinationv1.Lease
		after time.Duration
		want  []string
	}{
		"held by the old version":    {lease("old", -time.Second), time.Second, []string{"Lease sea/leader: it is held by old"}},
		"expired":                    {lease("old", -time.Second), 14 * time.Second, nil},
		"released":                   {lease("", -time.Second), time.Second, nil},
		"renewed by the new version": {lease("new", time.Second), 2 * time.Second, nil},
		"never held":                 {coordinationv1.Lease{}, time.Second, nil},
	} {
		if diff := cmp.Diff(c.want, texts(abandoned([]coordinationv1.Lease{c.lease}, gone, gone.Add(c.after)))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
