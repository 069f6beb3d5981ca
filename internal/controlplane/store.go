package controlplane

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.uber.org/zap"

	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// maxSocketDir is the maximum length of the path of a folder for sockets. maxSocketDir leaves room
// for a file name: the path of a unix socket may have 104 bytes on macOS (108 on Linux).
const maxSocketDir = 90

func (p *Plane) startStore(ctx context.Context) error {
	store := datadir.StoreOwn
	if len(p.opts.Etcd.Servers) > 0 {
		store = datadir.StoreExternal
	}
	if m := p.dir.Marker(); m.Initialized && m.Store != store {
		return p.dir.StoreMoved(m.Store)
	}
	start := p.startOwnStore
	if store == datadir.StoreExternal {
		start = p.useExternalStore
	}
	if err := start(ctx); err != nil {
		return err
	}
	return p.dir.Update(func(m *datadir.Marker) { m.Initialized, m.Store = true, store })
}

func (p *Plane) startOwnStore(ctx context.Context) error {
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
	// If etcd cannot trust its data, it ends the process; the reason must reach
	// the user, not only the log.
	lastWords := zap.WithFatalHook(p.fatal(etcdName))
	p.etcd, err = storage.Start(ctx, storage.Config{
		Dir:       p.dir.Path("etcd"),
		SocketDir: sockets,
		Unsynced:  p.opts.DataDir == "",
		Logger:    clog.Zap(log, lastWords),
	})
	if storage.Corrupt(err) && p.dir.Marker().Initialized {
		return p.dir.Damaged(fmt.Sprintf("etcd cannot use its data: %v (log: %s)", err, p.logs.Path(etcdName)))
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
	return nil
}

// checkStore returns an error if the store of an initialized data directory is
// missing or damaged, because etcd might replace it with a new, empty store.
func (p *Plane) checkStore() error {
	if !p.dir.Marker().Initialized {
		return nil
	}
	return storage.Check(p.dir.Path("etcd"), p.dir.Damaged)
}

// fitsSocket reports whether an etcd address can name sockets in dir. The path must be
// short, and must not contain commas, which separate addresses, or characters that a URL
// escapes.
func fitsSocket(dir string) bool {
	return len(dir) <= maxSocketDir && (&url.URL{Path: dir}).EscapedPath() == dir && !strings.Contains(dir, ",")
}

func (p *Plane) socketFolder() (string, error) {
	if dir := p.dir.Path("run"); fitsSocket(dir) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("creating the folder for sockets: %w", err)
		}
		return dir, nil
	}
	base := os.TempDir()
	if !fitsSocket(base) {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "koboshi-")
	if err != nil {
		return "", fmt.Errorf("creating the folder for sockets: %w", err)
	}
	p.socketDir = dir
	return dir, nil
}
