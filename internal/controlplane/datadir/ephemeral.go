package datadir

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const ephemeralPattern = "koboshi-ephemeral-"

// shm is memory that looks like a folder, on Linux.
const shm = "/dev/shm"

// OpenEphemeral makes a data directory that is gone after Remove, in memory
// where the system offers that. Those of processes that were killed before
// they could remove theirs are swept away first.
func OpenEphemeral(kubernetes string) (*Dir, error) {
	base := os.TempDir()
	if probe, err := os.MkdirTemp(shm, ephemeralPattern); err == nil {
		base = shm
		_ = os.Remove(probe)
	}
	sweep(base)
	path, err := os.MkdirTemp(base, ephemeralPattern)
	if err != nil {
		return nil, fmt.Errorf("creating ephemeral data directory: %w", err)
	}
	return Open(path, kubernetes)
}

// Remove gives an ephemeral folder up and deletes it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.path)
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

// sweep deletes the ephemeral folders of this user that no process holds. What
// cannot be examined is left alone: it is not ours.
func sweep(base string) {
	left, err := filepath.Glob(filepath.Join(base, ephemeralPattern+"*", markerName))
	if err != nil {
		return
	}
	for _, marker := range left {
		dir := filepath.Dir(marker)
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
