package s3store

import (
	"errors"
	"time"
)

// Reason is the outcome of a request in one CamelCase word. It is used as the
// reason of a condition.
type Reason string

// Outcomes.
const (
	// ReasonSucceeded means that the store answered with success.
	ReasonSucceeded Reason = "ProbeSucceeded"
	// ReasonInvalidCredentials means that the store does not accept the key pair.
	ReasonInvalidCredentials Reason = "InvalidCredentials"
	// ReasonAccessDenied means that the key pair may not do what was asked, or the
	// store refused without saying why.
	ReasonAccessDenied Reason = "AccessDenied"
	// ReasonBucketNotFound means that the store says, with an error code, that there is
	// no such bucket. A bare 404 is ReasonUnexpectedResponse.
	ReasonBucketNotFound Reason = "BucketNotFound"
	// ReasonBucketExists means that this account already has a bucket of that name.
	ReasonBucketExists Reason = "BucketExists"
	// ReasonOwnershipConflict means that the bucket is somebody else's.
	ReasonOwnershipConflict Reason = "OwnershipConflict"
	// ReasonNotEmpty means that the bucket cannot be deleted because it holds
	// something.
	ReasonNotEmpty Reason = "NotEmpty"
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
	// ReasonThrottled means that the store asked for fewer requests (429, 503), or that
	// the operator's own limit for the store left no room in time.
	ReasonThrottled Reason = "Throttled"
	// ReasonClockSkew means that the clocks of the store and of this process differ by
	// more than signatures allow.
	ReasonClockSkew Reason = "ClockSkew"
	// ReasonServerError means that the store failed (5xx).
	ReasonServerError Reason = "ServerError"
	// ReasonUnsupported means that the store does not implement the request.
	ReasonUnsupported Reason = "Unsupported"
	// ReasonInvalidConfiguration means that the store finds what it was asked to hold,
	// or the bucket's name, not valid.
	ReasonInvalidConfiguration Reason = "InvalidConfiguration"
	// ReasonUnexpectedResponse means that the answer is not one an S3 store gives.
	ReasonUnexpectedResponse Reason = "UnexpectedResponse"
	// ReasonCanceled means that the caller gave up, for example because the process is
	// stopping. It says nothing of the store and must not be reported.
	ReasonCanceled Reason = "Canceled"

	// ReasonEndpointForbidden means that the operator is set up not to talk to the
	// endpoint's address; nothing was sent.
	ReasonEndpointForbidden Reason = "EndpointForbidden"
	// ReasonInvalidEndpoint means that the endpoint is not a usable URL; nothing was
	// sent.
	ReasonInvalidEndpoint Reason = "InvalidEndpoint"
	// ReasonInvalidCABundle means that the certificates to trust are missing or not
	// valid; nothing was sent.
	ReasonInvalidCABundle Reason = "InvalidCABundle"
	// ReasonCredentialsNotFound means that there are no credentials to sign with;
	// nothing was sent.
	ReasonCredentialsNotFound Reason = "CredentialsNotFound"
)

// Terminal tells whether repeating the same request cannot help: a person or
// an input has to change first. What the passing of time, or another look at
// the store, may mend is not terminal.
func (r Reason) Terminal() bool {
	switch r {
	case ReasonInvalidCredentials, ReasonAccessDenied, ReasonBucketNotFound, ReasonOwnershipConflict,
		ReasonNotEmpty, ReasonWrongRegion, ReasonUnsupported, ReasonInvalidConfiguration,
		ReasonEndpointForbidden, ReasonInvalidEndpoint, ReasonInvalidCABundle, ReasonCredentialsNotFound:
		return true
	default:
		return false
	}
}

// Connection tells whether the outcome says something of the way to the store
// and nothing of the bucket.
func (r Reason) Connection() bool {
	return r == ReasonEndpointUnreachable || r == ReasonTLSError || r == ReasonTimeout
}

// Result is what one probe or check found.
type Result struct {
	// Reason is the outcome.
	Reason Reason
	// Message is the outcome as a sentence of fixed text, without secrets.
	Message string
	// Latency is the time from sending the first request, connecting included
	// where that was needed, to the end of its answer's headers; zero when the
	// store did not answer. Waiting for a limit is not in it.
	Latency time.Duration
	// RetryAfter is how long the store asked to be left alone, at most
	// MaxRetryAfter; zero when it did not ask.
	RetryAfter time.Duration
}

// Succeeded tells whether all is well.
func (r Result) Succeeded() bool { return r.Reason == ReasonSucceeded }

// Error is why a request did not do what it was for. Its text is fixed, as
// that of a Result is, and there is nothing to unwrap: the causes hold URLs,
// request IDs and what else the store cared to say.
type Error struct {
	// Reason is the outcome; never ReasonSucceeded.
	Reason Reason
	// Message is the outcome as a sentence.
	Message string
	// RetryAfter is as in Result.
	RetryAfter time.Duration

	// code is the S3 error code as the store sent it, or empty. It is for
	// comparison only: it may hold anything.
	code string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// GoString is the message as well: %#v would show the code.
func (e *Error) GoString() string { return e.Message }

// ReasonOf is the reason of an *Error in err's chain; empty when there is none.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// codeOf is the S3 error code of an *Error in err's chain, to be compared with
// and never to be shown; empty when there is none.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}
