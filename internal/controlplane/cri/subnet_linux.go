package cri

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// These constants limit the second octets of the networks that planes use. The lowest octets are
// left out, because other programs use addresses in those networks (127.0.0.53, 127.0.1.1).
const (
	firstSubnet = 16
	lastSubnet  = 254
)

// ClaimSubnet takes the first 127.N.0.0/16 that no other plane has. The claim
// lasts until the Closer is closed or the process ends. The claim is a name in
// the abstract namespace of unix sockets, which is separate in each network
// namespace, as loopback addresses are.
func ClaimSubnet() (netip.Prefix, io.Closer, error) {
	for n := byte(firstSubnet); n <= lastSubnet; n++ {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{127, n, 0, 0}), 16)
		held, err := hold("@koboshi-pods-" + subnet.String())
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			return netip.Prefix{}, nil, fmt.Errorf("claiming addresses for Pods: %w", err)
		}
		return subnet, held, nil
	}
	return netip.Prefix{}, nil, errors.New("claiming addresses for Pods: every 127.N.0.0/16 network is in use; stop another koboshi up")
}

// A claim is the file descriptor of a socket. A claim is not an *os.File, because the garbage
// collector would close an unused *os.File.
type claim int

func hold(name string) (claim, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	return claim(fd), nil
}

// Close releases the addresses.
func (c claim) Close() error { return unix.Close(int(c)) }
