// Package probe asks an S3-compatible store for one bucket and says in a few
// words what came back. It knows nothing of Kubernetes.
//
// Nothing a store sends is repeated in a Result: messages are fixed text, plus
// an HTTP status or an error code from a closed table. So a Result may be
// logged, put into a status or an event without a secret, a request ID or a
// URL slipping through, and two probes with the same outcome read the same.
package probe

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Target is what one probe asks for.
type Target struct {
	// Endpoint of the S3 API, from ParseEndpoint.
	Endpoint *url.URL
	// Region the request is signed for.
	Region string
	// Bucket is addressed in the path, below Endpoint.
	Bucket string
	// Credentials that sign the request.
	Credentials Credentials
}

// Credentials are a static S3 key pair. They print as "[redacted]" whatever
// the verb or the encoder.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
}

const redacted = "[redacted]"

// Format keeps the key pair out of every fmt verb, %#v and %+v included.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText keeps the key pair out of JSON and structured logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Reason is the outcome of a probe in one CamelCase word. It is used as the
// reason of a condition.
type Reason string

// Outcomes of a probe.
const (
	// ReasonSucceeded means that the store answered for the bucket with success.
	ReasonSucceeded Reason = "ProbeSucceeded"
	// ReasonInvalidCredentials means that the store does not accept the key pair.
	ReasonInvalidCredentials Reason = "InvalidCredentials"
	// ReasonAccessDenied means that the key pair may not read the bucket, or the store
	// refused without saying why.
	ReasonAccessDenied Reason = "AccessDenied"
	// ReasonBucketNotFound means that the store says, with an error code, that there is
	// no such bucket. A bare 404 is ReasonUnexpectedResponse.
	ReasonBucketNotFound Reason = "BucketNotFound"
	// ReasonWrongRegion means that the bucket lives in, or the store signs for, another
	// region.
	ReasonWrongRegion Reason = "WrongRegion"
	// ReasonEndpointUnreachable means that there was no connection to the endpoint,
	// or that it broke.
	ReasonEndpointUnreachable Reason = "EndpointUnreachable"
	// ReasonTLSError means that the endpoint's certificate or handshake is not good.
	ReasonTLSError Reason = "TLSError"
	// ReasonTimeout means that the store did not answer in time.
	ReasonTimeout Reason = "Timeout"
	// ReasonThrottled means that the store asked for fewer requests (429, 503).
	ReasonThrottled Reason = "Throttled"
	// ReasonClockSkew means that the clocks of the store and of this process differ by
	// more than signatures allow.
	ReasonClockSkew Reason = "ClockSkew"
	// ReasonServerError means that the store failed (5xx).
	ReasonServerError Reason = "ServerError"
	// ReasonUnsupported means that the store does not implement the request.
	ReasonUnsupported Reason = "Unsupported"
	// ReasonUnexpectedResponse means that the answer is not one an S3 store gives.
	ReasonUnexpectedResponse Reason = "UnexpectedResponse"
)

// Result is what one probe found.
type Result struct {
	// Reason is the outcome.
	Reason Reason
	// Message is the outcome as a sentence of fixed text, without secrets.
	Message string
	// Latency is the time from opening the connection to the end of the first
	// answer's headers; zero when the store did not answer.
	Latency time.Duration
	// RetryAfter is how long the store asked to be left alone, at most
	// MaxRetryAfter; zero when it did not ask.
	RetryAfter time.Duration
}

// Succeeded tells whether the bucket is healthy.
func (r Result) Succeeded() bool { return r.Reason == ReasonSucceeded }

// MaxRetryAfter bounds how long a store can silence its own probes.
const MaxRetryAfter = 10 * time.Minute

// ParseEndpoint parses the URL of an S3 API: http or https, a host, at most a
// port and a path. Its errors never repeat the input, which may hold a
// password in a place where it does not belong.
func ParseEndpoint(s string) (*url.URL, error) {
	if strings.ContainsAny(s, "@?#") {
		return nil, errors.New("endpoint must not contain a user, a query or a fragment")
	}
	u, err := url.Parse(s)
	if err != nil {
		// The cause would quote the input.
		return nil, errors.New("endpoint is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("endpoint must be an http or https URL")
	}
	if u.Hostname() == "" {
		return nil, errors.New("endpoint must name a host")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("endpoint has a port outside 1 to 65535")
		}
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}
