package binds

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUnavailable reports that no filter can be installed.
var ErrUnavailable = errors.New("the kernel does not support seccomp filters with notifications")

// arch is the audit number of this architecture (linux/audit.h).
var arch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// These are offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
)

// Install puts the filter on the calling thread and on all threads and processes that are cloned
// from it. Install returns the file from which Serve reads the calls to bind and connect. The filter cannot be
// removed.
func Install() (*os.File, error) {
	if arch == 0 {
		return nil, fmt.Errorf("%w for %s", ErrUnavailable, runtime.GOARCH)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offsetArch},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 4, K: arch},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offsetNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_BIND},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CONNECT},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Go signals its threads often. Without WAIT_KILLABLE_RECV, which exists
	// since Linux 5.19, a signal can make a thread repeat a call that has
	// already been served. The second attempt omits WAIT_KILLABLE_RECV for
	// older kernels; Serve handles repeated calls.
	for _, flags := range []uintptr{
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
	} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
		if errno == unix.EINVAL {
			continue
		}
		if errno != 0 {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, errno)
		}
		if err := unix.SetNonblock(int(fd), true); err != nil {
			return nil, err
		}
		unix.CloseOnExec(int(fd))
		return os.NewFile(fd, "notifications"), nil
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, unix.EINVAL)
}

// Nested reports whether this process has a filter that belongs to a Pod, so that the programs that it starts get
// the address that Variable names in their environment.
var Nested = sync.OnceValue(func() bool {
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return false
	}
	defer func() { _ = listener.Close() }()
	at, ok := listener.Addr().(*net.TCPAddr)
	return ok && !at.IP.IsUnspecified()
})
