package storage

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// A Commit is one write to one key. Value is nil for a deletion.
type Commit struct {
	Revision int64
	Key      string
	Value    []byte
}

// Follow calls the function pass with the keys below prefix and then with every write to keys below
// prefix, in the order of the store and without gaps. The first call of pass gets all existing
// keys. Each further call gets some of the next writes and the revision of the store after them. A
// call gets an empty list if no write since the previous call was below prefix. Follow returns the
// cause of ctx when ctx ends. Follow also returns when the store ends.
func (e *Etcd) Follow(ctx context.Context, prefix string, pass func(revision int64, commits []Commit)) error {
	client := v3client.New(e.etcd.Server)
	got, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("reading the existing keys from etcd: %w", err)
	}
	present := make([]Commit, len(got.Kvs))
	for i, kv := range got.Kvs {
		present[i] = Commit{Revision: kv.ModRevision, Key: string(kv.Key), Value: kv.Value}
	}
	pass(got.Header.Revision, present)

	// The watch covers all keys, because a write outside the prefix also increases the revision.
	all := client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(got.Header.Revision+1))
	for response := range all {
		if err := response.Err(); err != nil {
			return fmt.Errorf("following etcd: %w", err)
		}
		var commits []Commit
		var revision int64
		for _, event := range response.Events {
			revision = event.Kv.ModRevision
			if key := string(event.Kv.Key); strings.HasPrefix(key, prefix) {
				commits = append(commits, Commit{Revision: revision, Key: key, Value: valueOf(event)})
			}
		}
		if revision > 0 {
			pass(revision, commits)
		}
	}
	return context.Cause(ctx)
}

func valueOf(event *clientv3.Event) []byte {
	if event.Type == clientv3.EventTypeDelete {
		return nil
	}
	return event.Kv.Value
}

// Revision returns the revision of the last write to the store.
func (e *Etcd) Revision(ctx context.Context) (int64, error) {
	got, err := v3client.New(e.etcd.Server).Get(ctx, "\x00", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("reading etcd's revision: %w", err)
	}
	return got.Header.Revision, nil
}
