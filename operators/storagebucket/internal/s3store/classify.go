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

// MaxRetryAfter bounds how long a store can silence its own callers.
const MaxRetryAfter = 10 * time.Minute

// reasonOfCode maps the S3 error codes that say the same whatever was asked.
// Only codes listed here are ever repeated in a message; any other text from
// the store is not.
// Source: the list of error codes in the Amazon S3 API reference, and the
// codes of versitygw, Ceph RGW, MinIO and Garage where they differ.
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

// sentence is the fixed text of each reason an answer can have.
var sentence = map[Reason]string{
	ReasonSucceeded:            "the store answered for the bucket",
	ReasonInvalidCredentials:   "the store does not accept the credentials",
	ReasonAccessDenied:         "the store denied access to the bucket",
	ReasonBucketNotFound:       "the store has no such bucket",
	ReasonBucketExists:         "the account already has a bucket of that name",
	ReasonOwnershipConflict:    "the store says that the bucket is somebody else's",
	ReasonNotEmpty:             "the bucket is not empty",
	ReasonWrongRegion:          "the region or the endpoint is not the bucket's",
	ReasonThrottled:            "the store asked for fewer requests",
	ReasonClockSkew:            "the clocks of the store and of the controller differ too much",
	ReasonTimeout:              "the store did not answer in time",
	ReasonServerError:          "the store failed",
	ReasonUnsupported:          "the store does not support the request",
	ReasonInvalidConfiguration: "the store does not accept the request as valid",
	ReasonUnexpectedResponse:   "the answer is not one an S3 store gives",
}

// verdict judges what came of one exchange; nil is success. The cause is the
// client's error; where there was an answer, that counts.
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
		// The headers came, the body did not.
		failure := classifyFailure(x.bodyErr)
		if failure.Reason == ReasonEndpointUnreachable {
			failure.Message = fmt.Sprintf("the connection to the endpoint broke in the middle of an answer (HTTP status %d)", x.status)
		}
		return failure
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return classifyFailure(cause)
	}
	a := answer{status: x.status, header: x.answer.Header}
	var api smithy.APIError
	// Where there is no code the SDK makes one up from the status.
	if bytes.Contains(x.start, []byte("<Code>")) && errors.As(cause, &api) {
		a.code = api.ErrorCode()
	}
	return classifyAnswer(a, s.region, time.Now())
}

// answer is the part of an HTTP response that is kept.
type answer struct {
	status int
	header http.Header
	// code is the S3 error code of the body; empty when there was none.
	code string
}

// classifyAnswer judges an answer other than success. A code that is known
// says more than the status: gateways answer unknown keys with 404.
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
		e.Message = "the endpoint redirects to another, which is not followed: give the endpoint that answers (" + detail + ")"
	}
	return e
}

// reasonOfStatus is the best guess when the store gave no code.
func reasonOfStatus(a answer, region string) Reason {
	switch {
	case a.status == http.StatusUnauthorized:
		return ReasonInvalidCredentials
	case a.status == http.StatusForbidden:
		return ReasonAccessDenied
	case redirect(a.status) && bucketRegion(a.header) != "":
		// Without the header it is some web server's redirect, for example
		// from http to https.
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
		// 404 included: a proxy, a wrong path or a gateway that does not know
		// the key answers like that as well, so it says nothing of the bucket.
		return ReasonUnexpectedResponse
	}
}

func redirect(status int) bool { return status >= 300 && status < 400 }

// throttled reports whether the status is one of the two that ask for fewer
// requests.
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

// classifyFailure judges a request without an answer.
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
