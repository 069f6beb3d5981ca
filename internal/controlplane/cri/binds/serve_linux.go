package binds

import (
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

// Serve answers the calls to bind and connect until no process with the filter is
// left, and then closes the file. /proc must belong to the pid namespace of the
// calling process.
func Serve(file *os.File, pod *Pod) error {
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
			return fmt.Errorf("waiting for programs to call bind or connect: %w", err)
		}
		_ = raw.Control(func(fd uintptr) {
			answer := answer(int(fd), asked, pod)
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

// answer performs the requested call or leaves it to the kernel. The program is never blocked: in
// case of doubt, the call continues unchanged.
func answer(fd int, asked notification, pod *Pod) response {
	letIt := response{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	address, err := read(asked.pid, asked.args[1], asked.args[2])
	if err != nil {
		return letIt
	}
	wanted := unspecified
	if asked.nr == unix.SYS_CONNECT {
		wanted = own
	}
	port, six, ok := parse(address, wanted)
	if !ok {
		return letIt
	}
	pod = pod.of(asked.pid)
	call := pod.bind
	if asked.nr == unix.SYS_CONNECT {
		call = pod.connect
	}
	socket, err := take(asked.pid, int(int32(asked.args[0])))
	if err != nil {
		return letIt
	}
	defer func() { _ = unix.Close(socket) }()
	// If the ID is no longer valid, pid may belong to another process.
	id := asked.id
	if ioctl(fd, ioctlIDValid, unsafe.Pointer(&id)) != nil {
		return letIt
	}
	err = call(socket, port, six)
	switch {
	case errors.Is(err, errLeft):
		return letIt
	case err != nil:
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

// parse returns the port of an address, and whether it is IPv6. It reports whether the address is one of the
// wanted ones.
func parse(address []byte, wanted func(netip.Addr) bool) (port uint16, six, ok bool) {
	if len(address) < unix.SizeofSockaddrInet4 {
		return 0, false, false
	}
	port = binary.BigEndian.Uint16(address[2:])
	switch binary.NativeEndian.Uint16(address) {
	case unix.AF_INET:
		return port, false, wanted(netip.AddrFrom4([4]byte(address[4:8])))
	case unix.AF_INET6: // after the family: two bytes of port, four of flow information, then the address
		return port, true, len(address) >= 24 && wanted(netip.AddrFrom16([16]byte(address[8:24])))
	}
	return 0, false, false
}

func unspecified(a netip.Addr) bool { return a.IsUnspecified() }

// own reports whether a program that connects to the address means its own Pod. The kernel takes the
// unspecified address for 127.0.0.1.
func own(a netip.Addr) bool {
	return a.IsUnspecified() || a.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback()
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

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
