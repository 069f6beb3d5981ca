package lab

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
)

const (
	// maxLabs is the number of labs for which one machine has loopback addresses. All
	// checks on the machine share these addresses.
	maxLabs = 200
	// claimPort is the port on which a lab listens to reserve its addresses. The lab
	// listens on an address that no controller uses.
	claimPort = 9443
)

// address returns the loopback address of one controller instance.
func (l *Lab) address(slot int) netip.Addr { return addressOf(l.number, slot) }

func addressOf(number, slot int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 80, byte(number), byte(slot + 1)})
}

// claim reserves loopback addresses that no other lab on this machine uses. Another check
// may run at the same time, with a controller that listens on the same ports. claim tries
// lab numbers upwards from the given one, and returns the first free number. The addresses
// become free when the closer is closed or the process ends. The closer is nil if the
// system does not support separate loopback addresses.
func claim(number int) (int, io.Closer) {
	for n := range maxLabs {
		candidate := (number-1+n)%maxLabs + 1
		listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addressOf(candidate, slots), claimPort)))
		switch {
		case err == nil:
			return candidate, listener
		case !errors.Is(err, syscall.EADDRINUSE):
			return number, nil
		}
	}
	return number, nil
}

func (l *Lab) unclaim() {
	if l.claimed != nil {
		_ = l.claimed.Close()
	}
}
