package binds

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Pod is the address of a Pod, and the ports on which its programs listen.
type Pod struct {
	address netip.Addr

	mu     sync.Mutex
	ports  map[uint16]bool // ports of TCP that were bound, also those that are closed by now
	nested map[netip.Addr]*Pod
}

// NewPod returns a Pod on whose address no program listens yet.
func NewPod(address netip.Addr) *Pod {
	return &Pod{address: address, ports: map[uint16]bool{}, nested: map[netip.Addr]*Pod{}}
}

// Address returns the address of the Pod.
func (p *Pod) Address() netip.Addr { return p.address }

// of returns p, or, for a process that names an address of its own (see Variable), a Pod with that address.
func (p *Pod) of(process uint32) *Pod {
	address := named(process)
	if !address.Is4() || !address.IsLoopback() || address == p.address {
		return p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nested[address] == nil {
		p.nested[address] = NewPod(address)
	}
	return p.nested[address]
}

// named returns the address in the environment with which a process was started, if there is one.
func named(process uint32) (address netip.Addr) {
	environment, _ := os.ReadFile("/proc/" + strconv.FormatUint(uint64(process), 10) + "/environ")
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(Variable+"=")); ok {
			address, _ = netip.ParseAddr(string(value)) // the last one is the innermost
		}
	}
	return address
}

// errLeft is the error for a call that is left unchanged.
var errLeft = errors.New("the call is left unchanged")

// bind binds a socket to the Pod's address; see the package comment for the exceptions.
func (p *Pod) bind(socket int, port uint16, six bool) error {
	protocol, ok := rewritten(socket, six)
	if !ok || protocol == unix.IPPROTO_UDP && port == 0 {
		return errLeft
	}
	err := unix.Bind(socket, p.at(port, six))
	if errors.Is(err, unix.EINVAL) && bound(socket, p.address, port) {
		// The program's call to bind was repeated after a signal (see Install),
		// and the socket is already bound.
		err = nil
	}
	if err == nil && protocol != unix.IPPROTO_UDP {
		p.listens(socket)
	}
	return err
}

// listens remembers the port of a socket.
func (p *Pod) listens(socket int) {
	now, err := unix.Getsockname(socket)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := now.(type) {
	case *unix.SockaddrInet4:
		p.ports[uint16(now.Port)] = true
	case *unix.SockaddrInet6:
		p.ports[uint16(now.Port)] = true
	}
}

// connect connects a socket to a port of the Pod, if one of its programs listens there.
func (p *Pod) connect(socket int, port uint16, six bool) error {
	p.mu.Lock()
	known := p.ports[port]
	p.mu.Unlock()
	if protocol, ok := rewritten(socket, six); !known || !ok || protocol == unix.IPPROTO_UDP {
		return errLeft
	}
	return unix.Connect(socket, p.at(port, six))
}

// at returns the address of a port of the Pod.
func (p *Pod) at(port uint16, six bool) unix.Sockaddr {
	if six {
		return &unix.SockaddrInet6{Port: int(port), Addr: p.address.As16()}
	}
	return &unix.SockaddrInet4{Port: int(port), Addr: p.address.As4()}
}

// rewritten returns the protocol of a socket, and whether its address may be rewritten: it uses TCP or UDP, and
// is not for IPv6 alone.
func rewritten(socket int, six bool) (protocol int, ok bool) {
	protocol, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return 0, false
	}
	switch protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_MPTCP, unix.IPPROTO_UDP: // Go's listeners use MPTCP
	default:
		return 0, false
	}
	if !six {
		return protocol, true
	}
	only, err := unix.GetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	return protocol, err == nil && only == 0
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
