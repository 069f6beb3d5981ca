package nodes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/utils/exec"
)

// fixed answers one command, and one port.
type fixed struct{ address string }

func (f fixed) Command(c Container, argv []string) (Result, bool) {
	if argv[0] != "db" {
		return Result{}, false
	}
	return Result{Stdout: fmt.Sprintf("%s/%s/%s", c.Namespace, c.Pod, c.Name), Stderr: strings.Join(argv, " "), ExitCode: len(argv) - 1}, true
}

func (f fixed) Ports(_, pod string) map[int32]string {
	if pod != "a" {
		return nil
	}
	return map[int32]string{80: f.address}
}

// connection returns a client configuration for the endpoint, like the API server's.
func connection(t *testing.T, processes Processes) (*rest.Config, *url.URL) {
	t.Helper()
	ca, kubelet := runKubelet(t, processes)
	client := clientCertificate(t, ca)
	key, err := keyPEM(client)
	if err != nil {
		t.Fatal(err)
	}
	base := &url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", kubelet.Port())}
	return &rest.Config{Host: base.String(), TLSClientConfig: rest.TLSClientConfig{
		CAData: ca.CertPEM(), KeyData: key,
		CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: client.Certificate[0]}),
	}}, base
}

func TestCommandsInSimulatedPodsHaveTheGivenResult(t *testing.T) {
	t.Parallel()
	config, base := connection(t, fixed{})
	for query, want := range map[string]string{
		"command=db":                             "out default/a/c, errors db, exit 0",
		"command=db&command=x&command=y":         "out default/a/c, errors db x y, exit 2",
		"command=db&command=x&tty=1":             "out default/a/cdb x, errors , exit 1",
		"command=rm&command=-rf&command=/&tty=1": "unable to upgrade connection: container c of pod default/a is simulated; there is no process to execute a command in",
	} {
		u := base.JoinPath("exec/default/a/c")
		u.RawQuery = "output=1&error=1&" + query
		executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		options := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs, Tty: strings.Contains(query, "tty")}
		if options.Tty {
			options.Stderr = nil
		}
		err = executor.StreamWithContext(t.Context(), options)
		got, code := "", 0
		var exit utilexec.ExitError
		if errors.As(err, &exit) {
			code, err = exit.ExitStatus(), nil
		}
		if got = fmt.Sprintf("out %s, errors %s, exit %d", &out, &errs, code); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
}

func TestPortsOfSimulatedPodsAreForwarded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.URL.Path) }))
	defer server.Close()
	config, base := connection(t, fixed{address: server.Listener.Addr().String()})
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	forward := func(pod string) (*portforward.PortForwarder, chan struct{}, chan error) {
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, base.JoinPath("portForward/default", pod))
		stop, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- forwarder.ForwardPorts() }()
		return forwarder, stop, done
	}
	forwarder, stop, done := forward("a")
	select {
	case <-forwarder.Ready:
	case err := <-done:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(fmt.Sprintf("http://%s/path", net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0].Local))))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello /path" {
		t.Errorf("%q, %v", body, err)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, _, done := forward("b"); !strings.Contains(fmt.Sprint(<-done), "pod default/b is simulated; there is no process to forward a port to") {
		t.Error("a port of a Pod without an answer is not refused with the reason")
	}
}

func keyPEM(certificate tls.Certificate) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
