package apiproxy

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A Decider says what is done to a request. It is asked for each one, after its
// body was read if it is a write, and before it is forwarded. It is called
// concurrently, and must not keep or change the call.
type Decider interface {
	Decide(*trace.Call) Action
}

// Action is what is done to one request. The zero Action is to forward it. For
// watches, upgrades and what else does not end by itself Committed and Answered
// are not called.
//
//	arrives ─▶ Decide ─▶ Before ─┬▶ Answer ───────────────────────────▶ client
//	                             ├▶ Swallow ──────────────────────────▶ broken
//	                             └▶ server ─▶ Committed ─┬▶ Drop ─────▶ broken
//	                                                     └▶ client ─▶ Answered
type Action struct {
	// Before runs before anything else is done. The request goes on when it
	// returns, also with an error: what could not be done must change nothing,
	// and the function knows what it was.
	Before func(context.Context) error
	// Answer is sent and nothing forwarded. Its Code is the HTTP status.
	Answer *metav1.Status
	// RetryAfter is the header of Answer, in seconds; 0 is none.
	RetryAfter int
	// Drop breaks the connection once the server's answer is complete. Over
	// HTTP/2 that is a reset of this one stream.
	Drop bool
	// Swallow breaks the connection at once; the server never learns of the
	// request.
	Swallow bool
	// Committed is called when the server's answer is complete and the client
	// has nothing of it yet; it waits until Committed returns. It may set
	// call.Lost, if what it did is that the client cannot get the answer.
	Committed func(call *trace.Call)
	// Answered is called when the client has been sent the whole answer. Until
	// it returns no other request is forwarded.
	Answered func(call *trace.Call)
}

// special reports whether the answer has to be complete before it is passed on.
func (a *Action) special() bool { return a.Drop || a.Committed != nil || a.Answered != nil }

// abort breaks the connection to the client: net/http resets the stream of
// HTTP/2 with INTERNAL_ERROR, and closes a connection of HTTP/1.1. Go's transport
// and client-go try neither again for a write.
func abort() { panic(http.ErrAbortHandler) }
