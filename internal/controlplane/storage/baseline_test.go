package storage

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
)

// A bench is a store with a separate client that writes to it.
type bench struct {
	testing.TB
	*clientv3.Client
	etcd *Etcd
}

func newBench(t testing.TB) bench {
	t.Helper()
	e, err := Start(t.Context(), Config{
		Dir: t.TempDir(), SocketDir: t.TempDir(), // Unsynced is not set, because it changes a global variable
		Logger: zaptest.NewLogger(t, zaptest.Level(zapcore.ErrorLevel)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return bench{TB: t, Client: c, etcd: e}
}

func (b bench) put(key, value string, opts ...clientv3.OpOption) {
	b.Helper()
	if _, err := b.Put(b.Context(), key, value, opts...); err != nil {
		b.Fatal(err)
	}
}

func (b bench) delete(key string) {
	b.Helper()
	if _, err := b.Delete(b.Context(), key); err != nil {
		b.Fatal(err)
	}
}

func (b bench) baseline() *Baseline {
	b.Helper()
	baseline, err := b.etcd.Baseline(b.Context(), "/")
	if err != nil {
		b.Fatal(err)
	}
	return baseline
}

func (b bench) differences(baseline *Baseline) map[string]Difference {
	b.Helper()
	list, err := baseline.Differences(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	found := map[string]Difference{}
	for _, d := range list {
		found[d.Key] = d
	}
	return found
}

// restore performs one round of a reset and returns each write's revision.
func (b bench) restore(baseline *Baseline, differences map[string]Difference) (revisions []int64) {
	b.Helper()
	var gone, back []Difference
	for _, d := range differences {
		if d.Now != nil && (d.Then == nil || d.Recreated) {
			gone = append(gone, d)
		}
		if d.Then != nil {
			back = append(back, d)
		}
	}
	for _, step := range []struct {
		do   func(context.Context, []Difference) (map[string]int64, error)
		with []Difference
	}{{baseline.Delete, gone}, {baseline.Put, back}} {
		done, err := step.do(b.Context(), step.with)
		if err != nil {
			b.Fatal(err)
		}
		for _, revision := range done {
			revisions = append(revisions, revision)
		}
	}
	return revisions
}

func (b bench) contents() (all map[string]string, revision int64) {
	b.Helper()
	got, err := b.Get(b.Context(), "/", clientv3.WithPrefix())
	if err != nil {
		b.Fatal(err)
	}
	all = map[string]string{}
	for _, kv := range got.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all, got.Header.Revision
}

func TestEachDifferenceIsFoundUndoneAndHasARevisionOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, key := range []string{"/same", "/changed", "/gone", "/recreated"} {
		b.put(key, "original")
	}
	baseline := b.baseline()
	want, _ := b.contents()
	for round := range 3 { // Put must also restore keys that it has restored before
		b.put("/new", "new")
		b.put("outside", strconv.Itoa(round))
		b.put("/changed", "changed")
		b.delete("/gone")
		b.delete("/recreated")
		b.put("/recreated", "another")
		b.put("/same", "original")
		_, revision := b.contents()
		if _, err := b.Compact(t.Context(), revision); err != nil {
			t.Fatal(err)
		}

		found := b.differences(baseline)
		type difference struct {
			Now, Then string
			Recreated bool
		}
		got := map[string]difference{}
		for key, d := range found {
			got[key] = difference{string(d.Now), string(d.Then), d.Recreated}
		}
		if diff := cmp.Diff(map[string]difference{
			"/new":       {"new", "", false},
			"/changed":   {"changed", "original", false},
			"/gone":      {"", "original", false},
			"/recreated": {"another", "original", true},
		}, got); diff != "" {
			t.Errorf("round %d: differences (-want +got):\n%s", round, diff)
		}

		seen := map[int64]bool{}
		for _, r := range b.restore(baseline, found) {
			if seen[r] || r <= revision {
				t.Errorf("round %d: a write has revision %d, want a revision that no other write has and that is above %d", round, r, revision)
			}
			seen[r] = true
		}
		if len(seen) != 5 {
			t.Errorf("round %d: %d writes, want 5: two for the recreated key and one for each other key", round, len(seen))
		}
		all, _ := b.contents()
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("round %d: the store (-want +got):\n%s", round, diff)
		}
		if left := b.differences(baseline); len(left) > 0 {
			t.Errorf("round %d: %v still differ", round, left)
		}
	}
}

func TestKeyThatChangedMeanwhileIsLeftAloneAndDiffersAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("/changed", "original")
	b.put("/gone", "original")
	baseline := b.baseline()
	b.put("/changed", "changed")
	b.put("/new", "new")
	b.delete("/gone")
	found := b.differences(baseline)
	for _, key := range []string{"/changed", "/new", "/gone"} {
		b.put(key, "raced")
	}
	if revisions := b.restore(baseline, found); len(revisions) > 0 {
		t.Errorf("%d writes overwrote concurrent changes", len(revisions))
	}
	found = b.differences(baseline)
	for _, key := range []string{"/changed", "/new", "/gone"} {
		if got := string(found[key].Now); got != "raced" {
			t.Errorf("%s is %q, want the concurrent write", key, got)
		}
	}
	b.restore(baseline, found)
	if left := b.differences(baseline); len(left) > 0 {
		t.Errorf("%v still differ", left)
	}
}

func TestPresentKeysCanBeTakenAwayAndComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("/a/same", "original")
	b.put("/b", "original")
	baseline := b.baseline()
	want, _ := b.contents()
	b.put("/a/new", "new")
	present, err := baseline.Present(t.Context(), "/a/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := baseline.Delete(t.Context(), present); err != nil {
		t.Fatal(err)
	}
	if all, _ := b.contents(); !cmp.Equal(all, map[string]string{"/b": "original"}) {
		t.Errorf("left are %v, want only the keys outside the prefix", all)
	}
	b.restore(baseline, b.differences(baseline))
	if all, _ := b.contents(); !cmp.Equal(want, all) {
		t.Errorf("the store (-want +got):\n%s", cmp.Diff(want, all))
	}
}

func TestKeyReturnsWithItsLeaseAndNotAfterIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lease, err := b.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	b.put("/event", "original", clientv3.WithLease(lease.ID))
	baseline := b.baseline()
	b.delete("/event")
	b.restore(baseline, b.differences(baseline))
	got, err := b.Get(t.Context(), "/event")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || clientv3.LeaseID(got.Kvs[0].Lease) != lease.ID {
		t.Errorf("the key is %v, want it with lease %x", got.Kvs, lease.ID)
	}
	if _, err := b.Revoke(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
	b.restore(baseline, b.differences(baseline))
	if all, _ := b.contents(); len(all) > 0 {
		t.Errorf("%v was restored, though its lease had expired", all)
	}
	if left := b.differences(baseline); len(left) > 0 || baseline.Has("/event") {
		t.Errorf("%v differs, though its lease had expired", left)
	}
}

func TestRandomWritesBesideARestoreConverge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const keys = 50
	for i := range keys {
		b.put("/"+strconv.Itoa(i), "original")
	}
	baseline := b.baseline()
	want, _ := b.contents()
	done := make(chan struct{})
	go func() {
		defer close(done)
		random := rand.New(rand.NewPCG(seed, 0))
		for range 500 {
			key := "/" + strconv.Itoa(random.IntN(2*keys))
			var err error
			if random.IntN(2) == 0 {
				_, err = b.Put(t.Context(), key, strconv.Itoa(random.IntN(3)))
			} else {
				_, err = b.Delete(t.Context(), key)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
		}
		b.restore(baseline, b.differences(baseline))
	}
	if all, _ := b.contents(); !cmp.Equal(want, all) {
		t.Errorf("the store (-want +got):\n%s", cmp.Diff(want, all))
	}
}
