package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const ephemeralPattern = "koboshi-ephemeral-"

const (
	// shm is an in-memory file system on Linux.
	shm = "/dev/shm"
	// enough is the minimum number of free bytes for using shm. In containers,
	// shm often has only 64 MB, which a plane soon fills.
	enough = 512 << 20
)

// OpenEphemeral creates a data directory that Remove deletes. The directory is in memory if
// the system supports that. Before creating it, OpenEphemeral deletes the folders that
// killed processes left behind.
func OpenEphemeral(kubernetes string) (*Dir, error) {
	base := os.TempDir()
	if roomy(shm) {
		base = shm
	}
	sweep(base)
	path, err := os.MkdirTemp(base, ephemeralPattern)
	if err != nil {
		return nil, fmt.Errorf("creating the ephemeral data directory: %w", err)
	}
	return Open(path, kubernetes)
}

// roomy reports whether this user can write to dir and enough bytes are free.
func roomy(dir string) bool {
	var room unix.Statfs_t
	if unix.Statfs(dir, &room) != nil || room.Bavail*uint64(room.Bsize) < enough {
		return false
	}
	probe, err := os.MkdirTemp(dir, ephemeralPattern)
	if err != nil {
		return false
	}
	return os.Remove(probe) == nil
}

// Abandon releases an ephemeral folder but keeps its logs, so that they can be
// read. No later start deletes the folder, since it no longer has a marker.
func (d *Dir) Abandon(logs string) error {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if e.Name() != logs {
			err = errors.Join(err, os.RemoveAll(d.Path(e.Name())))
		}
	}
	return errors.Join(err, d.Close())
}

// Remove releases an ephemeral folder and deletes it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.path)
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

// SweepEphemeral deletes the data directories that killed processes left behind.
func SweepEphemeral() {
	sweep(shm)
	sweep(os.TempDir())
}

// sweep deletes this user's ephemeral folders that no process has locked. Folders that cannot be
// examined are left alone, since they belong to other users.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if _, err := os.Stat(filepath.Join(dir, markerName)); err != nil || !strings.HasPrefix(e.Name(), ephemeralPattern) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}
