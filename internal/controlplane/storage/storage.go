// Package storage runs the etcd of a plane inside this process: durable in a
// folder, or ephemeral in memory.
//
// The store listens on a unix socket in a folder that only this user may enter.
// The permissions of the folder replace authentication. The store has no TCP port.
package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

const (
	// A single member elects itself after one election timeout. With etcd's
	// default tick of 100 ms, the election would take up to a second; see
	// docs/investigations/2026-11-20-start.md. Each tick wakes several goroutines, also in
	// an idle plane, so a tick is as long as this timeout allows: etcd wants at least five in it.
	tickMs     = 20
	electionMs = 100

	readyTimeout = 30 * time.Second

	unsyncedSegment = 2 << 20 // bytes
)

// Config configures the store.
type Config struct {
	// Dir is the folder for etcd's data. The folder is created if it does not exist.
	Dir string
	// SocketDir is the folder for the listening socket. The path of SocketDir must be short,
	// because the path of a unix socket is limited to 104 bytes on some systems.
	SocketDir string
	// Unsynced skips fsync. Set Unsynced only for stores that do not have to survive the process.
	Unsynced bool
	// Logger receives etcd's log. It must not be nil.
	Logger *zap.Logger
}

// Etcd is a running store.
type Etcd struct {
	etcd     *embed.Etcd
	endpoint string
}

// Start runs the store and returns once it answers.
func Start(ctx context.Context, c Config) (*Etcd, error) {
	cfg, err := c.embedded()
	if err != nil {
		return nil, err
	}
	if c.Unsynced {
		// etcd reserves two segments of 64 MB for its log, which would waste
		// memory. Changing this global variable is safe, because a process runs
		// only one store.
		wal.SegmentSizeBytes = unsyncedSegment
	}
	e, err := startEmbedded(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	timeout := time.NewTimer(readyTimeout)
	defer timeout.Stop()
	select {
	case <-e.Server.ReadyNotify():
		return &Etcd{etcd: e, endpoint: cfg.AdvertiseClientUrls[0].String()}, nil
	case err = <-e.Err():
	case <-timeout.C:
		err = fmt.Errorf("not ready after %v", readyTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.Server.HardStop()
	return nil, fmt.Errorf("starting etcd: %w", err)
}

// startEmbedded starts etcd. If etcd panics, for example because the disk is
// full, startEmbedded returns an error.
func startEmbedded(cfg *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("etcd failed: %v", reason)
		}
	}()
	return embed.StartEtcd(cfg)
}

// Corrupt reports whether Start failed because of the data itself, and not for
// another reason such as a full disk.
func Corrupt(err error) bool {
	for _, known := range []error{
		wal.ErrCRCMismatch, wal.ErrMetadataConflict, wal.ErrSnapshotMismatch, wal.ErrSnapshotNotFound, wal.ErrFileNotFound,
		wal.ErrSliceOutOfRange, snap.ErrNoSnapshot, bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// Endpoint returns the address to pass in --etcd-servers.
func (e *Etcd) Endpoint() string { return e.endpoint }

// Failed returns a channel with the error of a store that ends on its own.
func (e *Etcd) Failed() <-chan error { return e.etcd.Err() }

// Stop ends the store immediately. Open watches are cut, not drained: the
// write-ahead log is complete at every moment, so there is nothing to wait for.
func (e *Etcd) Stop() { e.etcd.Server.HardStop() }

func (c Config) embedded() (*embed.Config, error) {
	if c.Logger == nil {
		return nil, errors.New("storage: Config.Logger is nil")
	}
	client, err := socketURL(c.SocketDir, "etcd")
	if err != nil {
		return nil, err
	}
	peer, err := socketURL(c.SocketDir, "peer")
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name = "koboshi"
	cfg.Dir = c.Dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = tickMs, electionMs
	cfg.UnsafeNoFsync = c.Unsynced
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(c.Logger)
	return cfg, nil
}

func socketURL(dir, name string) (url.URL, error) {
	path := filepath.Join(dir, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return url.URL{}, fmt.Errorf("removing stale socket: %w", err)
	}
	return url.URL{Scheme: "unix", Path: path}, nil
}
