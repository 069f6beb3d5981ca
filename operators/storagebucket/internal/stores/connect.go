package stores

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/refs"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// Options are the operator's own settings for connections.
type Options struct {
	// Guard allows or refuses addresses.
	Guard *egress.Guard
	// EnvironmentNamespaces are the namespaces whose stores may use the
	// operator's own identity; * means all.
	EnvironmentNamespaces []string
	// RequestsPerSecond and Concurrency limit the requests to one store.
	RequestsPerSecond float64
	Concurrency       int
	// Requested and Waited count requests and delays of all stores; see
	// s3store.Config.Requested and s3store.Limiter.Waited.
	Requested func(operation string, status int)
	Waited    func(time.Duration)
}

// Connect creates a connection. Connect reads the Secret and the certificates, and sends nothing to
// the store. An *s3store.Error is a problem that a person must fix; any other error comes from the
// API server.
func Connect(ctx context.Context, reader client.Reader, l Location, o Options) (*s3store.Store, error) {
	endpoint, err := s3store.ParseEndpoint(l.Endpoint)
	if err != nil {
		return nil, &s3store.Error{Reason: s3store.ReasonInvalidEndpoint, Message: err.Error()}
	}
	if err := o.Guard.CheckURL(endpoint); err != nil {
		return nil, &s3store.Error{Reason: s3store.ReasonEndpointForbidden, Message: err.Error()}
	}
	keys, err := readCredentials(ctx, reader, l, o)
	if err != nil {
		return nil, err
	}
	authorities, err := readCABundle(ctx, reader, l)
	if err != nil {
		return nil, err
	}
	limiter := s3store.NewLimiter(limitsOf(l, o))
	limiter.Waited = o.Waited
	return s3store.New(s3store.Config{
		Endpoint:    endpoint,
		Region:      l.Region,
		PathStyle:   l.PathStyle,
		RootCAs:     authorities,
		Credentials: keys,
		Guard:       o.Guard,
		Limiter:     limiter,
		Requested:   o.Requested,

		ExpectedBucketOwner: l.ExpectedBucketOwner,
	}), nil
}

func limitsOf(l Location, o Options) (requestsPerSecond float64, concurrency int) {
	requestsPerSecond, concurrency = o.RequestsPerSecond, o.Concurrency
	if n := l.Limits.RequestsPerSecond; n > 0 {
		requestsPerSecond = min(requestsPerSecond, float64(n))
	}
	if n := l.Limits.Concurrency; n > 0 {
		concurrency = min(concurrency, int(n))
	}
	return requestsPerSecond, concurrency
}

func readCredentials(ctx context.Context, reader client.Reader, l Location, o Options) (aws.CredentialsProvider, error) {
	if l.Credentials.Source == storagev1.CredentialsFromEnvironment {
		if !slices.Contains(o.EnvironmentNamespaces, l.Namespace) && !slices.Contains(o.EnvironmentNamespaces, "*") {
			return nil, &s3store.Error{
				Reason: s3store.ReasonCredentialsNotFound,
				Message: fmt.Sprintf("namespace %q may not use the operator's own identity: "+
					"add it to --environment-credentials-namespaces, or use a Secret", l.Namespace),
			}
		}
		return environment.credentials(ctx)
	}
	ref := l.Credentials.SecretRef
	if ref == nil {
		return nil, &s3store.Error{Reason: s3store.ReasonCredentialsNotFound, Message: "credentials.secretRef is not set"}
	}
	var secret corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: ref.Name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, &s3store.Error{
			Reason:  s3store.ReasonCredentialsNotFound,
			Message: fmt.Sprintf("there is no Secret %q in namespace %q", ref.Name, l.Namespace),
		}
	}
	if apierrors.IsForbidden(err) {
		return nil, forbidden(useCredentials, l.credentialsRef())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the credentials Secret %q: %w", ref.Name, err)
	}
	return credentialsOf(&secret)
}

// identity loads the credentials that the process runs with. The credentials are loaded
// only once, because the provider refreshes temporary keys by itself. After a failure,
// loading is tried again, so that the process need not be restarted if a file is mounted
// late.
type identity struct {
	mu       sync.Mutex
	provider aws.CredentialsProvider
}

var environment identity

// errNoIdentity does not wrap the cause, which may name files and variables.
var errNoIdentity = &s3store.Error{
	Reason:  s3store.ReasonCredentialsNotFound,
	Message: "the operator's environment provides no usable identity",
}

// credentials returns the provider of the credentials, or errNoIdentity if none can be
// loaded.
func (i *identity) credentials(ctx context.Context) (aws.CredentialsProvider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.provider == nil {
		cfg, err := config.LoadDefaultConfig(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, errNoIdentity
		}
		i.provider = cfg.Credentials
	}
	return i.provider, nil
}

// credentialsOf reads the keys from a Secret. The errors of credentialsOf do not show the keys.
func credentialsOf(secret *corev1.Secret) (aws.CredentialsProvider, error) {
	for _, key := range []string{storagev1.AccessKeyIDKey, storagev1.SecretAccessKeyKey, storagev1.SessionTokenKey} {
		value := string(secret.Data[key])
		switch {
		case value == "" && key != storagev1.SessionTokenKey:
			return nil, &s3store.Error{
				Reason:  s3store.ReasonCredentialsNotFound,
				Message: fmt.Sprintf("Secret %q has no key %s", secret.Name, key),
			}
		case strings.ContainsFunc(value, unprintable):
			// The unprintable character is usually the line end that echo adds without -n.
			// The store would report a wrong signature, which does not name the cause.
			return nil, &s3store.Error{
				Reason:  s3store.ReasonInvalidCredentials,
				Message: fmt.Sprintf("Secret %q has white space or control characters in %s", secret.Name, key),
			}
		}
	}
	return s3store.Credentials{
		AccessKeyID:     string(secret.Data[storagev1.AccessKeyIDKey]),
		SecretAccessKey: string(secret.Data[storagev1.SecretAccessKeyKey]),
		SessionToken:    string(secret.Data[storagev1.SessionTokenKey]),
	}, nil
}

func unprintable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// readCABundle reads the certificates to trust; nil means the system's certificates.
func readCABundle(ctx context.Context, reader client.Reader, l Location) (*x509.CertPool, error) {
	ref := l.CABundle
	if ref == nil {
		return nil, nil
	}
	invalid := func(format string, args ...any) error {
		return &s3store.Error{Reason: s3store.ReasonInvalidCABundle, Message: fmt.Sprintf(format, args...)}
	}
	pem, err := readKey(ctx, reader, l.Namespace, ref)
	if apierrors.IsNotFound(err) {
		return nil, invalid("there is no %s %q in namespace %q", kindOf(ref), ref.Name, l.Namespace)
	}
	if apierrors.IsForbidden(err) {
		return nil, forbidden(useCABundle, l.caBundleRef())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the certificates in %s %q: %w", kindOf(ref), ref.Name, err)
	}
	if len(pem) == 0 {
		return nil, invalid("%s %q has no key %s", kindOf(ref), ref.Name, ref.Key)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, invalid("key %s of %s %q contains no certificate in PEM", ref.Key, kindOf(ref), ref.Name)
	}
	return pool, nil
}

// forbidden returns an error for an object that a location refers to and the operator
// has no right to read.
func forbidden(use string, ref refs.Ref) *s3store.Error {
	reason := s3store.ReasonCABundleForbidden
	if use == useCredentials {
		reason = s3store.ReasonCredentialsForbidden
	}
	return &s3store.Error{Reason: reason, Message: fmt.Sprintf("the operator may not read %s %q in namespace %q: "+
		"give its ServiceAccount the verbs get, list and watch on it", ref.Kind, ref.Name, ref.Namespace)}
}

func readKey(ctx context.Context, reader client.Reader, namespace string, ref *storagev1.CABundleReference) ([]byte, error) {
	key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	if kindOf(ref) == "Secret" {
		var secret corev1.Secret
		err := reader.Get(ctx, key, &secret)
		return secret.Data[ref.Key], err
	}
	var config corev1.ConfigMap
	err := reader.Get(ctx, key, &config)
	return []byte(config.Data[ref.Key]), err
}
