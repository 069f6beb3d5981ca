package apiproxy

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// relay forwards an answer as it arrives.
func (x *exchange) relay(resp *http.Response) {
	if x.r.ProtoMajor < 2 && x.body == nil && x.r.ContentLength != 0 {
		// The answer may begin before the request has ended. Without full duplex,
		// net/http would discard the rest of the request.
		_ = http.NewResponseController(x.w).EnableFullDuplex()
	}
	copyHeader(x.w, resp)
	x.w.WriteHeader(resp.StatusCode)
	flush := x.asked.stream
	if flush {
		x.flush() // even if a followed log is empty, the client must learn that the log exists
	}
	kept, size, err := x.copyBody(resp, flush)
	if err != nil {
		x.call.Lost = x.r.Context().Err() != nil
		x.call.Message = "the response was cut off"
		x.call.Code = resp.StatusCode
		x.call.ResponseSize = size
		x.recordCall()
		abort()
	}
	// The answer is recorded before its end is sent, so that the client's next requests are
	// recorded after it. Over HTTP/1.1, a large body with a Content-Length is an exception: it ends
	// with its last byte, which may be sent before the answer is recorded.
	x.complete(resp, kept, size)
	x.recordCall()
	copyTrailer(x.w, resp)
}

// copyBody copies the body to the client, and keeps the part that the trace needs.
func (x *exchange) copyBody(resp *http.Response, flush bool) (kept []byte, size int64, err error) {
	limit := x.keep()
	if n := resp.ContentLength; n > 0 && n <= int64(limit) {
		kept = make([]byte, 0, n)
	}
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := *pooled
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if room := limit - len(kept); room > 0 {
				kept = append(kept, buf[:min(n, room)]...)
			}
			size += int64(n)
			if _, err := x.w.Write(buf[:n]); err != nil {
				return kept, size, err
			}
			if flush {
				x.flush()
			}
		}
		if err == io.EOF {
			return kept, size, nil
		}
		if err != nil {
			return kept, size, err
		}
	}
}

// keep returns how many bytes of an answer are kept.
func (x *exchange) keep() int {
	switch {
	case x.endpoint != "", x.asked.stream, x.log == nil && !x.action.special():
		return 0
	case x.asked.writes():
		return keptOfWrite
	}
	return keptOfRead
}

// finish does the same as relay for actions that need the complete answer: it reads the
// whole answer before the client gets any part of it.
func (x *exchange) finish(resp *http.Response) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		x.fail("the response was cut off")
	}
	x.complete(resp, body, int64(len(body)))
	x.call.Took = time.Since(x.began)
	x.call.Lost = x.action.Drop
	if x.action.Committed != nil {
		x.action.Committed(x.call)
	}
	if x.r.Context().Err() != nil {
		x.call.Lost = true // the client no longer waits for the answer
	}
	x.recordCall()
	if x.action.Drop {
		abort()
	}
	if x.action.Answered != nil {
		// The gate closes before the client gets anything that it could act on.
		x.gate.close()
		defer x.answered(x.call)
	}
	copyHeader(x.w, resp)
	if x.r.Method != http.MethodHead && resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusNotModified {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.WriteHeader(resp.StatusCode)
	_, _ = x.w.Write(body) // fails if the client has disconnected
	copyTrailer(x.w, resp)
	x.flush()
}

// answered calls Answered once the complete answer is sent. Over HTTP/1.1, the answer has
// already been sent, since the whole body was flushed. Over HTTP/2, the end of the stream
// is sent after the handler has returned, and then the request's context ends. With either
// protocol, the handler returns without waiting for Answered, so that the client's next
// request reaches the gate.
func (x *exchange) answered(call *trace.Call) {
	x.handlers.Add(1)
	go func() {
		defer x.handlers.Done()
		defer x.gate.open()
		if x.r.ProtoMajor >= 2 {
			<-x.r.Context().Done()
		}
		x.action.Answered(call)
	}()
}

func (x *exchange) flush() {
	if f, ok := x.w.(http.Flusher); ok {
		f.Flush()
	}
}

func copyHeader(w http.ResponseWriter, resp *http.Response) {
	dropHopByHop(resp.Header)
	to := w.Header()
	for k, v := range resp.Header {
		to[k] = v
	}
	for k := range resp.Trailer {
		to.Add("Trailer", k)
	}
}

// copyTrailer sends all trailers, whether or not the response announced them.
func copyTrailer(w http.ResponseWriter, resp *http.Response) {
	announced := w.Header()["Trailer"]
	for k, v := range resp.Trailer {
		if !slices.Contains(announced, k) {
			k = http.TrailerPrefix + k
		}
		w.Header()[k] = v
	}
}
