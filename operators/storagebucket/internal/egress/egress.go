// Package egress decides to which addresses the operator may connect.
//
// Endpoints are written by tenants, and the operator can reach addresses that they
// cannot: the node's own ports, the cloud's metadata service. By default every address
// may be dialled except the special ones: loopback, link-local, unspecified, multicast
// and metadata. To allow certain stores only, or a store at a special address, the
// operator gets a list:
//
//	s3.example.com     that host, whatever it resolves to
//	*.example.com      all hosts below it, but at no special address
//	10.0.0.0/8         those addresses, whatever name leads to them
//	127.0.0.1          that address
//	*                  everything but the special addresses
//
// A network allows a special address only when it contains nothing else: 0.0.0.0/0
// means the world, not the metadata service.
//
// A name proves nothing, because its owner decides what it resolves to. So the
// decision is made when a connection is opened, by the address it is opened
// to; CheckURL only gives the same answer earlier where it can.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// Guard decides whether a connection is allowed. It is immutable and safe for
// concurrent use. A nil Guard is the Guard of an empty list.
type Guard struct {
	// listed is set if there are entries: addresses that they do not cover are
	// refused.
	listed   bool
	hosts    map[string]bool
	suffixes []string
	networks []netip.Prefix
}

// Refused is the error of a connection that the Guard does not allow. Its text is
// fixed: it names neither host nor address.
type Refused struct {
	// Special is set if the address is one that must be listed itself.
	Special bool
}

// Error names the flag that allows the connection.
func (r *Refused) Error() string {
	if r.Special {
		return "the endpoint's address is a loopback, link-local, multicast or metadata address: " +
			"have it listed itself in the operator's flag --allowed-endpoints, or use another endpoint"
	}
	return "the endpoint is not among those the operator may use: " +
		"have it listed in the operator's flag --allowed-endpoints, or use another endpoint"
}

// New makes a Guard of a list's entries. An error names the entry.
func New(allowed []string) (*Guard, error) {
	g := &Guard{hosts: map[string]bool{}}
	everything := false
	for _, entry := range allowed {
		switch {
		case entry == "*":
			everything = true
		case strings.HasPrefix(entry, "*."):
			name, err := hostName(entry[2:])
			if err != nil {
				return nil, fmt.Errorf("parsing the allowed endpoint %q: %w", entry, err)
			}
			g.suffixes = append(g.suffixes, "."+name)
		default:
			network, isNetwork, err := parseNetwork(entry)
			if err != nil {
				return nil, fmt.Errorf("parsing the allowed endpoint %q: %w", entry, err)
			}
			if isNetwork {
				g.networks = append(g.networks, network)
				continue
			}
			name, err := hostName(entry)
			if err != nil {
				return nil, fmt.Errorf("parsing the allowed endpoint %q: %w", entry, err)
			}
			g.hosts[name] = true
		}
	}
	g.listed = len(allowed) > 0 && !everything
	return g, nil
}

// CheckURL judges an endpoint without asking anybody: addresses by their
// value, names by the list. A *Refused is final; nil is not, for a name may
// resolve to an address that is refused.
func (g *Guard) CheckURL(u *url.URL) error {
	host := normalize(u.Hostname())
	address, isAddress, err := parseAddress(host)
	switch {
	case err != nil:
		return err
	case isAddress:
		return g.checkAddress(host, address)
	case g.named(host):
		return nil
	case g != nil && g.listed && len(g.networks) == 0:
		return &Refused{}
	default:
		return nil
	}
}

// CheckResolved judges a host that somebody else, a proxy, will connect to, by
// what its name resolves to here. It is no more than a second line of defence:
// the proxy may see another address. The error is a *Refused, or that of the
// look-up. A host that is listed by its name need not resolve.
func (g *Guard) CheckResolved(ctx context.Context, host string) error {
	host = normalize(host)
	address, isAddress, err := parseAddress(host)
	if err != nil {
		return err
	}
	if isAddress {
		return g.checkAddress(host, address)
	}
	if g.exactly(host) {
		return nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("resolving the endpoint: %w", err)
	}
	for _, address := range addresses {
		if err := g.checkAddress(host, address); err != nil {
			return err
		}
	}
	return nil
}

// Control is for the field of that name of a net.Dialer that connects to host,
// and judges the address the name turned out to have.
func (g *Guard) Control(host string) func(network, address string, c syscall.RawConn) error {
	host = normalize(host)
	return func(network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return &Refused{}
		}
		return g.checkAddress(host, target.Addr())
	}
}

// checkAddress judges an address that host, a name or the address itself, led
// to.
func (g *Guard) checkAddress(host string, address netip.Addr) error {
	a := meaning(address)
	if network, is := specialNetwork(a); is {
		if g.exactly(host) || g.networkWithin(a, network) {
			return nil
		}
		return &Refused{Special: true}
	}
	if g != nil && g.listed && !g.named(host) && !g.networkOf(a) {
		return &Refused{}
	}
	return nil
}

// exactly reports whether the name itself is listed.
func (g *Guard) exactly(host string) bool { return g != nil && g.hosts[host] }

// named reports whether the list has the name, or a suffix of it.
func (g *Guard) named(host string) bool {
	if g.exactly(host) {
		return true
	}
	if g == nil {
		return false
	}
	for _, suffix := range g.suffixes {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

func (g *Guard) networkOf(a netip.Addr) bool {
	for _, network := range g.networks {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

// networkWithin reports whether a listed network contains the address and lies
// within the special one.
func (g *Guard) networkWithin(a netip.Addr, special netip.Prefix) bool {
	if g == nil {
		return false
	}
	for _, network := range g.networks {
		if network.Contains(a) && network.Bits() >= special.Bits() {
			return true
		}
	}
	return false
}
