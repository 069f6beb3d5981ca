package storage

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func startEtcd(t *testing.T, dir, sockets string) *Etcd {
	t.Helper()
	e, err := Start(t.Context(), Config{Dir: dir, SocketDir: sockets, Unsynced: true, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// shortcutTo returns a client that calls e directly.
func shortcutTo(t *testing.T, e *Etcd) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	e.Shortcut(c)
	return c
}

func TestAShortcutDoesWhatAConnectionDoes(t *testing.T) {
	e := startEtcd(t, t.TempDir(), t.TempDir())
	t.Cleanup(e.Stop)
	c := shortcutTo(t, e)
	network, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = network.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	events := c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithPrevKV())
	if _, err := c.Put(ctx, "k1", "v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := network.Put(ctx, "k2", "v2"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"k1", "k2"} {
		if got := <-events; len(got.Events) != 1 || string(got.Events[0].Kv.Key) != want {
			t.Fatalf("event %v (%v), want %s", got.Events, got.Err(), want)
		}
	}
	swap := func(c *clientv3.Client, revision int64) bool {
		t.Helper()
		r, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("k1"), "=", revision)).Then(clientv3.OpPut("k1", "new")).Else(clientv3.OpGet("k1")).Commit()
		if err != nil {
			t.Fatal(err)
		}
		return r.Succeeded
	}
	got, err := c.Get(ctx, "k1")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if !swap(c, got.Kvs[0].ModRevision) || swap(c, got.Kvs[0].ModRevision) || swap(network, got.Kvs[0].ModRevision) {
		t.Error("want only the first of three writes to succeed, since all compare the same revision")
	}
	if _, err := c.Get(ctx, "k1", clientv3.WithRev(1<<40)); err == nil {
		t.Error("a read at a future revision succeeded")
	}
	if status, err := c.Status(ctx, e.Endpoint()); err != nil || status.DbSize == 0 {
		t.Errorf("status %v, %v", status, err)
	}
	granted, err := c.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, "leased", "v", clientv3.WithLease(granted.ID)); err != nil {
		t.Error(err)
	}
}

func TestWhenTheServerStopsWatchesEndAndTheClientFindsTheNextOne(t *testing.T) {
	data, sockets := filepath.Join(t.TempDir(), "etcd"), t.TempDir()
	first := startEtcd(t, data, sockets)
	c := shortcutTo(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	events := c.Watch(ctx, "k")
	// Here the server stops before its client, as when the program etcd stops
	// while an API server continues.
	first.Stop()
	first.etcd.Close()
	for open := true; open; {
		select {
		case _, open = <-events:
		case <-ctx.Done():
			t.Fatal("the watch outlived its server")
		}
	}
	second := startEtcd(t, data, sockets)
	t.Cleanup(second.Stop)
	got, err := c.Get(ctx, "k")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%v, %v; want the key from the second server", got, err)
	}
	events = c.Watch(ctx, "k")
	if _, err := c.Put(ctx, "k", "w"); err != nil {
		t.Fatal(err)
	}
	if got := <-events; len(got.Events) != 1 {
		t.Errorf("the watch on the second server sent %v", got.Events)
	}
}
