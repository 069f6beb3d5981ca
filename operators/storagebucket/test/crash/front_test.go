package crash

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"k8s.io/client-go/rest"
)

var errStruck = errors.New("the operator is dead")

type fatalKey struct{}

// front is a proxy in front of a server. It shows every write to the blade.
type front struct {
	blade   *blade
	forward *httputil.ReverseProxy
	// write names a write; it returns "" for reads.
	write func(*http.Request) string
	// refuse answers a request that must not reach the server.
	refuse func(http.ResponseWriter, *http.Request) (refused bool)
	// reads counts the requests that are not writes.
	reads atomic.Int64
	// tamper changes the effect of a request before the client gets the response.
	tamper func(*http.Response) error
}

func newFront(t *testing.T, b *blade, target string, transport http.RoundTripper, write func(*http.Request) string) (*front, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{blade: b, write: write}
	f.forward = &httputil.ReverseProxy{
		Transport: transport,
		// Watches need each event immediately.
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(u)
			// The host name is part of the request's signature, so it must not change.
			p.Out.Host = p.In.Host
			p.Out.Header.Del("Authorization")
			if a := p.In.Header.Values("Authorization"); a != nil {
				p.Out.Header["Authorization"] = a
			}
		},
		ModifyResponse: f.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return f, server.URL
}

// ServeHTTP passes a request on, unless it is the write that was chosen for the kill.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.refuse != nil && f.refuse(w, r) {
		return
	}
	kind := f.write(r)
	if kind == "" {
		f.reads.Add(1)
		f.forward.ServeHTTP(w, r)
		return
	}
	s := f.blade.count(kind)
	switch s {
	case beforeEffect:
		f.blade.strike()
		panic(http.ErrAbortHandler)
	case underWay:
		f.hold(r)
		return
	case neither, afterEffect:
	}
	// A write in progress does not end with the process that sent it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	f.forward.ServeHTTP(w, r.WithContext(context.WithValue(ctx, fatalKey{}, s == afterEffect)))
}

// hold kills the operator, and keeps its request until blade.deliver is called.
func (f *front) hold(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.blade.strike()
	<-f.blade.release
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := r.Clone(ctx)
	late.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	f.forward.ServeHTTP(answer, late)
	f.blade.late <- answer.Code
}

// answered receives the server's response before the operator does.
func (f *front) answered(resp *http.Response) error {
	if f.tamper != nil {
		if err := f.tamper(resp); err != nil {
			return err
		}
	}
	if fatal, _ := resp.Request.Context().Value(fatalKey{}).(bool); !fatal {
		return nil
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	f.blade.strike()
	return errStruck
}

// kubeFront starts the proxy in front of the API server, and returns its address. The proxy
// adds the credentials.
func kubeFront(t *testing.T, b *blade) string {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, address := newFront(t, b, cfg.Host, transport, kubeWrite)
	return address
}

// storeFront starts the proxy in front of the store.
func storeFront(t *testing.T, b *blade, habit storeHabit) (f *front, address string) {
	t.Helper()
	f, address = newFront(t, b, shop.Endpoint, &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}, storeWrite)
	switch habit {
	case dropsTags:
		f.tamper = dropTags
	case noBatches:
		f.refuse = refuseBatches
	case deletesLater:
		f.refuse = swallowFirstDelete()
	case wellBehaved:
	}
	return f, address
}

// storeHabit is a way in which a store behaves differently from versitygw.
type storeHabit int

const (
	wellBehaved storeHabit = iota
	// dropsTags drops the tags in the request that creates a bucket.
	dropsTags
	// noBatches cannot delete several objects with one request.
	noBatches
	// deletesLater reports a bucket as deleted after the first request to delete it, but
	// keeps the bucket until the second request.
	deletesLater
)

// dropTags removes the tags from the bucket before the response is passed on, because a
// signed request itself cannot be changed on its way.
func dropTags(resp *http.Response) error {
	if !isCreate(resp.Request) || resp.StatusCode != http.StatusOK {
		return nil
	}
	bucket := strings.Trim(resp.Request.URL.Path, "/")
	_, err := root.DeleteBucketTagging(context.Background(), &s3.DeleteBucketTaggingInput{Bucket: &bucket})
	return err
}

func refuseBatches(w http.ResponseWriter, r *http.Request) bool {
	if storeWrite(r) != "POST ?delete" {
		return false
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusNotImplemented)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>NotImplemented</Code><Message>no batches</Message></Error>`)
	return true
}

func swallowFirstDelete() func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	swallowed := map[string]bool{}
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if storeWrite(r) != "DELETE bucket" || swallowed[r.URL.Path] {
			return false
		}
		swallowed[r.URL.Path] = true
		w.WriteHeader(http.StatusNoContent)
		return true
	}
}
