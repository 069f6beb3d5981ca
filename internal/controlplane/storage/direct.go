package storage

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// Shortcut makes a client call the server in this process directly, without sockets or
// serialization. The server behaves the same as with a connection. After the server has stopped,
// the client uses its original connection, because a test suite may stop etcd and start another
// etcd in its place.
func Shortcut(s *etcdserver.EtcdServer, c *clientv3.Client) {
	direct := v3client.New(s)
	via := way{s.StoppingNotify()}
	c.KV = &kv{way: via, direct: direct.KV, remote: c.KV}
	c.Lease = &lease{Lease: c.Lease, way: via, direct: direct.Lease}
	c.Watcher = &watcher{way: via, direct: direct.Watcher, remote: c.Watcher}
	c.Maintenance = &maintenance{Maintenance: c.Maintenance, way: via, direct: direct.Maintenance}
}

// Shortcut makes c call this store directly.
func (e *Etcd) Shortcut(c *clientv3.Client) { Shortcut(e.etcd.Server, c) }

// A way is a direct path to the server; it is open while the server is running.
type way struct{ stopped <-chan struct{} }

func (w way) open() bool {
	select {
	case <-w.stopped:
		return false
	default:
		return true
	}
}

func choose[T any](w way, direct, remote T) T {
	if w.open() {
		return direct
	}
	return remote
}

type kv struct {
	way
	direct, remote clientv3.KV
}

func (k *kv) now() clientv3.KV { return choose(k.way, k.direct, k.remote) }

func (k *kv) Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return k.now().Put(ctx, key, val, opts...)
}

func (k *kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return k.now().Get(ctx, key, opts...)
}

func (k *kv) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return k.now().GetStream(ctx, key, opts...)
}

func (k *kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return k.now().Delete(ctx, key, opts...)
}

func (k *kv) Compact(ctx context.Context, rev int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return k.now().Compact(ctx, rev, opts...)
}

func (k *kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return k.now().Do(ctx, op)
}

func (k *kv) Txn(ctx context.Context) clientv3.Txn { return k.now().Txn(ctx) }

// lease makes direct calls for leases, with which the API server lets Events
// expire.
type lease struct {
	clientv3.Lease
	way
	direct clientv3.Lease
}

func (l *lease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return choose(l.way, l.direct, l.Lease).Grant(ctx, ttl)
}

func (l *lease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return choose(l.way, l.direct, l.Lease).Revoke(ctx, id)
}

// maintenance makes direct calls for the size and the features of the store.
type maintenance struct {
	clientv3.Maintenance
	way
	direct clientv3.Maintenance
}

func (m *maintenance) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	return choose(m.way, m.direct, m.Maintenance).Status(ctx, endpoint)
}

type watcher struct {
	way
	direct, remote clientv3.Watcher
}

// Watch starts a watch that ends when the server stops, like a watch over a
// connection.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if !w.open() {
		return w.remote.Watch(ctx, key, opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-w.stopped:
		case <-ctx.Done():
		}
		cancel()
	}()
	return w.direct.Watch(ctx, key, opts...)
}

func (w *watcher) RequestProgress(ctx context.Context) error {
	return choose(w.way, w.direct, w.remote).RequestProgress(ctx)
}

func (w *watcher) Close() error {
	_ = w.direct.Close()
	return w.remote.Close()
}
