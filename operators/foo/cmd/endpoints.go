package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/operators/foo/internal/operator"
)

// serve serves the endpoints for probes and metrics until the context ends.
func (o *options) serve(ctx context.Context, op *operator.Operator) error {
	if err := listen(ctx, o.probeAddr, probes(op.Ready), nil); err != nil {
		return fmt.Errorf("serving the probes: %w", err)
	}
	handler, config := legacyregistry.Handler(), (*tls.Config)(nil)
	if o.metricsAddr != "0" && o.metricsSecure {
		var err error
		if handler, err = authorized(op.Kubernetes, handler); err != nil {
			return fmt.Errorf("serving metrics: %w", err)
		}
		if config, err = o.certificate(); err != nil {
			return fmt.Errorf("serving metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	if err := listen(ctx, o.metricsAddr, mux, config); err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}

// probes serves /healthz and /readyz.
func probes(ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "the caches are not filled yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// listen serves HTTP, or HTTPS if there is a configuration for it, until the context ends. It
// returns as soon as it accepts connections. The address 0 means that nothing is served.
func listen(ctx context.Context, address string, handler http.Handler, config *tls.Config) error {
	if address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.ErrorS(err, "Failed to serve", "address", address)
		}
	}()
	return nil
}

// certificate returns a configuration with the certificate of the metrics endpoint. A
// certificate in a file is read again for each connection, because it may be renewed.
func (o *options) certificate() (*tls.Config, error) {
	if o.metricsCertPath == "" {
		certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(certificate, key)
		return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, err
	}
	read := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(o.metricsCertPath, o.metricsCertName), filepath.Join(o.metricsCertPath, o.metricsCertKey))
		return &pair, err
	}
	_, err := read(nil)
	return &tls.Config{GetCertificate: read, MinVersion: tls.VersionTLS12}, err
}

// authorized serves only clients that the API server authenticates and authorizes.
func authorized(client kubernetes.Interface, handler http.Handler) (http.Handler, error) {
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	authentication, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
		TokenAccessReviewClient:  client.AuthenticationV1(),
		TokenAccessReviewTimeout: 10 * time.Second,
		CacheTTL:                 time.Minute,
		WebhookRetryBackoff:      backoff,
	}.New()
	if err != nil {
		return nil, err
	}
	authorization, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             5 * time.Minute,
		DenyCacheTTL:              30 * time.Second,
		WebhookRetryBackoff:       backoff,
	}.New()
	if err != nil {
		return nil, err
	}
	return &guard{authentication, authorization, handler}, nil
}

// A guard lets requests pass only if the client is known and has the permission.
type guard struct {
	authentication authenticator.Request
	authorization  authorizer.Authorizer
	handler        http.Handler
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known, ok, err := g.authentication.AuthenticateRequest(r)
	if err != nil {
		klog.ErrorS(err, "Failed to authenticate a client of the metrics endpoint")
	}
	if err != nil || !ok {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	decision, _, err := g.authorization.Authorize(r.Context(), authorizer.AttributesRecord{
		User: known.User, Verb: strings.ToLower(r.Method), Path: r.URL.Path,
	})
	if err != nil {
		klog.ErrorS(err, "Failed to authorize a client of the metrics endpoint")
	}
	if decision != authorizer.DecisionAllow {
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	}
	g.handler.ServeHTTP(w, r)
}
