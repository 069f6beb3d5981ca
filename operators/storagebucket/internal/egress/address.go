package egress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// special are the networks that must be allowed explicitly.
var special = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"),        // loopback
	netip.MustParsePrefix("::1/128"),            // loopback
	netip.MustParsePrefix("0.0.0.0/8"),          // unspecified: Linux treats it as loopback
	netip.MustParsePrefix("::/128"),             // unspecified
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local, and the metadata service of most clouds
	netip.MustParsePrefix("fe80::/10"),          // link-local
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("ff00::/8"),           // multicast
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS: metadata, DNS, time
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud: metadata
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud: metadata
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure: the host's own services
	netip.MustParsePrefix("64:ff9b:1::/48"),     // local NAT64 (RFC 8215): may lead anywhere
}

// specialNetwork returns the special network that contains an address.
func specialNetwork(a netip.Addr) (netip.Prefix, bool) {
	for _, network := range special {
		if network.Contains(a) {
			return network, true
		}
	}
	return netip.Prefix{}, false
}

var (
	compatible = netip.MustParsePrefix("::/96")        // IPv4-compatible, RFC 4291
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour  = netip.MustParsePrefix("2002::/16")    // RFC 3056
)

// meaning returns the IPv4 address that the parameter a contains, or a itself if it contains none.
func meaning(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if !a.Is6() || a.IsLoopback() || a.IsUnspecified() {
		return a
	}
	b := a.As16()
	switch {
	case nat64.Contains(a), compatible.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	default:
		return a
	}
}

// normalize returns a host in the form in which names are compared: in lower case and
// without a final dot.
func normalize(host string) string {
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// parseAddress parses a host that is an address, in any spelling that some resolver
// accepts: 127.0.0.1, ::1, 127.1, 2130706433, 0x7f.1, 0177.0.0.1. A host that ends in a
// number but is not an address is an error, as in the WHATWG's URL standard, because no
// name ends in a number.
func parseAddress(host string) (a netip.Addr, isAddress bool, err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a, true, nil
	}
	parts := strings.Split(host, ".")
	if _, isNumber := number(parts[len(parts)-1]); !isNumber {
		return netip.Addr{}, false, nil
	}
	a, ok := classful(parts)
	if !ok {
		return netip.Addr{}, false, &Refused{}
	}
	return a, true, nil
}

// classful parses an IPv4 address in the form that inet_aton accepts: one to four
// numbers, where the last number fills all remaining bytes.
func classful(parts []string) (netip.Addr, bool) {
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		n, ok := number(part)
		free := uint(8 * (4 - i)) // bits that are not filled yet
		last := i == len(parts)-1
		if !ok || n >= 1<<free || (!last && n > 255) {
			return netip.Addr{}, false
		}
		if last {
			sum |= n
		} else {
			sum |= n << (free - 8)
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

// number parses a part of an IPv4 address: decimal, octal after 0,
// hexadecimal after 0x. Any run of digits is a number, even if it is too large for an
// address or not valid octal.
func number(s string) (n uint64, isNumber bool) {
	if s == "" {
		return 0, false
	}
	base := 10
	switch {
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		s, base = s[2:], 16
		if s == "" {
			return 0, true
		}
	case len(s) > 1 && s[0] == '0':
		base = 8
	}
	n, err := strconv.ParseUint(s, base, 64)
	switch {
	case err == nil && s[0] != '+':
		return n, true
	case errors.Is(err, strconv.ErrRange), base == 8 && digits(s):
		return 1 << 63, true
	default:
		return 0, false
	}
}

func digits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// parseNetwork parses an entry that is an address or a network. isNetwork is false if
// the entry may be a name.
func parseNetwork(entry string) (network netip.Prefix, isNetwork bool, err error) {
	if strings.Contains(entry, "/") && !strings.Contains(entry, "//") {
		network, err := netip.ParsePrefix(entry)
		if err != nil {
			return netip.Prefix{}, false, errors.New("the entry is not a network such as 10.0.0.0/8")
		}
		if network != network.Masked() {
			return netip.Prefix{}, false, errors.New("the network has bits set after its prefix: write " + network.Masked().String())
		}
		if network.Addr().Is4In6() {
			return netip.Prefix{}, false, errors.New("this IPv4 network is in IPv6 notation: write it in IPv4 notation, such as 10.0.0.0/8")
		}
		return network, true, nil
	}
	a, err := netip.ParseAddr(entry)
	if err != nil {
		return netip.Prefix{}, false, nil
	}
	if a.Zone() != "" {
		return netip.Prefix{}, false, errors.New("the address has a zone: write the address without the zone")
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true, nil
}

// hostName checks an entry that is a name, and converts it into the form in
// which names are compared.
func hostName(s string) (string, error) {
	name := normalize(s)
	if name == "" || len(name) > 253 {
		return "", errors.New("the host name is empty or too long: write a host name, *.suffix, an address, a network such as 10.0.0.0/8, or *")
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInName) {
			return "", errors.New("the host name is not valid: write an ASCII name without a scheme, port or path, or write *.suffix, an address, a network such as 10.0.0.0/8, or *")
		}
	}
	if _, isAddress, err := parseAddress(name); isAddress || err != nil {
		return "", errors.New("the address is not in the usual form: write it as four decimal numbers")
	}
	return name, nil
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
