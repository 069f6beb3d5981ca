package apiserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const self = "127.0.0.1:6443"

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errNetwork = errors.New("went over the network")

func inProcessClient(h http.Handler) *http.Client {
	p := &inProcess{host: self}
	if h != nil {
		p.serve(h)
	}
	return &http.Client{Transport: p.wrap(roundTripper(func(*http.Request) (*http.Response, error) { return nil, errNetwork }))}
}

func TestOnlyTheServersOwnAddressIsServedInProcess(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for url, network := range map[string]bool{"https://" + self + "/x": false, "https://kubernetes.default.svc/x": true} {
		r, err := inProcessClient(h).Get(url)
		if errors.Is(err, errNetwork) != network {
			t.Errorf("%s: %v, want it to go over the network: %t", url, err, network)
		}
		if err == nil && r.StatusCode != http.StatusTeapot {
			t.Errorf("%s: status %d", url, r.StatusCode)
		}
	}
	if _, err := inProcessClient(nil).Get("https://" + self); !errors.Is(err, errNetwork) {
		t.Errorf("without a handler: %v, want it to go over the network", err)
	}
}

func TestRequestAndAnswerArriveAsByAConnection(t *testing.T) {
	type key struct{}
	client := inProcessClient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Context().Value(key{}) != nil {
			t.Error("the handler sees a value of the client's context")
		}
		if r.RequestURI != "/api?watch=1" || r.Host != self || r.TLS == nil || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("arrived as %+v", r)
		}
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("X-Late", "no")
		_, _ = w.Write(append([]byte("got "), body...))
	}))
	r, err := http.NewRequestWithContext(context.WithValue(t.Context(), key{}, 1), http.MethodPost, "https://"+self+"/api?watch=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer x")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "got body" || answer.StatusCode != http.StatusCreated || answer.Header.Get("X-Answer") != "yes" || answer.Header.Get("X-Late") != "" {
		t.Errorf("%q, %v, %+v", body, err, answer)
	}
}

func TestAStreamEndsWhenItsReaderHasEnough(t *testing.T) {
	ended := make(chan struct{})
	client := inProcessClient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "event\n")
		<-r.Context().Done()
	}))
	answer, err := client.Get("https://" + self)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || line != "event\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Error("the handler did not stop")
	}
}

func TestACallerWhoGivesUpGetsNoAnswerAndTheHandlerKnows(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	client := inProcessClient(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		close(ended)
	}))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+self, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was canceled", err)
	}
	<-ended
}

func TestAHandlerThatPanicsLeavesAnErrorAndNoAnswer(t *testing.T) {
	early := inProcessClient(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	if _, err := early.Get("https://" + self); !errors.Is(err, errUnfinished) {
		t.Errorf("%v, want %v", err, errUnfinished)
	}
	late := inProcessClient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	}))
	answer, err := late.Get("https://" + self)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(answer.Body); !errors.Is(err, errUnfinished) {
		t.Errorf("%q, %v, want %v", body, err, errUnfinished)
	}
}
