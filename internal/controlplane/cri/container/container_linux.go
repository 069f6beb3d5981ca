package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"
	"unsafe"
)

// These numbers are from linux/prctl.h and linux/capability.h.
const (
	prCapBSetDrop     = 24
	prSetNoNewPrivs   = 38
	prCapAmbient      = 47
	prCapAmbientClear = 4
	capabilityVersion = 0x20080522
	lastCapability    = 63
)

// These numbers are from linux/close_range.h; sysCloseRange is the same on all
// architectures.
const (
	sysCloseRange     = 436
	closeRangeCloexec = 4
)

func init() { //nolint:gochecknoinits // this package must run before all others
	if len(os.Args) == 2 && os.Args[1] == Verb {
		os.Exit(Main())
	}
}

// Main turns this process into the program, or returns an exit code if that fails. Main must run on
// the main thread, as the init function does, because capabilities belong to threads.
func Main() int {
	socket := os.NewFile(SpecFile, "spec")
	err := become(socket)
	_, _ = fmt.Fprint(socket, err)
	switch {
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC):
		return ExitNotExecutable
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return ExitNotFound
	}
	return ExitFailed
}

func become(socket *os.File) error {
	// Since Linux 5.11, close_range also closes files that koboshi inherited
	// but the program must not inherit.
	syscall.CloseOnExec(SpecFile)
	_, _, _ = syscall.RawSyscall(sysCloseRange, SpecFile, math.MaxUint32, closeRangeCloexec)
	var spec Spec
	text, err := io.ReadAll(socket)
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		return fmt.Errorf("reading the description of the program: %w", err)
	}
	// If the system hides parts of /proc, as in a Docker container, this mount fails, and
	// the kubelet's /proc remains visible. In the kubelet's /proc, the entry self is
	// correct, but the other process IDs belong to another namespace.
	if spec.MountProc {
		_ = syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "")
	}
	if err := reopen(spec.Terminal); err != nil {
		return err
	}
	if err := giveUp(spec); err != nil {
		return err
	}
	return fmt.Errorf("exec %s: %w", spec.Path, syscall.Exec(spec.Path, spec.Args, spec.Env))
}

func reopen(terminal string) error {
	if terminal == "" {
		return nil
	}
	fd, err := syscall.Open(terminal, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", terminal, err)
	}
	for standard := range 3 {
		if err := syscall.Dup3(fd, standard, 0); err != nil {
			return fmt.Errorf("opening %s: %w", terminal, err)
		}
	}
	return nil
}

// giveUp drops all capabilities except those in the Spec, which root keeps
// across exec.
func giveUp(spec Spec) error {
	for c := range lastCapability + 1 {
		if slices.Contains(spec.Capabilities, c) {
			continue
		}
		if errno := prctl(prCapBSetDrop, uintptr(c)); errno == syscall.EINVAL {
			break // this kernel has no further capabilities
		} else if errno != 0 {
			return fmt.Errorf("dropping capability %d: %w", c, errno)
		}
	}
	if errno := prctl(prCapAmbient, prCapAmbientClear); errno != 0 {
		return fmt.Errorf("dropping ambient capabilities: %w", errno)
	}
	if err := keep(spec.Capabilities); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if spec.NoNewPrivs {
		if errno := prctl(prSetNoNewPrivs, 1); errno != 0 {
			return fmt.Errorf("forbidding new privileges: %w", errno)
		}
	}
	return nil
}

// keep drops all capabilities that are not listed in these. Root must have its capabilities
// before exec, because with NoNewPrivs, exec does not restore dropped ones. Users other
// than root lose all capabilities at exec.
func keep(these []int) error {
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion}
	var sets [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		return errno
	}
	var kept [2]uint32
	for _, c := range these {
		kept[c/32] |= 1 << (c % 32)
	}
	for i := range sets {
		sets[i].effective &= kept[i]
		sets[i].permitted &= kept[i]
		sets[i].inheritable = 0
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0); errno != 0 {
		return errno
	}
	return nil
}

func prctl(option, argument uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, argument, 0, 0, 0, 0)
	return errno
}
