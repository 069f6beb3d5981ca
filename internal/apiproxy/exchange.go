package apiproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy/wire"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// maxRequestBody limits the size of a request body. An API server refuses bodies of more
// than 3 MiB, so a longer body cannot be meant for an API server.
const maxRequestBody = 32 << 20

// These constants limit how many bytes of an answer are kept for the trace. The limits are
// large enough for the answer to any write, but exclude lists that would fill the memory.
const (
	keptOfWrite = 4 << 20
	keptOfRead  = 512 << 10
)

// exchange is one request and its answer.
type exchange struct {
	*front
	w       http.ResponseWriter
	r       *http.Request
	asked   asked
	call    *trace.Call
	action  Action
	body    []byte
	began   time.Time
	written bool // whether the call is in the trace
}

// enter reads the body of a write, waits at the gate, calls the Decider and begins its
// Action. The result of enter reports whether to forward the request.
func (x *exchange) enter() bool {
	if x.asked.writes() && x.endpoint == "" && !x.readBody() {
		return false
	}
	if x.gate.pass(x.r.Context()) != nil {
		x.fail("the client disconnected")
	}
	x.action = x.decide(x.call)
	if x.action.Before != nil {
		// The Before function must finish its changes to the cluster, even if it kills the client.
		_ = x.action.Before(x.ctx)
	}
	switch {
	case x.action.Answer != nil:
		x.answer()
		return false
	case x.action.Swallow:
		x.call.Injected = true
		x.fail("")
	case x.action.Hang != nil:
		x.hang()
	}
	if x.gate.pass(x.r.Context()) != nil {
		x.fail("the client disconnected")
	}
	return true
}

// hang waits, and then breaks the connection.
func (x *exchange) hang() {
	x.call.Injected = true
	x.hanging.Add(1)
	x.changed.Fire()
	message := "no response"
	select {
	case <-x.action.Hang:
	case <-x.r.Context().Done():
		message = "no response, and the client gave up"
	}
	x.hanging.Add(-1)
	x.fail(message)
}

func (x *exchange) readBody() bool {
	var buf bytes.Buffer
	if n := x.r.ContentLength; n > 0 && n <= maxRequestBody {
		buf.Grow(int(n) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(x.r.Body, maxRequestBody+1))
	if err != nil {
		x.fail("reading the request failed")
	}
	if n > maxRequestBody {
		x.sendStatus(tooLarge(), 0)
		return false
	}
	x.body = buf.Bytes()
	x.call.RequestSize = n
	x.call.RawRequest = trace.NewBody(x.body, x.call.ContentType, x.r.Header.Get("Content-Encoding"))
	if x.call.Verb == "create" && x.call.Target.Name == "" {
		x.call.Target.Name = wire.Peek(x.body).Name
	}
	return true
}

// outgoing returns the request to forward. The client's headers are reused and changed, because
// nothing else needs them any more.
func (x *exchange) outgoing(ctx context.Context, to *url.URL, host string) *http.Request {
	out := &http.Request{
		Method:        x.r.Method,
		URL:           to,
		Host:          host,
		Header:        x.r.Header,
		ContentLength: x.r.ContentLength,
		Proto:         "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	dropHopByHop(out.Header)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // otherwise the transport would set its own
	}
	switch {
	case x.body != nil:
		out.ContentLength = int64(len(x.body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		out.Body, _ = out.GetBody()
		if len(x.body) == 0 {
			out.Body = http.NoBody
		}
	case x.r.ContentLength != 0:
		out.Body = x.r.Body
	}
	return out.WithContext(ctx)
}

// completeWithin limits how long a write may take to complete after the client has died.
const completeWithin = 10 * time.Second

// forwardContext returns a context that ends when the client disconnects. If the fault
// needs the write to complete even after the client dies, the context ends neither with the
// client nor with the proxy, which is stopped when the client is gone.
func (x *exchange) forwardContext() (context.Context, context.CancelFunc) {
	if x.action.special() && !x.asked.stream && !x.asked.watch {
		return context.WithTimeout(context.WithoutCancel(x.ctx), completeWithin)
	}
	return context.WithCancel(x.r.Context())
}

// fail records that there was no answer, and breaks the connection.
func (x *exchange) fail(message string) {
	x.call.Code = 0
	x.call.Message = message
	x.recordCall()
	abort()
}

func (x *exchange) recordCall() {
	if x.written {
		return
	}
	x.written = true
	x.weigh(x.call, x.asked, x.r.Method)
	x.call.Took = time.Since(x.began) // last, because the time of the entry minus Took is that of the arrival
	x.record(trace.Entry{Call: x.call})
}

// complete records the answer. kept is the start of its body.
func (x *exchange) complete(resp *http.Response, kept []byte, size int64) {
	c := x.call
	c.Code = resp.StatusCode
	c.ResponseSize = size
	if x.endpoint != "" {
		return
	}
	body := trace.NewBody(kept, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"))
	if int64(len(kept)) == size {
		c.RawResponse = body
	}
	meta := peek(body, kept, resp.Header.Get("Content-Encoding"))
	c.ResourceVersion = meta.ResourceVersion
	if c.Verb == "create" && c.Target.Name == "" && c.Code < 300 {
		c.Target.Name = meta.Name // the server made it from generateName
	}
	if c.Code >= 400 {
		// The messages of refusals are kept, because refusals are rare and people read the
		// messages.
		if obj, err := c.ResponseObject(); err == nil {
			c.Reason, _ = obj["reason"].(string)
			c.Message, _ = obj["message"].(string)
		}
	}
}

func peek(body trace.Body, kept []byte, encoding string) wire.Meta {
	if encoding != "" && encoding != "identity" {
		plain, err := body.Plain()
		if err != nil {
			return wire.Meta{}
		}
		kept = plain
	}
	return wire.Peek(kept)
}

// hopByHop lists the headers that apply to a single connection. The proxy drops these
// headers and the headers that Connection names (RFC 9110, section 7.6.1).
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func dropHopByHop(h http.Header) {
	trailers := h.Get("Te") == "trailers"
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
	if trailers {
		h.Set("Te", "trailers")
	}
}
