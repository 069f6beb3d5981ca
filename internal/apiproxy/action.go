package apiproxy

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A Decider chooses the Action for each request, before it is forwarded; the body of a
// write has been read by then. It is called concurrently, and must not keep or change
// the call.
type Decider interface {
	Decide(*trace.Call) Action
}

// Action describes how one request is handled. The zero Action forwards it. Committed
// and Answered are not called for watches, upgrades and other requests that do not end
// by themselves.
//
//	arrives ─▶ Decide ─▶ Before ─┬▶ Answer ───────────────────────────▶ client
//	                             ├▶ Swallow ──────────────────────────▶ broken
//	                             └▶ server ─▶ Committed ─┬▶ Drop ─────▶ broken
//	                                                     └▶ client ─▶ Answered
type Action struct {
	// Before runs first. The request continues when it returns, also with an error: a
	// fault that could not be applied must change nothing, and the function itself
	// notes the error.
	Before func(context.Context) error
	// Answer is sent, and nothing is forwarded. Its Code is the HTTP status.
	Answer *metav1.Status
	// RetryAfter is the header of Answer, in seconds; 0 is none.
	RetryAfter int
	// Drop breaks the connection once the server's answer is complete. Over HTTP/2 it
	// resets this one stream.
	Drop bool
	// Swallow breaks the connection at once; the server never gets the request.
	Swallow bool
	// Committed is called when the server's answer is complete, before the client gets
	// any of it. It sets call.Lost if it has made sure that the client cannot get it.
	Committed func(call *trace.Call)
	// Answered is called when the whole answer has been sent to the client. No other
	// request is forwarded until it returns.
	Answered func(call *trace.Call)
}

// special reports whether the answer has to be complete before it is forwarded.
func (a *Action) special() bool { return a.Drop || a.Committed != nil || a.Answered != nil }

// abort breaks the connection to the client: net/http resets an HTTP/2 stream with
// INTERNAL_ERROR, and closes an HTTP/1.1 connection. Go's transport and client-go retry
// a write after neither.
func abort() { panic(http.ErrAbortHandler) }
