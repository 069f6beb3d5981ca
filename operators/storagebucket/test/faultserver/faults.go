package faultserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

// answers returns a Fault that answers the request itself, and does not call the handler
// behind the server.
func answers(f http.HandlerFunc) Fault {
	return func(http.Handler) http.Handler { return f }
}

// Status answers with a status and headers, and without a body. headers are pairs of a
// name and a value.
func Status(code int, headers ...string) Fault {
	return Body(code, "", headers...)
}

// Body answers with a status, a body and headers. headers are pairs of a name and a
// value.
func Body(code int, body string, headers ...string) Fault {
	return answers(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}

// S3Error answers with an S3 error document, as a careless store would write it. The
// document contains the code, but also the request's signature and resource, which a client
// must not show to anybody.
func S3Error(status int, code string, headers ...string) Fault {
	return answers(func(w http.ResponseWriter, r *http.Request) {
		body := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>`+
			`<Error><Code>%s</Code><Message>refused: %s</Message><Resource>%s</Resource><RequestId>REQUEST-ID</RequestId></Error>`,
			code, r.Header.Get("Authorization"), r.URL.Path)
		if r.Method == http.MethodHead {
			body = ""
		}
		Body(status, body, append([]string{"Content-Type", "application/xml"}, headers...)...)(nil).ServeHTTP(w, r)
	})
}

// Throttle answers 503 SlowDown. retryAfter is the text of the header Retry-After; if
// it is empty, there is no header.
func Throttle(retryAfter string) Fault {
	if retryAfter == "" {
		return S3Error(http.StatusServiceUnavailable, "SlowDown")
	}
	return S3Error(http.StatusServiceUnavailable, "SlowDown", "Retry-After", retryAfter)
}

// Hang accepts the request and never answers.
func Hang() Fault {
	return answers(func(w http.ResponseWriter, r *http.Request) {
		// The body must be read, because only then does net/http notice that the client has
		// disconnected.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		abort(w)
	})
}

// Delay lets the request pass after the given time.
func Delay(d time.Duration) Fault {
	return func(behind http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !pause(r.Context(), d) {
				abort(w)
			}
			behind.ServeHTTP(w, r)
		})
	}
}

// HangInBody answers with the status and the beginning of an error document,
// and then sends nothing more.
func HangInBody(status int) Fault {
	return answers(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		abort(w)
	})
}

// SlowBody answers immediately, and then sends an endless document: one space character
// per interval.
func SlowBody(status int, every time.Duration) Fault {
	return answers(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error>")
		for pause(r.Context(), every) {
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
		abort(w)
	})
}

// TruncatedBody announces a longer body than it sends, and closes the
// connection.
func TruncatedBody(status int) Fault {
	return answers(func(w http.ResponseWriter, _ *http.Request) {
		const start = "<Error><Code>AccessDen"
		w.Header().Set("Content-Length", "4096")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, start)
		_ = http.NewResponseController(w).Flush()
		abort(w)
	})
}

// Garbage answers with a status and a web page as the body.
func Garbage(status int) Fault {
	return Body(status, "<html><body><p>It works!<br></body></html>", "Content-Type", "text/html")
}

// HugeBody answers with a status and a document of the given size that has no useful
// content.
func HugeBody(status, size int) Fault {
	return answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		junk := bytes.Repeat([]byte("<Filler/>"), 4096)
		for _, _ = io.WriteString(w, "<Error>"); size > 0; size -= len(junk) {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	})
}

// Reset breaks the connection with a TCP reset, without a response.
func Reset() Fault {
	return answers(func(w http.ResponseWriter, r *http.Request) {
		reset(r)
		abort(w)
	})
}

// LoseAnswer passes the request on, and then breaks the connection without a
// response: the client cannot know whether the request was carried out.
func LoseAnswer() Fault {
	return func(behind http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			behind.ServeHTTP(httptest.NewRecorder(), r)
			reset(r)
			abort(w)
		})
	}
}

// abort cuts off the response.
func abort(http.ResponseWriter) { panic(http.ErrAbortHandler) }

type connectionKey struct{}

func rememberConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// reset ends the connection with a TCP reset instead of an orderly close.
func reset(r *http.Request) {
	c, _ := r.Context().Value(connectionKey{}).(net.Conn)
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// pause returns false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
