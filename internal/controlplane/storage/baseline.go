package storage

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"golang.org/x/sync/errgroup"
)

// inFlight is the maximum number of concurrent writes in Delete and Put. A
// single-member etcd combines all writes that arrive during one commit into the
// next commit. With one write at a time, every key would have to wait for a
// complete commit.
const inFlight = 64

// A Baseline is the content of the store below a prefix at one revision. A Baseline contains its
// own copy of the values, so compaction does not affect it. The methods of a Baseline must not be
// called concurrently.
type Baseline struct {
	client  *clientv3.Client
	prefix  string
	entries map[string]entry
}

// An entry is the state of a key in the baseline.
type entry struct {
	value []byte
	lease clientv3.LeaseID // 0 if the key does not expire
	// created and modified are the revisions at which the key was created and last changed.
	// Put keeps these revisions up to date.
	created, modified int64
}

// A Difference is a key whose state in the store differs from the baseline.
type Difference struct {
	Key string
	// Now is the value in the store, and Then is the value in the baseline; nil
	// means that the key is absent.
	Now, Then []byte
	// Recreated is set if the key has been deleted and created again since the
	// baseline was taken. During a reset, watchers must learn that the new
	// object is gone before the old object returns.
	Recreated bool

	seen int64 // the revision of Now, to detect a concurrent write
}

// Baseline records everything below prefix.
func (e *Etcd) Baseline(ctx context.Context, prefix string) (*Baseline, error) {
	// This client calls functions of the server directly, without a connection.
	b := &Baseline{client: v3client.New(e.etcd.Server), prefix: prefix, entries: map[string]entry{}}
	got, err := b.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading the baseline from etcd: %w", err)
	}
	for _, kv := range got.Kvs {
		b.entries[string(kv.Key)] = entry{
			value: kv.Value, lease: clientv3.LeaseID(kv.Lease), created: kv.CreateRevision, modified: kv.ModRevision,
		}
	}
	return b, nil
}

// Has reports whether the baseline holds the key.
func (b *Baseline) Has(key string) bool {
	_, ok := b.entries[key]
	return ok
}

// Keys calls yield for each key, in no particular order, until yield returns
// false.
func (b *Baseline) Keys(yield func(key string) bool) {
	for key := range b.entries {
		if !yield(key) {
			return
		}
	}
}

// Differences compares the store with the baseline.
func (b *Baseline) Differences(ctx context.Context) ([]Difference, error) {
	got, err := b.client.Get(ctx, b.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("comparing etcd with the baseline: %w", err)
	}
	var found []Difference
	present := make(map[string]bool, len(got.Kvs))
	for _, kv := range got.Kvs {
		key := string(kv.Key)
		present[key] = true
		then, ok := b.entries[key]
		if ok && (then.modified == kv.ModRevision || bytes.Equal(then.value, kv.Value)) {
			continue
		}
		found = append(found, Difference{
			Key: key, Now: kv.Value, Then: then.value, seen: kv.ModRevision,
			Recreated: ok && then.created != kv.CreateRevision,
		})
	}
	for key, then := range b.entries {
		if !present[key] {
			found = append(found, Difference{Key: key, Then: then.value})
		}
	}
	return found, nil
}

// Present lists everything below a prefix, whether it differs or not, so that Delete can remove it.
// After the deletion, the store lacks the baseline's keys below the prefix, so these keys become
// differences.
func (b *Baseline) Present(ctx context.Context, prefix string) ([]Difference, error) {
	got, err := b.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading %s from etcd: %w", prefix, err)
	}
	var found []Difference
	for _, kv := range got.Kvs {
		key := string(kv.Key)
		found = append(found, Difference{Key: key, Now: kv.Value, Then: b.entries[key].value, Recreated: true, seen: kv.ModRevision})
	}
	return found, nil
}

// Delete removes each key in a separate transaction, because all objects in a transaction
// get the same resource version. In a real cluster, no two objects share a version. Delete
// returns the revision of each transaction by key. If a key has changed since Differences
// read it, Delete leaves the key alone and does not return it; the key will be a difference
// again next time.
func (b *Baseline) Delete(ctx context.Context, differences []Difference) (map[string]int64, error) {
	return b.write(ctx, differences, func(d Difference) (clientv3.Cmp, clientv3.Op) {
		return clientv3.Compare(clientv3.ModRevision(d.Key), "=", d.seen), clientv3.OpDelete(d.Key)
	})
}

// Put restores the values of the keys in the baseline, and returns the
// revisions as Delete does. A key whose difference has Recreated set must be
// deleted first. Put does not restore a key that has expired, but removes it
// from the baseline.
func (b *Baseline) Put(ctx context.Context, differences []Difference) (map[string]int64, error) {
	alive, err := b.unexpired(ctx, differences)
	if err != nil {
		return nil, err
	}
	revisions, err := b.write(ctx, alive, func(d Difference) (clientv3.Cmp, clientv3.Op) {
		seen := d.seen
		if d.Recreated {
			seen = 0
		}
		op := clientv3.OpPut(d.Key, string(d.Then), clientv3.WithLease(b.entries[d.Key].lease))
		return clientv3.Compare(clientv3.ModRevision(d.Key), "=", seen), op
	})
	for _, d := range alive {
		revision, ok := revisions[d.Key]
		if !ok {
			continue
		}
		restored := b.entries[d.Key]
		restored.modified = revision
		if d.Now == nil || d.Recreated {
			restored.created = revision
		}
		b.entries[d.Key] = restored
	}
	return revisions, err
}

func (b *Baseline) write(ctx context.Context, differences []Difference, plan func(Difference) (clientv3.Cmp, clientv3.Op)) (map[string]int64, error) {
	var mu sync.Mutex
	revisions := make(map[string]int64, len(differences))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, d := range differences {
		group.Go(func() error {
			unchanged, op := plan(d)
			done, err := b.client.Txn(ctx).If(unchanged).Then(op).Commit()
			if err != nil {
				return fmt.Errorf("restoring %s in etcd: %w", d.Key, err)
			}
			if done.Succeeded {
				mu.Lock()
				defer mu.Unlock()
				revisions[d.Key] = done.Header.Revision
			}
			return nil
		})
	}
	err := group.Wait()
	return revisions, err
}

// unexpired removes the keys with an expired lease from the baseline, and returns the
// differences of all other keys. A key with an expired lease would be gone by now, even if
// no client had deleted it.
func (b *Baseline) unexpired(ctx context.Context, differences []Difference) ([]Difference, error) {
	var alive []Difference
	for _, d := range differences {
		if lease := b.entries[d.Key].lease; lease != clientv3.NoLease {
			left, err := b.client.TimeToLive(ctx, lease)
			if err != nil {
				return nil, fmt.Errorf("reading the expiry time of %s from etcd: %w", d.Key, err)
			}
			if left.TTL <= 0 {
				delete(b.entries, d.Key)
				continue
			}
		}
		alive = append(alive, d)
	}
	return alive, nil
}
