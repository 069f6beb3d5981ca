package clog

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// KeepStderr returns a second handle of the process's standard error. After MoveStderr, this handle
// still writes to the original destination.
func KeepStderr() (*os.File, error) {
	fd, err := unix.Dup(int(os.Stderr.Fd()))
	if err != nil {
		return nil, fmt.Errorf("duplicating standard error: %w", err)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), os.Stderr.Name()), nil
}

// MoveStderr redirects standard error to log, because libraries write to it. A
// crash of the program is reported both to log and to kept.
func MoveStderr(log, kept *os.File) error {
	if err := debug.SetCrashOutput(kept, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("reporting crashes: %w", err)
	}
	if err := unix.Dup2(int(log.Fd()), int(os.Stderr.Fd())); err != nil {
		return fmt.Errorf("moving standard error: %w", err)
	}
	return nil
}
