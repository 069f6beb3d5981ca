package binds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification and response have the layout of struct seccomp_notif and struct
// seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32 // the calling thread's ID in the pid namespace of the reader
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	error int32 // a negative error number
	flags uint32
}

// ioctlIDValid is SECCOMP_IOCTL_NOTIF_ID_VALID on architectures where _IOW is
// 1.
const ioctlIDValid = 0x40082102

// Serve answers the calls to bind until no process with the filter is left,
// and then closes the file. /proc must belong to the pid namespace of the
// calling process.
func Serve(file *os.File, to netip.Addr) error {
	defer func() { _ = file.Close() }()
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var asked notification
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			var ready bool
			asked, ready, failed = receive(int(fd))
			return ready || failed != nil
		})
		if err = errors.Join(err, failed); errors.Is(err, errAllGone) {
			return nil
		} else if err != nil {
			return fmt.Errorf("waiting for programs to call bind: %w", err)
		}
		_ = raw.Control(func(fd uintptr) {
			answer := answer(int(fd), asked, to)
			// Sending the answer fails with ENOENT if the program has been killed in the meantime.
			_ = ioctl(int(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
		})
	}
}

var errAllGone = errors.New("no process is left")

// receive returns a notification if there is one.
func receive(fd int) (asked notification, ready bool, err error) {
	state := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(state, 0); err != nil && !errors.Is(err, unix.EINTR) {
		return asked, false, err
	}
	if state[0].Revents&unix.POLLIN == 0 {
		if state[0].Revents&unix.POLLHUP != 0 {
			return asked, false, errAllGone
		}
		return asked, false, nil
	}
	err = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
		return asked, false, nil // the caller has been killed
	}
	return asked, err == nil, err
}

// answer performs the requested bind or leaves it to the kernel. The program is never blocked: in
// case of doubt, the call continues unchanged.
func answer(fd int, asked notification, to netip.Addr) response {
	letIt := response{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	address, err := read(asked.pid, asked.args[1], asked.args[2])
	if err != nil {
		return letIt
	}
	port, six, any := unspecified(address)
	if !any {
		return letIt
	}
	socket, err := take(asked.pid, int(int32(asked.args[0])))
	if err != nil {
		return letIt
	}
	defer func() { _ = unix.Close(socket) }()
	// If the ID is no longer valid, pid may belong to another process.
	id := asked.id
	if ioctl(fd, ioctlIDValid, unsafe.Pointer(&id)) != nil || !rewritten(socket, port, six) {
		return letIt
	}
	if err := bindTo(socket, to, port, six); err != nil {
		return response{id: asked.id, error: -int32(errnoOf(err))}
	}
	return response{id: asked.id}
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EINVAL
}

// read copies the address from the memory of the process.
func read(pid uint32, at, length uint64) ([]byte, error) {
	address := make([]byte, min(length, unix.SizeofSockaddrInet6))
	if len(address) == 0 {
		return nil, unix.EINVAL
	}
	n, err := unix.ProcessVMReadv(int(pid),
		[]unix.Iovec{{Base: &address[0], Len: uint64(len(address))}},
		[]unix.RemoteIovec{{Base: uintptr(at), Len: len(address)}}, 0)
	if err != nil {
		return nil, err
	}
	return address[:n], nil
}

// unspecified reports whether the address is 0.0.0.0 or ::, and whether it is IPv6. It also returns
// the port.
func unspecified(address []byte) (port uint16, six, any bool) {
	if len(address) < unix.SizeofSockaddrInet4 {
		return 0, false, false
	}
	port = binary.BigEndian.Uint16(address[2:])
	switch binary.NativeEndian.Uint16(address) {
	case unix.AF_INET:
		return port, false, allZero(address[4:8])
	case unix.AF_INET6: // after the family: two bytes of port, four of flow information, then the address
		return port, true, len(address) >= 24 && allZero(address[8:24])
	}
	return 0, false, false
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// rewritten reports whether the socket must be bound to the Pod's address; see
// the package comment for the exceptions.
func rewritten(socket int, port uint16, six bool) bool {
	protocol, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return false
	}
	switch protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_MPTCP: // Go's listeners use MPTCP
	case unix.IPPROTO_UDP:
		if port == 0 {
			return false
		}
	default:
		return false
	}
	if !six {
		return true
	}
	only, err := unix.GetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	return err == nil && only == 0
}

// take duplicates an open file of the process to which the thread belongs.
func take(thread uint32, fd int) (int, error) {
	process, err := processOf(thread)
	if err != nil {
		return 0, err
	}
	handle, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(handle) }()
	return unix.PidfdGetfd(handle, fd, 0)
}

// processOf returns the process of a thread, because pidfd_open does not
// accept threads before Linux 6.9.
func processOf(thread uint32) (int, error) {
	status, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "\nTgid:")
	if !found {
		return 0, unix.ESRCH
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

func bindTo(socket int, to netip.Addr, port uint16, six bool) error {
	var wanted unix.Sockaddr = &unix.SockaddrInet4{Port: int(port), Addr: to.As4()}
	if six {
		wanted = &unix.SockaddrInet6{Port: int(port), Addr: to.As16()}
	}
	err := unix.Bind(socket, wanted)
	if errors.Is(err, unix.EINVAL) && bound(socket, to, port) {
		// The program's call to bind was repeated after a signal (see Install),
		// and the socket is already bound.
		return nil
	}
	return err
}

func bound(socket int, to netip.Addr, port uint16) bool {
	now, err := unix.Getsockname(socket)
	if err != nil {
		return false
	}
	switch now := now.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(now.Addr) == to && (port == 0 || now.Port == int(port))
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(now.Addr).Unmap() == to && (port == 0 || now.Port == int(port))
	}
	return false
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
