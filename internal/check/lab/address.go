package lab

import (
	"net/netip"

	"github.com/koboshi-dev/koboshi/internal/loopback"
)

// address returns the loopback address of one controller instance.
func (l *Lab) address(slot int) netip.Addr { return loopback.Address(l.number, slot) }

func (l *Lab) unclaim() {
	if l.claimed != nil {
		_ = l.claimed.Close()
	}
}
