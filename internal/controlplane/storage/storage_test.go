package storage

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
)

func TestAcknowledgedWriteOutlivesHardStop(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	put := func(key, value string) {
		t.Helper()
		withStore(t, dir, func(c *clientv3.Client) {
			if _, err := c.Put(ctx, key, value); err != nil {
				t.Fatal(err)
			}
		})
	}
	put("a", "1")
	put("b", "2")
	withStore(t, dir, func(c *clientv3.Client) {
		for key, want := range map[string]string{"a": "1", "b": "2"} {
			got, err := c.Get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want {
				t.Errorf("key %q: got %v, want %q", key, got.Kvs, want)
			}
		}
	})
}

func withStore(t *testing.T, dir string, use func(*clientv3.Client)) {
	t.Helper()
	e, err := Start(context.Background(), Config{Dir: dir, SocketDir: t.TempDir(), Logger: zaptest.NewLogger(t, zaptest.Level(zapcore.ErrorLevel))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	use(c)
}
