package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func guard(t testing.TB, entries ...string) *Guard {
	t.Helper()
	g, err := New(entries)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// urlFor writes a host in the form it has in URLs.
func urlFor(host string) *url.URL {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return &url.URL{Scheme: "http", Host: host + ":9000"}
}

// spellings are different ways to write special addresses.
var spellings = []string{
	"127.0.0.1", "127.0.0.1.", "127.255.255.254", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1",
	"0177.0.0.1", "0177.0.0x1", "017700000001", "127.0.0.1.",
	"::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::7f00:1",
	"2002:7f00:1::", "64:ff9b:1::a00:1",
	"0.0.0.0", "0", "0.1.2.3", "::", "::ffff:0.0.0.0",
	"169.254.0.1", "169.254.169.254", "169.254.169.254.", "169.254.43518", "0xa9fea9fe", "2852039166", "::ffff:169.254.169.254",
	"64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fe80::1", "fe80::1%eth0", "FE80::1", "febf::1",
	"224.0.0.1", "239.255.255.255", "ff02::1", "255.255.255.255", "4294967295",
	"fd00:ec2::254", "fd00:ec2:0:0:0:0:0:254", "fd20:ce::254", "100.100.100.200", "::ffff:100.100.100.200", "168.63.129.16",
}

func TestSpecialAddressIsRefusedHoweverItIsWritten(t *testing.T) {
	for _, entries := range [][]string{
		nil,
		{"*"},
		{"0.0.0.0/0", "::/0"},
		{"s3.example.com", "*.example.com", "10.0.0.0/8", "64:ff9b::/96", "100.64.0.0/10", "fd00::/8", "fc00::/7", "2002::/16"},
	} {
		g := guard(t, entries...)
		for _, host := range spellings {
			var refused *Refused
			if err := g.CheckURL(urlFor(host)); !errors.As(err, &refused) || !refused.Special {
				t.Errorf("allowed %q: %s passes CheckURL: %v", entries, host, err)
			}
			if err := g.CheckResolved(t.Context(), host); !errors.As(err, &refused) {
				t.Errorf("allowed %q: %s passes CheckResolved: %v", entries, host, err)
			}
			a, err := netip.ParseAddr(host)
			if err != nil {
				continue
			}
			for _, name := range []string{host, "s3.example.org", "a.example.com", ""} {
				if err := g.Control(name)("tcp", netip.AddrPortFrom(a, 80).String(), nil); !errors.As(err, &refused) || !refused.Special {
					t.Errorf("allowed %q: %s, which is %s, can be dialled: %v", entries, name, host, err)
				}
			}
		}
	}
}

func TestListedSpecialAddressIsAllowed(t *testing.T) {
	for _, tc := range []struct{ entry, host, address string }{
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:1"},
		{"127.0.0.1", "127.1", "127.0.0.1:1"},
		{"127.0.0.1", "::ffff:127.0.0.1", "[::ffff:127.0.0.1]:1"},
		{"::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1:1"},
		{"127.0.0.0/8", "127.9.9.9", "127.9.9.9:1"},
		{"::1", "::1", "[::1]:1"},
		{"fe80::/10", "fe80::7", "[fe80::7%eth0]:1"},
		{"169.254.1.0/24", "169.254.1.9", "169.254.1.9:1"},
		{"100.100.100.200/32", "100.100.100.200", "100.100.100.200:1"},
		{"localhost", "localhost", "127.0.0.1:1"},
		{"localhost", "LOCALHOST.", "[::1]:1"},
		{"Store.Internal.", "store.internal", "169.254.0.7:1"},
	} {
		for _, others := range [][]string{nil, {"*"}, {"10.0.0.0/8"}} {
			g := guard(t, append(others, tc.entry)...)
			if err := g.CheckURL(urlFor(tc.host)); err != nil {
				t.Errorf("%s does not allow the URL's host %s: %v", tc.entry, tc.host, err)
			}
			if err := g.Control(tc.host)("tcp", tc.address, nil); err != nil {
				t.Errorf("%s does not allow %s at %s: %v", tc.entry, tc.host, tc.address, err)
			}
		}
	}
}

func TestListDecidesAboutOrdinaryAddresses(t *testing.T) {
	const public, private = "93.184.216.34:443", "10.1.2.3:443"
	for _, tc := range []struct {
		name    string
		entries []string
		host    string
		address string
		byURL   bool // CheckURL lets it pass
		byDial  bool // Control lets it pass
	}{
		{"no list allows every name", nil, "s3.example.com", public, true, true},
		{"no list allows private addresses", nil, "minio.storage.svc", private, true, true},
		{"a star allows every name", []string{"*"}, "s3.example.com", public, true, true},
		{"a star beside others allows every name", []string{"127.0.0.1", "*"}, "s3.example.com", public, true, true},
		{"a listed name is allowed", []string{"s3.example.com"}, "s3.example.com", public, true, true},
		{"case and a last dot do not matter", []string{"s3.example.com"}, "S3.Example.com.", public, true, true},
		{"another name is refused", []string{"s3.example.com"}, "s3.example.org", public, false, false},
		{"a name below a listed name is refused", []string{"example.com"}, "s3.example.com", public, false, false},
		{"a suffix allows names below it", []string{"*.example.com"}, "a.b.example.com", public, true, true},
		{"a suffix does not allow the name itself", []string{"*.example.com"}, "example.com", public, false, false},
		{"a suffix ends at a dot", []string{"*.example.com"}, "evilexample.com", public, false, false},
		{"a network allows the names that resolve to it", []string{"10.0.0.0/8"}, "minio.storage.svc", private, true, true},
		{"a network refuses other names, but only when they are dialled", []string{"10.0.0.0/8"}, "minio.storage.svc", public, true, false},
		{"a network allows its addresses", []string{"10.0.0.0/8"}, "10.1.2.3", private, true, true},
		{"a network refuses other addresses", []string{"10.0.0.0/8"}, "93.184.216.34", public, false, false},
		{"an address allows itself", []string{"10.1.2.3"}, "10.1.2.3", private, true, true},
		{"an address refuses another address", []string{"10.1.2.4"}, "10.1.2.3", private, false, false},
		{"an IPv6 network allows its addresses", []string{"2001:db8::/32"}, "2001:db8::1", "[2001:db8::1]:1", true, true},
		{"an address that is mapped into IPv6 is the same", []string{"10.1.2.3"}, "::ffff:10.1.2.3", "[::ffff:10.1.2.3]:1", true, true},
		{"an address behind NAT64 is the same", []string{"10.1.2.3"}, "64:ff9b::10.1.2.3", "[64:ff9b::10.1.2.3]:1", true, true},
		{"a number too many is no address", nil, "1.2.3.4.5", private, false, true},
		{"a number too large is no address", nil, "1.2.3.256", private, false, true},
		{"digits that are not octal are no name either", nil, "1.2.3.09", private, false, true},
	} {
		g := guard(t, tc.entries...)
		if err := g.CheckURL(urlFor(tc.host)); (err == nil) != tc.byURL {
			t.Errorf("%s: CheckURL: %v", tc.name, err)
		}
		if err := g.Control(tc.host)("tcp", tc.address, nil); (err == nil) != tc.byDial {
			t.Errorf("%s: Control: %v", tc.name, err)
		}
	}
}

func TestNilGuardIsThatOfAnEmptyList(t *testing.T) {
	var g *Guard
	if err := g.CheckURL(urlFor("s3.example.com")); err != nil {
		t.Error(err)
	}
	if err := g.Control("s3.example.com")("tcp", "10.0.0.1:80", nil); err != nil {
		t.Error(err)
	}
	if err := g.Control("s3.example.com")("tcp", "127.0.0.1:80", nil); err == nil {
		t.Error("loopback is allowed")
	}
}

func TestWhatIsNotTCPIsRefused(t *testing.T) {
	g := guard(t, "*", "127.0.0.1")
	for _, tc := range []struct{ network, address string }{
		{"udp", "10.0.0.1:53"}, {"unix", "/var/run/docker.sock"}, {"tcp", "no address"}, {"tcp", ""},
	} {
		if err := g.Control("x")(tc.network, tc.address, nil); err == nil {
			t.Errorf("%s %s is allowed", tc.network, tc.address)
		}
	}
}

func TestNameThatResolvesToLoopbackIsRefusedWhenDialled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())

	dial := func(g *Guard) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := (&net.Dialer{Control: g.Control("localhost")}).DialContext(ctx, "tcp4", "localhost:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for _, entries := range [][]string{nil, {"*"}, {"*.localhost", "10.0.0.0/8"}} {
		g := guard(t, entries...)
		var refused *Refused
		if err := dial(g); !errors.As(err, &refused) {
			t.Errorf("allowed %q: %v", entries, err)
		}
		if err := g.CheckResolved(t.Context(), "localhost"); !errors.As(err, &refused) {
			t.Errorf("allowed %q, resolved: %v", entries, err)
		}
	}
	for _, entries := range [][]string{{"localhost"}, {"127.0.0.1", "::1"}} {
		g := guard(t, entries...)
		if err := dial(g); err != nil {
			t.Errorf("allowed %q: %v", entries, err)
		}
		if err := g.CheckResolved(t.Context(), "localhost"); err != nil {
			t.Errorf("allowed %q, resolved: %v", entries, err)
		}
	}
}

func TestBadEntryIsNamed(t *testing.T) {
	for _, entry := range []string{
		"", " ", ".", "*.", "*.*.example.com", "a.*.example.com", "**", "https://s3.example.com", "s3.example.com:443",
		"s3.example.com/path", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "[::1]", "fe80::1%eth0", "::ffff:10.0.0.0/104",
		"127.1", "1.2.3.4.5", "0x7f000001", "a..b", "bücher.example", "user@host", "a b", strings.Repeat("a", 64) + ".com",
		strings.Repeat("a.", 130) + "com",
	} {
		g, err := New([]string{"s3.example.com", entry})
		if err == nil {
			t.Errorf("%q is accepted as %+v", entry, g)
		} else if entry != "" && !strings.Contains(err.Error(), entry) && !strings.Contains(err.Error(), "\\") {
			t.Errorf("%q is not named: %v", entry, err)
		}
	}
}

func TestRefusalNamesTheFlagAndNothingElse(t *testing.T) {
	for _, host := range []string{"secret-host.internal", "127.0.0.1", "10.9.8.7"} {
		err := guard(t, "s3.example.com").CheckURL(urlFor(host))
		if err == nil || !strings.Contains(err.Error(), "--allowed-endpoints") || strings.Contains(err.Error(), host) {
			t.Errorf("%v", err)
		}
	}
}

func FuzzNew(f *testing.F) {
	for _, s := range []string{"*", "*.a", "a", "10.0.0.0/8", "::/0", "127.0.0.1", "::ffff:1.2.3.4", "0x1", "1.2.3.4/"} {
		f.Add(s, "169.254.169.254")
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, entry, host string) {
		g, err := New([]string{entry})
		if err != nil {
			return
		}
		_ = g.CheckURL(&url.URL{Scheme: "http", Host: host})
		// Only an entry that is an address or a network, or exactly the host
		// name, may allow a special address.
		_, _, isCIDR := strings.Cut(entry, "/")
		if _, notAddress := netip.ParseAddr(entry); notAddress == nil || isCIDR || normalize(entry) == normalize(host) {
			return
		}
		for _, address := range []string{"169.254.169.254:80", "[::1]:80", "[::ffff:127.0.0.1]:80"} {
			if err := g.Control(host)("tcp", address, nil); err == nil {
				t.Fatalf("allowed %q: %q may be %s", entry, host, address)
			}
		}
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range spellings {
		f.Add(s)
	}
	f.Add("s3.example.com")
	f.Fuzz(func(t *testing.T, host string) {
		for _, u := range []*url.URL{{Host: host}, {Host: "[" + host + "]"}, {Host: host + ":1"}} {
			var g *Guard
			if g.CheckURL(u) != nil {
				continue
			}
			a, err := netip.ParseAddr(u.Hostname())
			if err != nil {
				continue
			}
			if a = a.WithZone("").Unmap(); a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() {
				t.Fatalf("%q passes", u.Host)
			}
		}
	})
}
