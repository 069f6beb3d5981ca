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
	// shm is a file system in memory, on Linux.
	shm = "/dev/shm"
	// enough is the least number of free bytes with which shm is used.
	// Containers often get 64 MB, which a plane soon fills.
	enough = 512 << 20
)

// OpenEphemeral makes a data directory that Remove deletes, in memory where the
// system offers that. First it deletes the folders of processes that were
// killed before they could remove them.
func OpenEphemeral(kubernetes string) (*Dir, error) {
	base := os.TempDir()
	if roomy(shm) {
		base = shm
	}
	sweep(base)
	path, err := os.MkdirTemp(base, ephemeralPattern)
	if err != nil {
		return nil, fmt.Errorf("creating ephemeral data directory: %w", err)
	}
	return Open(path, kubernetes)
}

// roomy reports whether this user can write enough bytes into dir.
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

// Abandon releases an ephemeral folder and leaves its logs for reading. Without
// its marker no later start deletes it.
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

// sweep deletes this user's ephemeral folders that no process holds. It leaves
// alone what it cannot examine: that is not ours.
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
