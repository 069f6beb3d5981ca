// Package s3store sends requests to one S3-compatible store: to check the store and its buckets,
// and to manage a bucket. The package needs nothing from Kubernetes except the types that declare
// the configuration of a bucket.
//
// The message of a Result or an Error is fixed text. A message repeats at most these parts
// of the store's response: an HTTP status, an error code from a closed table, a valid
// region. Messages may therefore be logged, or put into a status or an event, without
// exposing a secret, a request ID or a URL. Equal outcomes have equal messages.
//
// Every request is one attempt: the caller decides when to retry. Requests use a few
// connections that are kept open for this store, and go only to addresses that the
// egress guard allows.
package s3store

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
)

// Config holds the address of a store and the settings for connecting to it.
type Config struct {
	// Endpoint is the endpoint of the S3 API, from ParseEndpoint. Required.
	Endpoint *url.URL
	// Region is the region that requests are signed for. Required.
	Region string
	// PathStyle addresses buckets in the path, not in the host name.
	PathStyle bool
	// RootCAs are the certificates that must have signed the endpoint's certificate;
	// nil means the system's certificates.
	RootCAs *x509.CertPool
	// Credentials sign the requests. nil means that every request fails with
	// ReasonCredentialsNotFound.
	Credentials aws.CredentialsProvider
	// Guard allows or refuses addresses; nil refuses only special addresses.
	Guard *egress.Guard
	// Limiter limits the requests to the store, and the number of connections that are
	// kept open. Several Stores may share one Limiter. nil means DefaultLimiter.
	Limiter *Limiter
	// ExpectedBucketOwner is the account that all buckets must belong to. The account is sent with
	// each request for a bucket, unless ExpectedBucketOwner is empty.
	ExpectedBucketOwner string
	// Requested is called after each request with the name of the S3 operation and the
	// status of the response, which is 0 if there was no response. It may be nil.
	Requested func(operation string, status int)
}

// Store is the connection to one store. It is safe for concurrent use.
type Store struct {
	region  string
	client  *s3.Client
	prober  *prober
	line    *line
	limiter *Limiter
}

// New returns a Store. Nothing is sent before the first call of a method. New reads no files.
// New reads only the proxy settings from the environment, in the same way as net/http.
func New(c Config) *Store { return newStore(c, http.ProxyFromEnvironment) }

func newStore(c Config, proxy proxyFunc) *Store {
	limiter := c.Limiter
	if limiter == nil {
		limiter = DefaultLimiter()
	}
	l := newLine(c.Guard, c.RootCAs, limiter.Concurrency(), proxy)
	l.requested = c.Requested
	return &Store{region: c.Region, line: l, limiter: limiter, prober: newProber(c, l), client: newClient(c, l)}
}

// newClient returns a client of the SDK. newClient sets everything that the SDK would otherwise
// take from the environment: credentials, region, retries. Checksums are sent only if the API
// requires them, because the SDK's default does not work with some stores other than AWS
// (aws-sdk-go-v2#3007).
func newClient(c Config, h s3.HTTPClient) *s3.Client {
	options := s3.Options{
		BaseEndpoint:                aws.String(c.Endpoint.String()),
		Region:                      c.Region,
		Credentials:                 guarded(c.Credentials),
		UsePathStyle:                c.PathStyle,
		HTTPClient:                  h,
		Retryer:                     aws.NopRetryer{},
		RequestChecksumCalculation:  aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:  aws.ResponseChecksumValidationWhenRequired,
		DisableS3ExpressSessionAuth: aws.Bool(true),
		// A wrong clock must be reported, so that it is corrected; by default, the SDK
		// would hide it.
		DisableClockSkewCorrection: true,
	}
	if c.ExpectedBucketOwner != "" {
		options.APIOptions = append(options.APIOptions, expectOwner(c.ExpectedBucketOwner))
	}
	return s3.New(options)
}

// Limiter returns the store's limiter.
func (s *Store) Limiter() *Limiter { return s.limiter }

// Close closes idle connections. Requests in progress continue.
func (s *Store) Close() { s.line.close() }

// call makes one request within the store's limits and returns nil or an *Error.
// request must make exactly one request, with the context that it is given.
func (s *Store) call(ctx context.Context, request func(context.Context, *s3.Client) error) error {
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return s.noRoom(ctx)
	}
	defer release()
	_, failure := s.send(ctx, exchange{}, request)
	if failure != nil {
		return failure
	}
	return nil
}

// noRoom returns the error for a request that was not sent because of the limits.
func (s *Store) noRoom(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return classifyFailure(context.Canceled)
	}
	return &Error{
		Reason:     ReasonThrottled,
		Message:    "the request was not sent in time, because of the limits on requests to the store",
		RetryAfter: max(0, time.Until(s.limiter.PausedUntil())),
	}
}

// send makes one request and classifies the result. If the store asks for fewer
// requests, send pauses all users of the limiter.
func (s *Store) send(ctx context.Context, x exchange, request func(context.Context, *s3.Client) error) (*exchange, *Error) {
	failure := s.verdict(&x, request(x.in(ctx), s.client))
	if failure != nil && failure.Reason == ReasonEndpointUnreachable && ctx.Err() != nil {
		// The connection breaks when the context ends, and sometimes the broken connection
		// is noticed before the end of the context.
		failure = classifyFailure(ctx.Err())
	}
	if failure != nil && failure.RetryAfter > 0 {
		s.limiter.Pause(time.Now().Add(failure.RetryAfter))
	}
	return &x, failure
}
