package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/controlplane/credentials"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

func TestKubeletRefusesAClientWithoutACertificateOfThePlane(t *testing.T) {
	t.Parallel()
	ca, kubelet := runKubelet(t, nil)
	stranger := authority(t)
	for name, certificates := range map[string][]tls.Certificate{
		"none":            nil,
		"of another CA":   {clientCertificate(t, stranger)},
		"to serve with":   {issue(t, ca, pki.Request{CommonName: "kube-apiserver", Server: true})},
		"of the plane CA": {clientCertificate(t, ca)},
	} {
		status, _, err := get(t, kubelet, ca, certificates, http.MethodGet, "/containerLogs/ns/pod/c")
		if allowed := name == "of the plane CA"; (err == nil) != allowed {
			t.Errorf("certificate %s: status %d, error %v; want let in: %t", name, status, err, allowed)
		}
	}
}

func TestKubeletAnswersWithTheNameOfThePod(t *testing.T) {
	t.Parallel()
	ca, kubelet := runKubelet(t, nil)
	certificates := []tls.Certificate{clientCertificate(t, ca)}
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/containerLogs/ns/web-1/nginx?follow=true", 200, "container nginx of pod ns/web-1 is simulated; it runs no process and has no output"},
		{"POST", "/exec/ns/web-1/nginx?command=ls", 501, "container nginx of pod ns/web-1 is simulated; there is no process to execute a command in"},
		{"GET", "/exec/ns/web-1/nginx?command=ls", 501, "container nginx of pod ns/web-1 is simulated; there is no process to execute a command in"},
		{"POST", "/exec/ns/web-1/some-uid/nginx", 501, "container nginx of pod ns/web-1 is simulated; there is no process to execute a command in"},
		{"POST", "/attach/ns/web-1/nginx", 501, "container nginx of pod ns/web-1 is simulated; there is no process to attach to"},
		{"POST", "/attach/ns/web-1/some-uid/nginx", 501, "container nginx of pod ns/web-1 is simulated; there is no process to attach to"},
		{"POST", "/portForward/ns/web-1", 501, "pod ns/web-1 is simulated; there is no process to forward a port to"},
		{"POST", "/portForward/ns/web-1/some-uid", 501, "pod ns/web-1 is simulated; there is no process to forward a port to"},
		{"GET", "/pods", 404, "404 page not found"},
		{"GET", "/", 404, "404 page not found"},
	} {
		status, body, err := get(t, kubelet, ca, certificates, test.method, test.path)
		if err != nil {
			t.Errorf("%s %s: %v", test.method, test.path, err)
			continue
		}
		if status != test.status || strings.TrimSpace(body) != test.body {
			t.Errorf("%s %s:\ngot  %d %s\nwant %d %s", test.method, test.path, status, body, test.status, test.body)
		}
	}
}

func TestKubeletListensOnLoopbackUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	kubelet := newKubelet(t, ca, nil)
	if ip := kubelet.listener.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		t.Errorf("it listens on %s", ip)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- kubelet.Run(ctx) }()
	if _, _, err := get(t, kubelet, ca, []tls.Certificate{clientCertificate(t, ca)}, http.MethodGet, "/"); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v, though it was told to stop", err)
	}
	if _, err := net.Dial("tcp", kubelet.listener.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

func TestKubeletTellsWhyItEndedByItself(t *testing.T) {
	t.Parallel()
	kubelet := newKubelet(t, authority(t), nil)
	_ = kubelet.listener.Close()
	if err := kubelet.Run(t.Context()); err == nil {
		t.Error("Run ended without a listener and gave no error")
	}
}

func runKubelet(t *testing.T, processes Processes) (*pki.Authority, *Kubelet) {
	t.Helper()
	ca := authority(t)
	kubelet := newKubelet(t, ca, processes)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- kubelet.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ca, kubelet
}

func newKubelet(t *testing.T, ca *pki.Authority, processes Processes) *Kubelet {
	t.Helper()
	serving := issue(t, ca, pki.Request{CommonName: "koboshi-node", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true})
	kubelet, err := NewKubelet(ca.Cert, serving, processes, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return kubelet
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	ca, err := credentials.Dir(t.TempDir()).Ensure(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func clientCertificate(t *testing.T, ca *pki.Authority) tls.Certificate {
	t.Helper()
	return issue(t, ca, pki.Request{CommonName: "kube-apiserver-kubelet-client"})
}

func issue(t *testing.T, ca *pki.Authority, req pki.Request) tls.Certificate {
	t.Helper()
	certPEM, keyPEM, err := ca.Issue(req)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func get(t *testing.T, kubelet *Kubelet, ca *pki.Authority, certificates []tls.Certificate, method, path string) (status int, body string, err error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("https://127.0.0.1:%d%s", kubelet.Port(), path), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}
