package refs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
)

// watchSpy sits between the client and the API server.
type watchSpy struct {
	// asked counts all requests; begun counts requests for a watch.
	asked atomic.Int32
	begun atomic.Int32
	// expire makes the next watch fail with "too old".
	expire atomic.Bool
	next   http.RoundTripper

	mu   sync.Mutex
	open map[*spiedBody]struct{}
	// away is the error of every request; nil lets requests pass.
	away error
}

func (s *watchSpy) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		s.next = next
		return s
	})
	return config
}

// count returns the number of open watches.
func (s *watchSpy) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// cut ends all watches, and makes all requests fail until it is called with nil.
func (s *watchSpy) cut(err error) {
	s.mu.Lock()
	s.away = err
	var open []*spiedBody
	for b := range s.open {
		open = append(open, b)
	}
	s.mu.Unlock()
	for _, b := range open {
		_ = b.Close()
	}
}

func (s *watchSpy) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	if away != nil {
		return nil, away
	}
	s.asked.Add(1)
	if !strings.Contains(req.URL.RawQuery, "watch=true") {
		return s.next.RoundTrip(req)
	}
	s.begun.Add(1)
	if s.expire.CompareAndSwap(true, false) {
		const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},` +
			`"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}`
		return &http.Response{
			StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   io.NopCloser(strings.NewReader(gone)),
		}, nil
	}
	resp, err := s.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		b := &spiedBody{ReadCloser: resp.Body, spy: s}
		s.mu.Lock()
		if s.open == nil {
			s.open = map[*spiedBody]struct{}{}
		}
		s.open[b] = struct{}{}
		s.mu.Unlock()
		resp.Body = b
	}
	return resp, err
}

type spiedBody struct {
	io.ReadCloser
	spy *watchSpy
}

func (b *spiedBody) Close() error {
	b.spy.mu.Lock()
	delete(b.spy.open, b)
	b.spy.mu.Unlock()
	return b.ReadCloser.Close()
}

// logBuffer keeps the messages logged at the default level, one per line.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		_, _ = fmt.Fprintln(&b.buf, prefix, args)
	}, funcr.Options{})
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
