package s3store

import (
	"bytes"
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

	"github.com/aws/smithy-go"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
)

// MaxRetryAfter limits how long a store can make its callers wait.
const MaxRetryAfter = 10 * time.Minute

// reasonOfCode maps the S3 error codes that have the same meaning for all requests.
// Messages repeat only the codes that are listed here, and no other text from the store.
// The codes come from the Amazon S3 API reference, and from versitygw, Ceph RGW, MinIO and
// Garage where their codes differ from it.
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
	"TooManyBuckets":    ReasonAccessDenied,

	"NoSuchBucket":            ReasonBucketNotFound,
	"BucketAlreadyOwnedByYou": ReasonBucketExists,
	"BucketAlreadyExists":     ReasonOwnershipConflict,
	"BucketNotEmpty":          ReasonNotEmpty,

	"PermanentRedirect":                  ReasonWrongRegion,
	"TemporaryRedirect":                  ReasonWrongRegion,
	"AuthorizationHeaderMalformed":       ReasonWrongRegion,
	"IllegalLocationConstraintException": ReasonWrongRegion,
	"InvalidLocationConstraint":          ReasonWrongRegion,
	"IncorrectEndpoint":                  ReasonWrongRegion,

	"RequestTimeTooSkewed": ReasonClockSkew,

	"SlowDown":               ReasonThrottled,
	"SlowDownRead":           ReasonThrottled,
	"SlowDownWrite":          ReasonThrottled,
	"ServiceUnavailable":     ReasonThrottled,
	"Throttling":             ReasonThrottled,
	"ThrottlingException":    ReasonThrottled,
	"TooManyRequests":        ReasonThrottled,
	"RequestLimitExceeded":   ReasonThrottled,
	"BandwidthLimitExceeded": ReasonThrottled,

	"RequestTimeout":   ReasonTimeout,
	"InternalError":    ReasonServerError,
	"OperationAborted": ReasonServerError,

	"NotImplemented":   ReasonUnsupported,
	"XNotImplemented":  ReasonUnsupported,
	"MethodNotAllowed": ReasonUnsupported,

	"InvalidArgument":     ReasonInvalidConfiguration,
	"InvalidBucketName":   ReasonInvalidConfiguration,
	"InvalidBucketState":  ReasonInvalidConfiguration,
	"InvalidRequest":      ReasonInvalidConfiguration,
	"InvalidTag":          ReasonInvalidConfiguration,
	"MalformedPolicy":     ReasonInvalidConfiguration,
	"MalformedXML":        ReasonInvalidConfiguration,
	"InvalidURI":          ReasonUnexpectedResponse,
	"InvalidStorageClass": ReasonInvalidConfiguration,
}

// sentence holds the fixed text for each reason that a response can have.
var sentence = map[Reason]string{
	ReasonSucceeded:            "the store answered the request for the bucket",
	ReasonInvalidCredentials:   "the store does not accept the credentials",
	ReasonAccessDenied:         "the store denied access to the bucket",
	ReasonBucketNotFound:       "the store has no such bucket",
	ReasonBucketExists:         "the account already has a bucket of that name",
	ReasonOwnershipConflict:    "the store reports that the bucket has another owner",
	ReasonNotEmpty:             "the bucket is not empty",
	ReasonWrongRegion:          "the region or the endpoint does not match the bucket",
	ReasonThrottled:            "the store asked for fewer requests",
	ReasonClockSkew:            "the clocks of the store and of the controller differ too much",
	ReasonTimeout:              "the store did not answer in time",
	ReasonServerError:          "the store failed",
	ReasonUnsupported:          "the store does not support the request",
	ReasonInvalidConfiguration: "the store rejected the request as invalid",
	ReasonUnexpectedResponse:   "the response is not one that an S3 store sends",
}

// verdict returns the failure of one exchange, or nil after success. The failure is derived
// from the response or, without a response, from cause, which is the client's error.
func (s *Store) verdict(x *exchange, cause error) *Error {
	var already *Error
	switch {
	case cause == nil:
		return nil
	case errors.As(cause, &already):
		return already
	case x.answer == nil:
		return classifyFailure(cause)
	case x.bodyErr != nil:
		// The headers arrived, but the body is incomplete.
		failure := classifyFailure(x.bodyErr)
		if failure.Reason == ReasonEndpointUnreachable {
			failure.Message = fmt.Sprintf("the connection to the endpoint broke in the middle of a response (HTTP status %d)", x.status)
		}
		return failure
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return classifyFailure(cause)
	}
	a := answer{status: x.status, header: x.answer.Header}
	var api smithy.APIError
	// If the body has no code, the SDK derives one from the status.
	if bytes.Contains(x.start, []byte("<Code>")) && errors.As(cause, &api) {
		a.code = api.ErrorCode()
	}
	return classifyAnswer(a, s.region, time.Now())
}

// answer is the part of an HTTP response that is kept.
type answer struct {
	status int
	header http.Header
	// code is the S3 error code in the body; empty if there was none.
	code string
}

// classifyAnswer classifies any response other than success. A known code takes
// precedence over the status, because it is more specific: some gateways answer unknown
// keys with 404.
func classifyAnswer(a answer, region string, now time.Time) *Error {
	reason, known := reasonOfCode[a.code]
	detail := a.code
	if !known {
		reason = reasonOfStatus(a, region)
		detail = "HTTP status " + strconv.Itoa(a.status)
	}
	e := &Error{Reason: reason, Message: sentence[reason] + " (" + detail + ")", code: a.code}
	switch {
	case reason == ReasonWrongRegion:
		if actual := bucketRegion(a.header); actual != "" && actual != region {
			e.Message = fmt.Sprintf("the bucket is in region %s (%s)", actual, detail)
		}
	case reason == ReasonThrottled:
		e.RetryAfter = retryAfter(a.header.Get("Retry-After"), now)
	case reason == ReasonUnexpectedResponse && redirect(a.status):
		e.Message = "the endpoint redirects to another one, but the operator does not follow redirects: use an endpoint that does not redirect (" + detail + ")"
	}
	return e
}

// reasonOfStatus returns the most likely reason if the store sent no code.
func reasonOfStatus(a answer, region string) Reason {
	switch {
	case a.status == http.StatusUnauthorized:
		return ReasonInvalidCredentials
	case a.status == http.StatusForbidden:
		return ReasonAccessDenied
	case redirect(a.status) && bucketRegion(a.header) != "":
		// A redirect without a region in its headers comes from some web server, for
		// example one that redirects http to https.
		return ReasonWrongRegion
	case a.status == http.StatusBadRequest && bucketRegion(a.header) != "" && bucketRegion(a.header) != region:
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
		// A bare 404 proves nothing about the bucket: a proxy, a wrong path or a gateway
		// that does not know the key also causes a 404.
		return ReasonUnexpectedResponse
	}
}

func redirect(status int) bool { return status >= 300 && status < 400 }

// throttled reports whether the status asks for fewer requests.
func throttled(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

var regionPattern = regexp.MustCompile(`^[a-z]{2,10}(-[a-z0-9]{1,16}){1,4}$`)

// bucketRegion returns the bucket's region according to the store, or "" if the store
// sent no valid region.
func bucketRegion(h http.Header) string {
	if region := h.Get("X-Amz-Bucket-Region"); regionPattern.MatchString(region) {
		return region
	}
	return ""
}

// retryAfter parses the header Retry-After: seconds, or an HTTP date (RFC
// 9110, section 10.2.3). It returns zero for anything else.
func retryAfter(header string, now time.Time) time.Duration {
	var d time.Duration
	switch seconds, err := strconv.ParseUint(header, 10, 64); {
	case err == nil, errors.Is(err, strconv.ErrRange):
		d = time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second
	default:
		if date, err := http.ParseTime(header); err == nil {
			d = date.Sub(now)
		}
	}
	return min(max(d, 0), MaxRetryAfter)
}

// classifyFailure classifies a request without a response.
func classifyFailure(err error) *Error {
	var (
		refused *egress.Refused
		dns     *net.DNSError
		netErr  net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Reason: ReasonCanceled, Message: "the request was canceled"}
	case errors.As(err, &refused):
		return &Error{Reason: ReasonEndpointForbidden, Message: refused.Error()}
	case errors.Is(err, errNoCredentials):
		return &Error{Reason: ReasonCredentialsNotFound, Message: errNoCredentials.Error()}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return &Error{Reason: ReasonTimeout, Message: sentence[ReasonTimeout]}
	case isTLS(err):
		return &Error{Reason: ReasonTLSError, Message: tlsSentence(err)}
	case errors.As(err, &dns):
		return &Error{Reason: ReasonEndpointUnreachable, Message: "the endpoint's host name does not resolve"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Error{Reason: ReasonEndpointUnreachable, Message: "the endpoint refused the connection"}
	default:
		return &Error{Reason: ReasonEndpointUnreachable, Message: "the connection to the endpoint failed"}
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
