package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"testing"
)

func TestAClientTrustsAServerOfItsAuthorityAndNoOther(t *testing.T) {
	t.Parallel()
	ours, others := authority(t, "ours"), authority(t, "others")
	server := leaf(t, ours, Request{CommonName: "server", Names: []string{"koboshi.test"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true})
	for _, name := range []string{"koboshi.test", "127.0.0.1"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: pool(t, ours), DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: pool(t, ours), DNSName: "example.com"}); err == nil {
		t.Error("the certificate is accepted for a name that it does not have")
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: pool(t, others)}); err == nil {
		t.Error("the certificate is accepted by clients of another authority")
	}
}

func TestAClientsCertificateNamesItsUserAndIsNoServers(t *testing.T) {
	t.Parallel()
	ca := authority(t, "ours")
	client := leaf(t, ca, Request{CommonName: "admin", Groups: []string{"masters"}})
	if s := client.Subject; s.CommonName != "admin" || !slices.Equal(s.Organization, []string{"masters"}) {
		t.Errorf("the subject is %v", s)
	}
	options := x509.VerifyOptions{Roots: pool(t, ca), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := client.Verify(options); err != nil {
		t.Error(err)
	}
	options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if _, err := client.Verify(options); err == nil {
		t.Error("a client's certificate is accepted from a server")
	}
}

func authority(t *testing.T, name string) *Authority {
	t.Helper()
	a, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// leaf issues a certificate and checks that the key belongs to it.
func leaf(t *testing.T, a *Authority, r Request) *x509.Certificate {
	t.Helper()
	cert, key, err := a.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func pool(t *testing.T, a *Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(a.CertPEM()) {
		t.Fatal("no certificate of an authority")
	}
	return p
}
