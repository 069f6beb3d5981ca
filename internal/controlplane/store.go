package controlplane

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// ExternalEtcd is an etcd cluster that somebody else runs. The fields are
// kube-apiserver's flags of the same names.
type ExternalEtcd struct {
	Servers                   []string // --etcd-servers; none means a store of our own
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

// StoreError reports that somebody else's etcd cannot be used.
type StoreError struct {
	Servers []string
	Err     error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("etcd at %s does not answer: %v; check --etcd-servers and the certificates that go with it", strings.Join(e.Servers, ","), e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// dialTimeout bounds the first contact with somebody else's etcd. Upstream
// would try for 20 s per resource before it gave up.
const dialTimeout = 5 * time.Second

// maxSocketDir leaves room for a file name in the 104 bytes that a unix socket's
// path may have on macOS (108 on Linux).
const maxSocketDir = 90

func (p *Plane) startStore(ctx context.Context) error {
	if len(p.opts.Etcd.Servers) > 0 {
		p.etcdServers = p.opts.Etcd.Servers
		return p.opts.Etcd.ping(ctx)
	}
	if err := p.checkStore(); err != nil {
		return err
	}
	sockets, err := p.socketFolder()
	if err != nil {
		return err
	}
	log, err := p.logs.Open(etcdName)
	if err != nil {
		return err
	}
	// etcd ends the process when it cannot trust its data. Its last words must
	// reach the person, not only the log.
	lastWords := zap.WithFatalHook(p.fatal(etcdName))
	p.etcd, err = storage.Start(ctx, storage.Config{
		Dir:       p.dir.Path("etcd"),
		SocketDir: sockets,
		Unsynced:  p.opts.DataDir == "",
		Logger:    clog.Zap(log, lastWords),
	})
	if err != nil && p.dir.Marker().Initialized {
		return p.dir.Damaged(fmt.Sprintf("etcd refuses its data: %v (log: %s)", err, p.logs.Path(etcdName)))
	}
	if err != nil {
		return p.named(etcdName, err)
	}
	p.etcdServers = []string{p.etcd.Endpoint()}
	p.tasks.run(func(ctx context.Context) error {
		select {
		case err := <-p.etcd.Failed():
			return p.named(etcdName, err)
		case <-ctx.Done():
			return nil
		}
	})
	return p.dir.Update(func(m *datadir.Marker) { m.Initialized = true })
}

// checkStore refuses a data directory whose store has gone: etcd would create
// a new, empty one in its place.
func (p *Plane) checkStore() error {
	if !p.dir.Marker().Initialized {
		return nil
	}
	return storage.Check(p.dir.Path("etcd"), p.dir.Damaged)
}

func (p *Plane) socketFolder() (string, error) {
	if dir := p.dir.Path("run"); len(dir) <= maxSocketDir {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("creating folder for sockets: %w", err)
		}
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "koboshi-")
	if err != nil {
		return "", fmt.Errorf("creating folder for sockets: %w", err)
	}
	p.socketDir = dir
	return dir, nil
}

func (e ExternalEtcd) ping(ctx context.Context) error {
	fail := func(err error) error { return &StoreError{Servers: e.Servers, Err: err} }
	cfg := clientv3.Config{Endpoints: e.Servers, DialTimeout: dialTimeout, Logger: zap.NewNop()}
	if e.CAFile != "" || e.CertFile != "" || e.KeyFile != "" {
		tls, err := transport.TLSInfo{TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}.ClientConfig()
		if err != nil {
			return fail(err)
		}
		cfg.TLS = tls
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := client.Get(ctx, "health"); err != nil {
		return fail(err)
	}
	return nil
}
