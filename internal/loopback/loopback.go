// Package loopback reserves loopback addresses, so that several controllers that listen on the
// same ports can run at the same time on one machine.
package loopback

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
)

const (
	// Max is the number of holders for which one machine has addresses. All processes on the
	// machine share these addresses.
	Max = 200
	// Slots is the number of addresses that each holder has.
	Slots = 2
	// claimPort is the port on which a holder listens to reserve its addresses. It listens on
	// an address that no controller uses.
	claimPort = 9443
)

// Address returns one of the addresses of a holder. Slots count from 0.
func Address(number, slot int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 80, byte(number), byte(slot + 1)})
}

// Claim reserves addresses that no other holder on this machine uses. Another holder may have a
// controller that listens on the same ports. Claim tries numbers upwards from the given number, and
// returns the first free one. The addresses become free when the closer is closed or the process
// ends. The closer is nil if the system does not support separate loopback addresses.
func Claim(number int) (int, io.Closer) {
	for n := range Max {
		candidate := (number-1+n)%Max + 1
		listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(Address(candidate, Slots), claimPort)))
		switch {
		case err == nil:
			return candidate, listener
		case !errors.Is(err, syscall.EADDRINUSE):
			return number, nil
		}
	}
	return number, nil
}
