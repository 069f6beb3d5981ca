package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/pki"
)

// The groups in a certificate's subject are a set, which DER sorts.
var anyOrder = cmp.Transformer("sorted", func(s []string) []string { return slices.Sorted(slices.Values(s)) })

var (
	serverNames = []string{"localhost", "kubernetes.default.svc"}
	serverIPs   = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
)

func TestServerIsVerifiedByEachOfItsNames(t *testing.T) {
	t.Parallel()
	dir, ca := ensured(t)
	for _, test := range []struct {
		leaf, name string
		ok         bool
	}{
		{"apiserver", "localhost", true},
		{"apiserver", "kubernetes.default.svc", true},
		{"apiserver", "127.0.0.1", true},
		{"apiserver", "::1", true},
		{"apiserver", "example.com", false},
		{"apiserver", "127.0.0.2", false},
		{"kubelet", "127.0.0.1", true},
		{"kubelet", "localhost", false},
	} {
		_, err := leaf(t, dir, test.leaf).Verify(x509.VerifyOptions{
			DNSName: test.name, Roots: pool(ca.Cert), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if (err == nil) != test.ok {
			t.Errorf("%s as %s: %v, want verified: %t", test.leaf, test.name, err, test.ok)
		}
	}
}

func TestClientIsVerifiedWithItsUserAndGroups(t *testing.T) {
	t.Parallel()
	dir, ca := ensured(t)
	front, err := dir.authority("front-proxy-ca", "")
	if err != nil {
		t.Fatal(err)
	}
	issued, _, err := ca.Issue(pki.Request{CommonName: "kubernetes-admin", Groups: []string{"system:masters", "system:second"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cert    *x509.Certificate
		ca, not *pki.Authority // the signer, and a different authority
		user    string
		groups  []string
	}{
		{cert: parsePEM(t, issued), ca: ca, not: front, user: "kubernetes-admin", groups: []string{"system:masters", "system:second"}},
		{cert: leaf(t, dir, "apiserver-kubelet-client"), ca: ca, not: front, user: "kube-apiserver-kubelet-client"},
		{cert: leaf(t, dir, "front-proxy-client"), ca: front, not: ca, user: "front-proxy-client"},
	} {
		verify := func(by *pki.Authority, usage x509.ExtKeyUsage) error {
			_, err := test.cert.Verify(x509.VerifyOptions{Roots: pool(by.Cert), KeyUsages: []x509.ExtKeyUsage{usage}})
			return err
		}
		if err := verify(test.ca, x509.ExtKeyUsageClientAuth); err != nil {
			t.Errorf("%s: %v", test.user, err)
		}
		if verify(test.not, x509.ExtKeyUsageClientAuth) == nil {
			t.Errorf("%s: the other CA also verifies it, so the front proxy could impersonate any user", test.user)
		}
		if verify(test.ca, x509.ExtKeyUsageServerAuth) == nil {
			t.Errorf("%s: a client certificate is also valid for a server", test.user)
		}
		got := test.cert.Subject
		if got.CommonName != test.user || !cmp.Equal(got.Organization, test.groups, anyOrder) {
			t.Errorf("subject is user %q of %q, want %q of %q", got.CommonName, got.Organization, test.user, test.groups)
		}
	}
}

func TestSecondEnsureKeepsWhatLastsAndRenewsTheRest(t *testing.T) {
	t.Parallel()
	dir, _ := ensured(t)
	before := files(t, dir)
	if _, err := dir.Ensure(serverNames, serverIPs); err != nil {
		t.Fatal(err)
	}
	after := files(t, dir)
	if len(before) != len(after) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	for _, name := range lasting {
		if before[name] == "" || before[name] != after[name] {
			t.Errorf("%s was missing or changed; kubeconfigs and tokens that were handed out no longer work", name)
		}
		delete(after, name)
	}
	for name, content := range after {
		if content == before[name] {
			t.Errorf("%s was not renewed; after a year it would expire, even if the plane is restarted often", name)
		}
	}
}

func TestEveryCertificateHasItsKeyAndNobodyElseMayReadIt(t *testing.T) {
	t.Parallel()
	dir, _ := ensured(t)
	for name := range files(t, dir) {
		info, err := os.Stat(dir.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode().Perm())
		}
		base, ok := strings.CutSuffix(name, ".crt")
		if !ok {
			continue
		}
		if _, err := tls.LoadX509KeyPair(dir.Path(name), dir.Path(base+".key")); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestMissingNamesTheFile(t *testing.T) {
	t.Parallel()
	dir, _ := ensured(t)
	if got := dir.Missing(); got != "" {
		t.Errorf("Missing() = %q in a complete folder", got)
	}
	for _, name := range lasting {
		hidden := dir.Path(name) + ".hidden"
		rename(t, dir.Path(name), hidden)
		if got := dir.Missing(); got != name {
			t.Errorf("without %s: Missing() = %q", name, got)
		}
		rename(t, hidden, dir.Path(name))
	}
	if err := os.Remove(dir.Path("apiserver.crt")); err != nil {
		t.Fatal(err)
	}
	if got := dir.Missing(); got != "" {
		t.Errorf("Missing() = %q, though every start renews that file", got)
	}
}

func TestEnsureRefusesABrokenAuthority(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key"} {
		dir, _ := ensured(t)
		if err := os.WriteFile(dir.Path(name), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Ensure(serverNames, serverIPs); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("with a broken %s: %v, want an error that names it", name, err)
		}
	}
}

func TestEnsureCompletesAStartThatWasKilled(t *testing.T) {
	t.Parallel()
	dir, _ := ensured(t)
	// Keys are written first, so a process that is killed between the two
	// writes leaves a key without its certificate or public key.
	for _, name := range []string{"ca.crt", "sa.pub"} {
		if err := os.Remove(dir.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dir.Ensure(serverNames, serverIPs); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(dir.Path("ca.crt"), dir.Path("ca.key")); err != nil {
		t.Error(err)
	}
}

func ensured(t *testing.T) (Dir, *pki.Authority) {
	t.Helper()
	dir := Dir(filepath.Join(t.TempDir(), "pki"))
	ca, err := dir.Ensure(serverNames, serverIPs)
	if err != nil {
		t.Fatal(err)
	}
	return dir, ca
}

func leaf(t *testing.T, dir Dir, name string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(dir.Path(name + ".crt"))
	if err != nil {
		t.Fatal(err)
	}
	return parsePEM(t, data)
}

func parsePEM(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("not PEM: %q", data)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pool(c *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c)
	return p
}

func files(t *testing.T, dir Dir) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(dir.Path(e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(data)
	}
	return found
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
