package nodes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// A Kubelet serves the requests that the API server sends to a node: logs, exec, attach and
// port-forward of its Pods. One endpoint serves all simulated nodes. The endpoint accepts only
// clients with a certificate of the plane's CA, like a kubelet with --client-ca-file and
// --anonymous-auth=false.
type Kubelet struct {
	listener  net.Listener
	server    *http.Server
	processes Processes
}

// NewKubelet listens on a free port of the loopback address. If processes is nil, no command can be
// executed in Pods, and Pods listen on no port.
func NewKubelet(clientCA *x509.Certificate, serving tls.Certificate, processes Processes, log *slog.Logger) (*Kubelet, error) {
	listener, err := freeport.Listen(0)
	if err != nil {
		return nil, fmt.Errorf("listening for the nodes: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(clientCA)
	k := &Kubelet{listener: listener, processes: processes}
	k.server = &http.Server{
		Handler:           k.simulated(),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{serving},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    clients,
			// Streams need protocol upgrades, which HTTP/2 does not have.
			NextProtos: []string{"http/1.1"},
		},
	}
	return k, nil
}

// Port returns the port on the loopback address.
func (k *Kubelet) Port() int { return k.listener.Addr().(*net.TCPAddr).Port }

// Run serves until ctx ends.
func (k *Kubelet) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = k.server.Close() })
	defer stop()
	if err := k.server.ServeTLS(k.listener, "", ""); ctx.Err() == nil {
		return fmt.Errorf("serving the nodes: %w", err)
	}
	return nil
}

// simulated returns a handler for the paths of a kubelet; see pkg/kubelet/server of
// Kubernetes v1.37.
func (k *Kubelet) simulated() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintf(w, "%s; it runs no process and has no output\n", subject(r))
	})
	attach := func(w http.ResponseWriter, r *http.Request) { refuse(w, r, "attach to") }
	for path, handle := range map[string]http.HandlerFunc{
		"/exec/{namespace}/{pod}/{container}":         k.exec,
		"/exec/{namespace}/{pod}/{uid}/{container}":   k.exec,
		"/attach/{namespace}/{pod}/{container}":       attach,
		"/attach/{namespace}/{pod}/{uid}/{container}": attach,
		"/portForward/{namespace}/{pod}":              k.forward,
		"/portForward/{namespace}/{pod}/{uid}":        k.forward,
	} {
		mux.HandleFunc(path, handle)
	}
	return mux
}

// refuse answers that a Pod has no process.
func refuse(w http.ResponseWriter, r *http.Request, verb string) {
	http.Error(w, fmt.Sprintf("%s; there is no process to %s", subject(r), verb), http.StatusNotImplemented)
}

func subject(r *http.Request) string {
	pod := r.PathValue("namespace") + "/" + r.PathValue("pod")
	if container := r.PathValue("container"); container != "" {
		return fmt.Sprintf("container %s of pod %s is simulated", container, pod)
	}
	return fmt.Sprintf("pod %s is simulated", pod)
}
