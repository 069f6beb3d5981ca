package lab

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
)

const (
	// mostLabs is how many labs one machine has loopback addresses for, of all
	// checks that run on it.
	mostLabs = 200
	// claimPort is where a lab listens to show that its addresses are taken. No
	// controller listens on that address.
	claimPort = 9443
)

// address is the loopback address of one of the controllers that run at once.
func (l *Lab) address(slot int) netip.Addr { return addressOf(l.number, slot) }

func addressOf(number, slot int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 80, byte(number), byte(slot + 1)})
}

// claim finds addresses that no other lab of this machine has, from those of a
// number on: another check may run beside this one, and its controller listens on
// the same ports. They are free again when what is returned is closed, or the
// process ends. It is nil where the system has no such addresses.
func claim(number int) (int, io.Closer) {
	for n := range mostLabs {
		candidate := (number-1+n)%mostLabs + 1
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
