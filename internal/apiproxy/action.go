package apiproxy

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A Decider chooses the Action for each request before the request is forwarded; the body of a
// write has already been read. Decide is called concurrently; it must neither keep nor change the
// trace.Call.
type Decider interface {
	Decide(*trace.Call) Action
}

// Action describes how one request is handled. The zero Action forwards the request.
// Committed and Answered are not called for watches, upgrades and other requests that do
// not end on their own.
//
//	arrives ─▶ Decide ─▶ Before ─┬▶ Answer ───────────────────────────▶ client
//	                             ├▶ Swallow ──────────────────────────▶ broken
//	                             ├▶ Hang ── closed, or client gone ───▶ broken
//	                             └▶ server ─▶ Committed ─┬▶ Drop ─────▶ broken
//	                                                     └▶ client ─▶ Answered
type Action struct {
	// Before runs first. Once Before returns, the request continues, even if Before returned an
	// error: a fault that could not be applied must not affect the request. The Before function
	// itself records the error.
	Before func(context.Context) error
	// Answer is sent to the client, and nothing is forwarded. The Code of Answer is the HTTP
	// status.
	Answer *metav1.Status
	// RetryAfter is the Retry-After header of Answer, in seconds; 0 means no header.
	RetryAfter int
	// Drop breaks the connection once the server's answer is complete. Over HTTP/2, only
	// the stream of this request is reset.
	Drop bool
	// Swallow breaks the connection immediately; the server never gets the request.
	Swallow bool
	// Hang leaves the request without an answer until the channel is closed or the client gives up. Then
	// the connection breaks; the server never gets the request. Activity does not count the request as
	// one in flight.
	Hang <-chan struct{}
	// Committed is called when the server's answer is complete, before the client gets any of it.
	// Committed sets call.Lost if it has ensured that the client cannot get the answer.
	Committed func(call *trace.Call)
	// Answered is called when the complete answer has been sent to the client. No other
	// request is forwarded until Answered returns.
	Answered func(call *trace.Call)
}

// special reports whether the answer has to be complete before it is forwarded.
func (a *Action) special() bool { return a.Drop || a.Committed != nil || a.Answered != nil }

// abort breaks the connection to the client: net/http resets an HTTP/2 stream with
// INTERNAL_ERROR, and closes an HTTP/1.1 connection. In both cases, Go's transport and
// client-go do not retry a write.
func abort() { panic(http.ErrAbortHandler) }
