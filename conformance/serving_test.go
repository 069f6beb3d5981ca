package conformance

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// endpoint is an HTTPS server on loopback that the API server calls: a webhook
// or an extension API server. It has its own certificate authority, which clients
// trust only if they are given its certificate.
type endpoint struct {
	*httptest.Server
	caBundle []byte // PEM
	outage   *outage
}

// serve answers on 127.0.0.1 until the test ends. The certificate contains dnsNames
// in addition to the address.
func serve(t *testing.T, handler http.Handler, dnsNames ...string) *endpoint {
	t.Helper()
	certificate, caBundle := issue(t, dnsNames)
	e := &endpoint{Server: httptest.NewUnstartedServer(handler), caBundle: caBundle}
	e.outage = &outage{Listener: e.Listener}
	e.Listener = e.outage
	e.Config.ErrorLog = log.New(io.Discard, "", 0) // broken connections are part of the tests
	e.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequestClientCert, // only some handlers verify the certificate
		MinVersion:   tls.VersionTLS12,
	}
	e.StartTLS()
	t.Cleanup(e.Close)
	return e
}

// port returns the port on which the server listens.
func (e *endpoint) port() int { return e.outage.Addr().(*net.TCPAddr).Port }

// goDown breaks all connections, and also every new one until comeBack is called.
func (e *endpoint) goDown() { e.outage.set(true) }

func (e *endpoint) comeBack() { e.outage.set(false) }

// outage is a listener that can make its server appear to be down. While down, it closes each
// connection without an answer. The listener itself stays open, because otherwise another process
// might take its port.
type outage struct {
	net.Listener
	mu    sync.Mutex
	down  bool
	conns []net.Conn // all connections so far
}

func (o *outage) Accept() (net.Conn, error) {
	for {
		conn, err := o.Listener.Accept()
		if err != nil || o.admit(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

func (o *outage) admit(conn net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns = append(o.conns, conn)
	return !o.down
}

func (o *outage) set(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
	if down {
		for _, conn := range o.conns {
			_ = conn.Close()
		}
	}
}

// issue creates an authority, and issues a certificate for 127.0.0.1 and dnsNames.
func issue(t *testing.T, dnsNames []string) (tls.Certificate, []byte) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "conformance authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "conformance endpoint"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     dnsNames,
	}
	authorityKey, key := newKey(t), newKey(t)
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, bundle
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// extension is the handler of an extension API server. It serves one cluster-scoped resource,
// mirrors, whose only object shows the requesting user.
type extension struct {
	group   string
	callers *x509.CertPool // authorities of callers that may name another user
	names   []string       // allowed common names of these callers
}

// mirror is the served object, in version v1 of the group.
type mirror struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	User              string   `json:"user"`
	Groups            []string `json:"groups"`
}

func (x *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := x.authenticate(r); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	gv := x.group + "/v1"
	self := mirror{
		TypeMeta:   metav1.TypeMeta{APIVersion: gv, Kind: "Mirror"},
		ObjectMeta: metav1.ObjectMeta{Name: "self"},
		User:       r.Header.Get("X-Remote-User"),
		Groups:     r.Header.Values("X-Remote-Group"),
	}
	switch r.URL.Path {
	case "/apis/" + x.group:
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: "v1"}
		respond(w, metav1.APIGroup{
			TypeMeta:         metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"},
			Name:             x.group,
			Versions:         []metav1.GroupVersionForDiscovery{version},
			PreferredVersion: version,
		})
	case "/apis/" + gv:
		respond(w, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: gv,
			APIResources: []metav1.APIResource{{Name: "mirrors", SingularName: "mirror", Kind: "Mirror", Verbs: metav1.Verbs{"get", "list"}}},
		})
	case "/apis/" + gv + "/mirrors":
		respond(w, struct {
			metav1.TypeMeta `json:",inline"`
			metav1.ListMeta `json:"metadata"`
			Items           []mirror `json:"items"`
		}{TypeMeta: metav1.TypeMeta{APIVersion: gv, Kind: "MirrorList"}, Items: []mirror{self}})
	case "/apis/" + gv + "/mirrors/self":
		respond(w, self)
	default:
		http.NotFound(w, r)
	}
}

// authenticate trusts the headers of a caller only if its certificate belongs to the
// API server's front proxy, as a real extension API server does.
func (x *extension) authenticate(r *http.Request) error {
	if len(r.TLS.PeerCertificates) == 0 {
		return errors.New("no client certificate")
	}
	caller := r.TLS.PeerCertificates[0]
	if !slices.Contains(x.names, caller.Subject.CommonName) {
		return fmt.Errorf("%q may not impersonate another user", caller.Subject.CommonName)
	}
	_, err := caller.Verify(x509.VerifyOptions{Roots: x.callers, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// respond writes v as the JSON answer.
func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// values maps each NAME to the text that replaces ${NAME} in a manifest.
type values map[string]string

// manifest reads a file of testdata.
func manifest(t *testing.T, file string, v values) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return os.Expand(string(data), func(name string) string {
		value, ok := v[name]
		if !ok {
			t.Fatalf("%s needs a value for %q", file, name)
		}
		return value
	})
}

// object parses one object from YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.ToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(bytes.TrimSpace(data)); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return o
}
