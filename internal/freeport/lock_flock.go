//go:build linux || darwin

package freeport

import (
	"errors"
	"os"
	"syscall"
)

const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

func lock(file *os.File, kind int) lockResult {
	for {
		err := syscall.Flock(int(file.Fd()), kind|syscall.LOCK_NB)
		switch {
		case err == nil:
			return locked
		case errors.Is(err, syscall.EWOULDBLOCK):
			return held
		case !errors.Is(err, syscall.EINTR):
			return unsupported
		}
	}
}

func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }

// await waits until the file can be locked. An error other than an interruption means that
// locking can never succeed; then await does not return.
func await(file *os.File) {
	for {
		err := syscall.Flock(int(file.Fd()), shared)
		if err == nil {
			unlock(file)
			return
		}
		if !errors.Is(err, syscall.EINTR) {
			select {}
		}
	}
}
