package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAReplayIsAnsweredByTheProcessThatRunsNow(t *testing.T) {
	r := newRig(t)
	_, old := r.manager(echo(1))
	r.Resume(old)
	r.Pause(t.Context())
	_, address := r.manager(func(w http.ResponseWriter, request *http.Request) {
		data, _ := io.ReadAll(request.Body)
		_, _ = fmt.Fprintf(w, "2 %s %s %s", request.URL.Path, request.Header.Get("Content-Type"), data)
	})
	r.Resume(address)
	got, err := r.Replay(t.Context(), "/validate", []byte("{}"))
	if err != nil || got.Err != "" || got.Status != http.StatusOK || got.Path != "/validate" || got.Took <= 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if body, err := got.Response.Plain(); err != nil || string(body) != "2 /validate application/json {}" {
		t.Errorf("answered %s, %v", body, err)
	}
	if body, err := got.Request.Plain(); err != nil || string(body) != "{}" {
		t.Errorf("the request is %s, %v", body, err)
	}
	if len(r.reviews) != 0 {
		t.Errorf("the observer was called: %v", r.reviews)
	}
}

func TestAReplayDelaysNoRestart(t *testing.T) {
	r := newRig(t)
	handle, received := hold()
	_, address := r.manager(handle)
	r.Resume(address)
	ctx, giveUp := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = r.Replay(ctx, "/validate", nil)
	}()
	<-received
	paused, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r.Pause(paused); paused.Err() != nil {
		t.Error("the pause waited for the replay")
	}
	giveUp()
	<-answered
}

func TestAReplayDoesNotWaitForAProcess(t *testing.T) {
	r := newRig(t)
	if _, err := r.Replay(t.Context(), "/validate", nil); err == nil || !strings.Contains(err.Error(), "no manager serves webhooks now") {
		t.Errorf("before the first process: %v", err)
	}
	r.Refuse("the manager ended with exit code 3")
	if _, err := r.Replay(t.Context(), "/validate", nil); err == nil || err.Error() != "the manager ended with exit code 3" {
		t.Errorf("after a crash: %v", err)
	}
}

func TestAReplayWithoutAnAnswerNamesTheReason(t *testing.T) {
	r := newRig(t)
	_, address := r.manager(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r.Resume(address)
	if got, err := r.Replay(t.Context(), "/validate", nil); err != nil || got.Status != 0 || !strings.Contains(got.Err, "probably panicked") {
		t.Errorf("a handler that panics: %+v, %v", got, err)
	}
	handle, received := hold()
	dying, address := r.manager(handle)
	r.Resume(address)
	go func() { <-received; end(dying) }()
	if got, err := r.Replay(t.Context(), "/validate", nil); err != nil || got.Err != "the manager ended before it answered" {
		t.Errorf("a process that ends: %+v, %v", got, err)
	}
	handle, received = hold()
	_, address = r.manager(handle)
	r.Resume(address)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-received; cancel() }()
	if got, err := r.Replay(ctx, "/validate", nil); err != nil || !strings.Contains(got.Err, "canceled") {
		t.Errorf("a replay that is given up: %+v, %v", got, err)
	}
}
