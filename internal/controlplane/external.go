package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// ExternalEtcd describes an etcd cluster that the plane does not run. The fields of ExternalEtcd
// correspond to flags of kube-apiserver.
type ExternalEtcd struct {
	Servers                   []string // --etcd-servers; empty means the plane's own store
	CAFile, CertFile, KeyFile string   // --etcd-cafile, --etcd-certfile, --etcd-keyfile
	Prefix                    string   // --etcd-prefix; empty means upstream's default
}

func (e ExternalEtcd) flags() []string {
	var flags []string
	for _, f := range []struct{ name, value string }{
		{"--etcd-cafile", e.CAFile}, {"--etcd-certfile", e.CertFile}, {"--etcd-keyfile", e.KeyFile}, {"--etcd-prefix", e.Prefix},
	} {
		if f.value != "" {
			flags = append(flags, f.name+"="+f.value)
		}
	}
	return flags
}

// StoreError reports that the external etcd cannot be used.
type StoreError struct {
	Servers []string
	Err     error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("etcd at %s cannot be used: %v; check --etcd-servers and the other --etcd flags", strings.Join(e.Servers, ","), e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// dialTimeout limits the first connection to an external etcd. Upstream would
// try for 20 s per resource.
const dialTimeout = 5 * time.Second

const (
	// defaultPrefix is upstream's default for --etcd-prefix.
	defaultPrefix = "/registry"
	// lockSeconds is the time for which the lock of a killed plane still keeps
	// other planes out of the etcd.
	lockSeconds = 10
)

// useExternalStore connects to the external etcd and takes a lock in it. The
// lock on the data directory is not enough: another plane could use the same
// etcd with another data directory. Two planes with the same etcd would run
// every controller twice, and would have different certificates.
func (p *Plane) useExternalStore(ctx context.Context) error {
	e := p.opts.Etcd
	p.etcdServers = e.Servers
	client, err := e.dial(ctx)
	if err != nil {
		return &StoreError{Servers: e.Servers, Err: err}
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(lockSeconds))
	if err != nil {
		return &StoreError{Servers: e.Servers, Err: err}
	}
	if err := p.takeLock(ctx, session); err != nil {
		return err
	}
	p.tasks.run(func(ctx context.Context) error {
		select {
		case <-session.Done():
			return fmt.Errorf("the lock in etcd at %s was lost: etcd did not respond for %d s", strings.Join(e.Servers, ","), lockSeconds)
		case <-ctx.Done():
			return errors.Join(session.Close(), client.Close())
		}
	})
	return nil
}

func (p *Plane) takeLock(ctx context.Context, session *concurrency.Session) error {
	prefix := p.opts.Etcd.Prefix
	if prefix == "" {
		prefix = defaultPrefix
	}
	mutex := concurrency.NewMutex(session, path.Join("/", prefix, "koboshi.dev", "plane"))
	ctx, cancel := context.WithTimeoutCause(ctx, 2*lockSeconds*time.Second, errInUse)
	defer cancel()
	err := p.poll(ctx, "an earlier plane to release its lock", func(ctx context.Context) (bool, error) {
		return true, mutex.TryLock(ctx)
	})
	if errors.Is(err, errInUse) {
		return &StoreError{Servers: p.opts.Etcd.Servers, Err: errInUse}
	}
	return err
}

var errInUse = errors.New("another plane uses this etcd with the same --etcd-prefix")

func (e ExternalEtcd) dial(ctx context.Context) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: e.Servers, DialTimeout: dialTimeout, Logger: zap.NewNop()}
	if e.CAFile+e.CertFile+e.KeyFile != "" {
		tls, err := transport.TLSInfo{TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}.ClientConfig()
		if err != nil {
			return nil, err
		}
		cfg.TLS = tls
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := client.Get(ctx, "health"); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}
