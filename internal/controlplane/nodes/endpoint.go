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

// A Kubelet serves the requests that the API server sends to a node: logs,
// exec, attach and port-forward of its Pods. One endpoint serves all simulated
// nodes. It accepts only clients with a certificate of the plane's CA, like a
// kubelet with --client-ca-file and --anonymous-auth=false.
type Kubelet struct {
	listener net.Listener
	server   *http.Server
}

// NewKubelet listens on a free port of the loopback address.
func NewKubelet(clientCA *x509.Certificate, serving tls.Certificate, log *slog.Logger) (*Kubelet, error) {
	listener, err := freeport.Listen(0)
	if err != nil {
		return nil, fmt.Errorf("listening for the nodes: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(clientCA)
	return &Kubelet{
		listener: listener,
		server: &http.Server{
			Handler:           simulated(),
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
		},
	}, nil
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
func simulated() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintf(w, "%s; it runs no process and has no output\n", subject(r))
	})
	for path, verb := range map[string]string{
		"/exec/{namespace}/{pod}/{container}":         "execute a command in",
		"/exec/{namespace}/{pod}/{uid}/{container}":   "execute a command in",
		"/attach/{namespace}/{pod}/{container}":       "attach to",
		"/attach/{namespace}/{pod}/{uid}/{container}": "attach to",
		"/portForward/{namespace}/{pod}":              "forward a port to",
		"/portForward/{namespace}/{pod}/{uid}":        "forward a port to",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, fmt.Sprintf("%s; there is no process to %s", subject(r), verb), http.StatusNotImplemented)
		})
	}
	return mux
}

func subject(r *http.Request) string {
	pod := r.PathValue("namespace") + "/" + r.PathValue("pod")
	if container := r.PathValue("container"); container != "" {
		return fmt.Sprintf("container %s of pod %s is simulated", container, pod)
	}
	return fmt.Sprintf("pod %s is simulated", pod)
}
