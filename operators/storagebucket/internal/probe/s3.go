package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// maxBody bounds what is read of an answer. An S3 error document, or a list of
// one key, is far below it.
const maxBody = 64 << 10

// S3 probes stores that speak the S3 API. It keeps nothing between probes and
// is safe for concurrent use.
type S3 struct {
	http *http.Client
	now  func() time.Time
}

// NewS3 returns a prober. Its own timeouts are upper bounds; the deadline of a
// probe is the context's.
func NewS3() *S3 {
	return &S3{now: time.Now, http: &http.Client{
		// A redirect is an answer to be judged, not followed: a signature is
		// good for one host, and must not be shown to another.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			// The next client of the store has to connect as well, so that is
			// part of what is measured; and probes are too rare to keep idle
			// connections for.
			DisableKeepAlives:      true,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  10 * time.Second,
			MaxResponseHeaderBytes: maxBody,
		},
	}}
}

// Probe asks for the bucket with HEAD. Since a HEAD has no body, and so no
// error code, any other answer than success is followed by one request that
// has both a body and the same permission (s3:ListBucket), unless the store
// asked for fewer requests.
func (p *S3) Probe(ctx context.Context, t Target) Result {
	tap := &tap{client: p.http}
	client := newClient(tap, t)

	start := time.Now()
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &t.Bucket})
	if tap.last == nil {
		return classifyFailure(err)
	}
	latency := tap.lastAt.Sub(start)

	if err != nil && !throttled(tap.last.StatusCode) {
		tap.last = nil
		_, err = client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &t.Bucket, MaxKeys: aws.Int32(1)})
	}
	r := p.result(tap.last, err, t.Region)
	if tap.last != nil {
		r.Latency = latency
	}
	return r
}

// result judges the last request of a probe.
func (p *S3) result(last *http.Response, err error, region string) Result {
	if err == nil {
		return Result{Reason: ReasonSucceeded, Message: sentence[ReasonSucceeded]}
	}
	if last == nil {
		return classifyFailure(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// The headers came, the body did not.
		return classifyFailure(err)
	}
	a := answer{status: last.StatusCode, header: last.Header}
	var api smithy.APIError
	if last.Request.Method != http.MethodHead && errors.As(err, &api) {
		// For a HEAD the SDK makes a code up from the status.
		a.code = api.ErrorCode()
	}
	return classifyAnswer(a, region, p.now())
}

// newClient is a client for one probe: static credentials, one attempt, and
// nothing taken from the environment or from files. Checksums only where the
// API demands them, because the SDK's default breaks some other stores
// (aws-sdk-go-v2#3007).
func newClient(h s3.HTTPClient, t Target) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(t.Endpoint.String()),
		Region:       t.Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID:     t.Credentials.AccessKeyID,
				SecretAccessKey: t.Credentials.SecretAccessKey,
			}, nil
		}),
		UsePathStyle:                true,
		HTTPClient:                  h,
		Retryer:                     aws.NopRetryer{},
		RequestChecksumCalculation:  aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:  aws.ResponseChecksumValidationWhenRequired,
		DisableS3ExpressSessionAuth: aws.Bool(true),
	})
}

// tap keeps the last response, which the SDK hides behind its error types, and
// when its headers were complete.
type tap struct {
	client *http.Client
	last   *http.Response
	lastAt time.Time
}

// Do sends one request.
func (t *tap) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	t.last, t.lastAt = resp, time.Now()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxBody), resp.Body}
	return resp, nil
}
