package s3store

import (
	"errors"
	"time"
)

// Reason is the outcome of a request in one CamelCase word. It is used as the
// reason of a condition.
type Reason string

// The outcomes.
const (
	// ReasonSucceeded means that the store answered with success.
	ReasonSucceeded Reason = "ProbeSucceeded"
	// ReasonInvalidCredentials means that the store does not accept the key pair.
	ReasonInvalidCredentials Reason = "InvalidCredentials"
	// ReasonAccessDenied means that the key pair does not permit the request, or that the store
	// refused the request without giving a reason.
	ReasonAccessDenied Reason = "AccessDenied"
	// ReasonBucketNotFound means that the store answered, with an error code, that there is
	// no such bucket. A 404 without an error code is ReasonUnexpectedResponse.
	ReasonBucketNotFound Reason = "BucketNotFound"
	// ReasonBucketExists means that this account already has a bucket of that name.
	ReasonBucketExists Reason = "BucketExists"
	// ReasonOwnershipConflict means that the bucket has another owner.
	ReasonOwnershipConflict Reason = "OwnershipConflict"
	// ReasonNotEmpty means that the bucket cannot be deleted because it holds
	// something.
	ReasonNotEmpty Reason = "NotEmpty"
	// ReasonWrongRegion means that the bucket is in another region, or that the store
	// expects signatures for another region.
	ReasonWrongRegion Reason = "WrongRegion"
	// ReasonEndpointUnreachable means that no connection to the endpoint was possible,
	// or that the connection broke.
	ReasonEndpointUnreachable Reason = "EndpointUnreachable"
	// ReasonTLSError means that the certificate or the TLS handshake of the endpoint is
	// invalid.
	ReasonTLSError Reason = "TLSError"
	// ReasonTimeout means that the store did not answer in time.
	ReasonTimeout Reason = "Timeout"
	// ReasonThrottled means that the store asked for fewer requests (429, 503), or that
	// the operator's own limit for the store did not allow the request in time.
	ReasonThrottled Reason = "Throttled"
	// ReasonClockSkew means that the clocks of the store and of this process differ by
	// more than signatures allow.
	ReasonClockSkew Reason = "ClockSkew"
	// ReasonServerError means that the store failed (5xx).
	ReasonServerError Reason = "ServerError"
	// ReasonUnsupported means that the store does not implement the request.
	ReasonUnsupported Reason = "Unsupported"
	// ReasonInvalidConfiguration means that the store rejects a setting or the
	// bucket's name as invalid.
	ReasonInvalidConfiguration Reason = "InvalidConfiguration"
	// ReasonUnexpectedResponse means that the response is not one that an S3 store sends.
	ReasonUnexpectedResponse Reason = "UnexpectedResponse"
	// ReasonCanceled means that the caller gave up, for example because the process is
	// stopping. This reason reveals nothing about the store and must not be reported.
	ReasonCanceled Reason = "Canceled"

	// ReasonEndpointForbidden means that the operator is configured not to connect
	// to the endpoint's address; nothing was sent.
	ReasonEndpointForbidden Reason = "EndpointForbidden"
	// ReasonInvalidEndpoint means that the endpoint is not a usable URL; nothing was
	// sent.
	ReasonInvalidEndpoint Reason = "InvalidEndpoint"
	// ReasonInvalidCABundle means that the certificates to trust are missing or
	// invalid; nothing was sent.
	ReasonInvalidCABundle Reason = "InvalidCABundle"
	// ReasonCredentialsNotFound means that there are no credentials to sign with;
	// nothing was sent.
	ReasonCredentialsNotFound Reason = "CredentialsNotFound"
	// ReasonCredentialsForbidden means that the operator has no right to read the
	// credentials; nothing was sent.
	ReasonCredentialsForbidden Reason = "CredentialsForbidden"
	// ReasonCABundleForbidden means that the operator has no right to read the
	// certificates to trust; nothing was sent.
	ReasonCABundleForbidden Reason = "CABundleForbidden"
)

// Terminal reports whether somebody must change something before the same request can
// succeed. A failure that may go away by itself is not terminal.
func (r Reason) Terminal() bool {
	switch r {
	case ReasonInvalidCredentials, ReasonAccessDenied, ReasonBucketNotFound, ReasonOwnershipConflict,
		ReasonNotEmpty, ReasonWrongRegion, ReasonUnsupported, ReasonInvalidConfiguration,
		ReasonEndpointForbidden, ReasonInvalidEndpoint, ReasonInvalidCABundle, ReasonCredentialsNotFound,
		ReasonCredentialsForbidden, ReasonCABundleForbidden:
		return true
	default:
		return false
	}
}

// Forbidden reports whether the operator lacks a right in Kubernetes. Granting the right
// does not always cause an event, so the operator must try again from time to time.
func (r Reason) Forbidden() bool {
	return r == ReasonCredentialsForbidden || r == ReasonCABundleForbidden
}

// Connection reports whether the outcome concerns the connection to the store and
// not the bucket.
func (r Reason) Connection() bool {
	return r == ReasonEndpointUnreachable || r == ReasonTLSError || r == ReasonTimeout
}

// Result is the outcome of one probe or check.
type Result struct {
	// Reason is the outcome.
	Reason Reason
	// Message is the outcome as a sentence of fixed text, without secrets.
	Message string
	// Latency is the time from the start of the first request to the end of the response headers,
	// including any time to connect; zero if the store did not answer. Latency does not include the
	// time spent waiting for a limit.
	Latency time.Duration
	// RetryAfter is the pause that the store asked for, at most MaxRetryAfter; zero if
	// it did not ask for one.
	RetryAfter time.Duration
}

// Succeeded reports whether the probe or check succeeded.
func (r Result) Succeeded() bool { return r.Reason == ReasonSucceeded }

// Error is the failure of a request. The text of an Error is fixed, like the text of a Result. An
// Error does not wrap the cause, because causes contain URLs, request IDs and other parts of the
// store's response.
type Error struct {
	// Reason is the outcome; it is never ReasonSucceeded.
	Reason Reason
	// Message is the outcome as a sentence.
	Message string
	// RetryAfter has the same meaning as in Result.
	RetryAfter time.Duration

	// code is the S3 error code that the store sent, or empty. The code may contain anything, so it
	// is only compared and never shown.
	code string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// GoString returns the message, because %#v would otherwise show the code.
func (e *Error) GoString() string { return e.Message }

// ReasonOf returns the reason of an *Error in err's chain, or "" if there is none.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// codeOf returns the S3 error code of an *Error in err's chain, or "" if there
// is none. Compare it only; never show it.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}
