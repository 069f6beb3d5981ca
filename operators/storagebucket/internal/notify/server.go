// Package notify is the HTTP endpoint through which the operator receives
// events from outside the cluster.
//
//	POST /v1/stores/{namespace}/{name}/events    what an object store sends
//	POST /v1/buckets/{namespace}/{name}/poke     a plain request to probe now
//
//	method, path ─▶ authenticate ─▶ authorize ─▶ body ─▶ bucket names ─▶ Poke, each once
//
// An event is only a hint: the operator reads only the names of buckets from it, and
// then acts on the state that it finds in the store. Keys of objects may be
// confidential; they are neither kept nor logged.
package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// These are the limits of one request. A sender repeats a request that fails because of a
// limit.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	workTimeout   = 15 * time.Second
	writeTimeout  = readTimeout + workTimeout + 5*time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
	maxHeader     = 32 << 10
	maxBody       = 1 << 20
)

// Server is the endpoint. It is a Runnable for a controller-runtime manager. The server runs in
// every replica, so that an event can be sent to any of them.
type Server struct {
	// Address is the host:port to listen on. Without CertDir, only a loopback address is
	// accepted.
	Address string
	// CertDir holds tls.crt and tls.key, which are reloaded when they change.
	// If it is empty, the endpoint uses plain HTTP.
	CertDir string
	// TokenFile holds a token that allows everything. The file is read again for every
	// request. If TokenFile is empty, no token allows everything.
	TokenFile string
	// Config and HTTPClient connect to the API server, which determines who owns a
	// Kubernetes token and what the owner may do. Without a Config, only the token
	// in TokenFile is accepted; without an HTTPClient, one is created.
	Config     *rest.Config
	HTTPClient *http.Client
	// Poke requests an immediate probe of a bucket. After a "not found" error, the
	// response is 404; after any other error, the response asks the sender to try
	// again.
	Poke func(ctx context.Context, bucket types.NamespacedName) error
	// Buckets returns the objects that declare the given bucket in the given store; the
	// list may be empty. If the store does not exist, Buckets returns a "not found"
	// error.
	Buckets func(ctx context.Context, store types.NamespacedName, bucket string) ([]types.NamespacedName, error)
	// Listener is used instead of Address, if it is set.
	Listener net.Listener
}

var (
	_ manager.Runnable               = (*Server)(nil)
	_ manager.LeaderElectionRunnable = (*Server)(nil)
)

// NeedLeaderElection returns false, so that the endpoint runs in every replica.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	logger := logf.FromContext(ctx).WithName("notify")
	gate, err := newGate(s.TokenFile, s.Config, s.HTTPClient)
	if err != nil {
		return fmt.Errorf("setting up the notification endpoint: %w", err)
	}
	certificate, err := s.certificate(ctx, logger)
	if err != nil {
		return err
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	if certificate != nil {
		// HTTP/2 is turned off because of GHSA-qppj-fm5r-hxr3 and GHSA-4374-p667-p6c8.
		listener = tls.NewListener(listener, &tls.Config{
			GetCertificate: certificate.GetCertificate,
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"http/1.1"},
		})
	}
	server := &http.Server{
		Handler:           (&endpoint{gate: gate, poke: s.Poke, buckets: s.Buckets, logger: logger}).routes(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// At this level, failed TLS handshakes of unknown clients do not appear in the default log.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(logger.V(1)), slog.LevelInfo),
	}
	logger.Info("serving notifications", "address", listener.Addr().String(), "tls", certificate != nil)
	return serve(ctx, server, listener)
}

// serve runs the server until the context ends, and then waits a moment for the requests in
// progress.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving notifications: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving notifications: %w", err)
	}
	return nil
}

// listen opens the address. Plain HTTP sends tokens unencrypted, so it is
// allowed only on a loopback address.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener := s.Listener
	if listener == nil {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.Address); err != nil {
			return nil, fmt.Errorf("listening for notifications: %w", err)
		}
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if s.CertDir == "" && (!ok || !address.IP.IsLoopback()) {
		_ = listener.Close()
		return nil, fmt.Errorf("notifications at %s would not be encrypted: "+
			"set --notify-cert-dir, or set --notify-bind-address to a loopback address such as 127.0.0.1:8090", s.Address)
	}
	return listener, nil
}

// certificate loads the certificate and keeps it up to date. If TLS is not configured, certificate
// returns nil.
func (s *Server) certificate(ctx context.Context, logger logr.Logger) (*certwatcher.CertWatcher, error) {
	if s.CertDir == "" {
		return nil, nil
	}
	watcher, err := certwatcher.New(filepath.Join(s.CertDir, "tls.crt"), filepath.Join(s.CertDir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for notifications: %w: "+
			"--notify-cert-dir must contain tls.crt and tls.key", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			logger.Error(err, "the certificate for notifications is no longer reloaded: restart the manager after changing it")
		}
	}()
	return watcher, nil
}
