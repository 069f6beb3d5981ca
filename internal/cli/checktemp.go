package cli

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const (
	checkTemp = "koboshi-check-"
	tempLock  = "lock"
)

// temporary creates a temporary folder whose name begins with pattern, and returns the function
// that deletes this folder. temporary also deletes such folders that killed processes have left
// behind.
func temporary(pattern string) (dir string, remove func(), err error) {
	sweepTemporary(os.TempDir(), pattern)
	dir, err = os.MkdirTemp("", pattern)
	if err != nil {
		return "", nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}, nil
}

// lockFolder locks a folder until the process ends. The lock gets its name once it is held,
// so that no other process finds it unlocked.
func lockFolder(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, tempLock)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, tempLock))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sweepTemporary deletes the folders of processes that were killed. It skips the folders that it
// cannot open, because these belong to other users.
func sweepTemporary(base, pattern string) {
	all, _ := filepath.Glob(filepath.Join(base, pattern+"*")) // the pattern is valid
	for _, dir := range all {
		file, err := os.OpenFile(filepath.Join(dir, tempLock), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = file.Close()
	}
}
