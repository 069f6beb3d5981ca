package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// reasonOfCode maps the S3 error codes a probe can meet. Only codes listed
// here are ever repeated in a message; any other text from the store is not.
// Source: the list of error codes in the Amazon S3 API reference, and the
// codes of versitygw, Ceph RGW and Garage where they differ.
var reasonOfCode = map[string]Reason{
	"InvalidAccessKeyId":         ReasonInvalidCredentials,
	"SignatureDoesNotMatch":      ReasonInvalidCredentials,
	"InvalidToken":               ReasonInvalidCredentials,
	"ExpiredToken":               ReasonInvalidCredentials,
	"TokenRefreshRequired":       ReasonInvalidCredentials,
	"InvalidSecurity":            ReasonInvalidCredentials,
	"NotSignedUp":                ReasonInvalidCredentials,
	"MissingAuthenticationToken": ReasonInvalidCredentials,

	"AccessDenied":      ReasonAccessDenied,
	"AllAccessDisabled": ReasonAccessDenied,
	"AccountProblem":    ReasonAccessDenied,
	"InvalidPayer":      ReasonAccessDenied,
	"UserSuspended":     ReasonAccessDenied,

	"NoSuchBucket": ReasonBucketNotFound,

	"PermanentRedirect":                  ReasonWrongRegion,
	"AuthorizationHeaderMalformed":       ReasonWrongRegion,
	"IllegalLocationConstraintException": ReasonWrongRegion,
	"IncorrectEndpoint":                  ReasonWrongRegion,

	"RequestTimeTooSkewed": ReasonClockSkew,

	"SlowDown":               ReasonThrottled,
	"ServiceUnavailable":     ReasonThrottled,
	"Throttling":             ReasonThrottled,
	"ThrottlingException":    ReasonThrottled,
	"TooManyRequests":        ReasonThrottled,
	"RequestLimitExceeded":   ReasonThrottled,
	"BandwidthLimitExceeded": ReasonThrottled,

	"RequestTimeout": ReasonTimeout,
	"InternalError":  ReasonServerError,

	"NotImplemented":   ReasonUnsupported,
	"MethodNotAllowed": ReasonUnsupported,

	"InvalidBucketName": ReasonUnexpectedResponse,
	"InvalidRequest":    ReasonUnexpectedResponse,
	"InvalidURI":        ReasonUnexpectedResponse,
}

// sentence is the fixed text of each reason.
var sentence = map[Reason]string{
	ReasonSucceeded:          "the store answered for the bucket",
	ReasonInvalidCredentials: "the store does not accept the credentials",
	ReasonAccessDenied:       "the store denied access to the bucket",
	ReasonBucketNotFound:     "the store has no such bucket",
	ReasonWrongRegion:        "the region or the endpoint is not the bucket's",
	ReasonThrottled:          "the store asked for fewer requests",
	ReasonClockSkew:          "the clocks of the store and of the controller differ too much",
	ReasonTimeout:            "the store did not answer in time",
	ReasonServerError:        "the store failed",
	ReasonUnsupported:        "the store does not support the request",
	ReasonUnexpectedResponse: "the answer is not one an S3 store gives",
}

// answer is what is kept of an HTTP response.
type answer struct {
	status int
	header http.Header
	// code is the S3 error code of the body; empty when there was none.
	code string
}

// classifyAnswer turns an answer other than success into a Result. A code that
// is known says more than the status: gateways answer unknown keys with 404.
func classifyAnswer(a answer, region string, now time.Time) Result {
	reason, known := reasonOfCode[a.code]
	if !known {
		reason = reasonOfStatus(a)
	}
	detail := a.code
	if !known {
		detail = fmt.Sprintf("HTTP status %d", a.status)
	}
	r := Result{Reason: reason, Message: sentence[reason] + " (" + detail + ")"}
	switch reason {
	case ReasonWrongRegion:
		if actual := bucketRegion(a.header); actual != "" && actual != region {
			r.Message = fmt.Sprintf("the bucket is in region %s (%s)", actual, detail)
		}
	case ReasonThrottled:
		r.RetryAfter = retryAfter(a.header.Get("Retry-After"), now)
	}
	return r
}

// reasonOfStatus is the best guess when the store gave no code.
func reasonOfStatus(a answer) Reason {
	switch {
	case a.status == http.StatusUnauthorized:
		return ReasonInvalidCredentials
	case a.status == http.StatusForbidden:
		return ReasonAccessDenied
	case a.status >= 300 && a.status < 400 && bucketRegion(a.header) != "":
		// Without the header it is some web server's redirect, for example
		// from http to https.
		return ReasonWrongRegion
	case a.status == http.StatusRequestTimeout:
		return ReasonTimeout
	case throttled(a.status):
		return ReasonThrottled
	case a.status == http.StatusNotImplemented, a.status == http.StatusMethodNotAllowed:
		return ReasonUnsupported
	case a.status >= 500:
		return ReasonServerError
	default:
		// 404 included: a proxy, a wrong path or a gateway that does not know
		// the key answers like that as well, so it says nothing of the bucket.
		return ReasonUnexpectedResponse
	}
}

// throttled tells the two statuses with which a store asks for patience.
func throttled(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

var regionPattern = regexp.MustCompile(`^[a-z]{2,10}(-[a-z0-9]{1,16}){1,4}$`)

// bucketRegion is the region a store says the bucket is in; empty when it does
// not say, or says something that is not a region.
func bucketRegion(h http.Header) string {
	if region := h.Get("X-Amz-Bucket-Region"); regionPattern.MatchString(region) {
		return region
	}
	return ""
}

// retryAfter parses the header of that name: seconds, or an HTTP date (RFC
// 9110, section 10.2.3). Anything else is zero.
func retryAfter(header string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		d = time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		d = date.Sub(now)
	}
	return min(max(d, 0), MaxRetryAfter)
}

// classifyFailure turns a request without an answer into a Result.
func classifyFailure(err error) Result {
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return Result{Reason: ReasonTimeout, Message: sentence[ReasonTimeout]}
	case isTLS(err):
		return Result{Reason: ReasonTLSError, Message: tlsSentence(err)}
	case errors.As(err, &dns):
		return Result{Reason: ReasonEndpointUnreachable, Message: "the endpoint's host name does not resolve"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return Result{Reason: ReasonEndpointUnreachable, Message: "the endpoint refused the connection"}
	default:
		return Result{Reason: ReasonEndpointUnreachable, Message: "the connection to the endpoint failed"}
	}
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        tls.AlertError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.Is(err, http.ErrSchemeMismatch)
}

func tlsSentence(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "the endpoint's certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "the endpoint's certificate is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the endpoint's certificate has expired or is not yet valid"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "the endpoint does not speak TLS"
	default:
		return "the TLS handshake with the endpoint failed"
	}
}
