// Package egress decides which addresses the operator may connect to.
//
// Endpoints are written by tenants, and the operator can reach addresses that tenants
// cannot reach: the node's own ports, the cloud's metadata service. By default, the
// operator may connect to every address except the special ones: loopback, link-local,
// unspecified, multicast and metadata. To allow only certain stores, or a store at a
// special address, give the operator a list:
//
//	s3.example.com     that host, whatever it resolves to
//	*.example.com      all hosts below it, but at no special address
//	10.0.0.0/8         those addresses, whatever name leads to them
//	127.0.0.1          that address
//	*                  everything but the special addresses
//
// A network allows a special address only if it contains nothing but special addresses: 0.0.0.0/0
// allows all ordinary addresses, but not the metadata service.
//
// The owner of a DNS name chooses the addresses that the name resolves to, so an allowed
// name does not prove that its address is allowed. A connection is therefore allowed or
// refused when it is opened, depending on its address. CheckURL can refuse some endpoints
// earlier, before a connection is opened.
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
// concurrent use. A nil Guard behaves like one with an empty list.
type Guard struct {
	// listed reports whether the list has entries. If the list has entries, addresses that no entry
	// covers are refused.
	listed   bool
	hosts    map[string]bool
	suffixes []string
	networks []netip.Prefix
}

// Refused is the error for a connection that the Guard does not allow. The error's text is fixed:
// it names neither the host nor the address.
type Refused struct {
	// Special reports whether the address is one that must be listed explicitly.
	Special bool
}

// Error returns a text that names the flag that allows the connection.
func (r *Refused) Error() string {
	if r.Special {
		return "the endpoint's address is a loopback, link-local, multicast or metadata address: " +
			"list it explicitly in the operator's flag --allowed-endpoints, or use another endpoint"
	}
	return "the endpoint is not among those that the operator may use: " +
		"list it in the operator's flag --allowed-endpoints, or use another endpoint"
}

// New creates a Guard from the entries of a list. The error names the invalid entry.
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

// CheckURL checks the address or the name in an endpoint, without looking up the name. A
// *Refused is final. A nil error is not final, because a name may resolve to an address
// that is refused.
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

// CheckResolved checks a host that a proxy will connect to. CheckResolved looks up the name of the
// host and checks the addresses. The check is only a second line of defense, because the name may
// resolve to other addresses at the proxy. The error is a *Refused, or the error of the look-up. A
// host that is listed by its name does not have to resolve.
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

// Control returns a function for the field Control of a net.Dialer that connects to
// host. The function checks the address that the name was resolved to.
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

// checkAddress checks one of the addresses of a host. The parameter host is the name of the
// host, or the address itself.
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

// exactly reports whether the list has exactly this name.
func (g *Guard) exactly(host string) bool { return g != nil && g.hosts[host] }

// named reports whether the list has the name or a suffix of it.
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

// networkWithin reports whether the list has a network that contains the address and
// lies within the special network.
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
