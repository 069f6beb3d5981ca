package api

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/pki"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// bench is a session with a listener for reviews, as koboshi dev has.
type bench struct {
	t         *testing.T
	authority *pki.Authority
	listener  *webhook.Listener
	log       *trace.Log
	server    *Server
	client    *Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, log: trace.NewLog(time.Now())}
	var err error
	if b.authority, err = pki.New("a plane"); err == nil {
		b.listener, err = webhook.Listen(b.authority, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.listener.Close)
	b.server, err = Start(t.Context(), Options{Session: inspect.Follow(t.Context(), b.log, 0), Replay: b.replay, Scrub: func(text string) string {
		return strings.ReplaceAll(text, "hidden-value", "[secret value]")
	}})
	if err == nil {
		b.client, err = NewClient(b.server.URL())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.server.Stop)
	return b
}

// replay does what the command line does for a session of koboshi dev.
func (b *bench) replay(ctx context.Context, of int64, review *trace.Review) (trace.Entry, error) {
	body, err := review.RawRequest.Plain()
	if err != nil {
		return trace.Entry{}, err
	}
	r, err := b.listener.Replay(ctx, review.Path, body)
	if err != nil {
		return trace.Entry{}, err
	}
	return b.log.Record(trace.Entry{Review: &trace.Review{
		Path: r.Path, RawRequest: r.Request, RawResponse: r.Response, Code: r.Status, Error: r.Err, Took: r.Took, Replays: of,
	}}), nil
}

// manager starts a webhook server that answers with the response, to which it adds the uid. The
// channel receives the reviews.
func (b *bench) manager(response string) <-chan string {
	b.t.Helper()
	received := make(chan string, 1)
	dir := b.t.TempDir()
	if err := webhook.Files(b.authority, dir); err != nil {
		b.t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		received <- string(data)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answered(response))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	b.t.Cleanup(server.Close)
	b.listener.Resume(server.Listener.Addr().String())
	return received
}

func answered(response string) string {
	return `{"kind":"AdmissionReview","response":{"uid":"u",` + response + `}}`
}

// record records a call of a webhook, waits until the session contains it, and returns its number.
func (b *bench) record(request, response string) int64 {
	b.t.Helper()
	e := b.log.Record(trace.Entry{Review: &trace.Review{
		Path: "/validate", Code: 200, RawRequest: trace.NewBody([]byte(request), "application/json", ""), RawResponse: trace.NewBody([]byte(response), "application/json", ""),
	}})
	b.wait(e.Seq)
	return e.Seq
}

func (b *bench) wait(seq int64) {
	for last := int64(0); last < seq; {
		changed := b.server.options.Session.Changed()
		b.server.options.Session.View(func(s *inspect.Session) { last = s.Last() })
		if last < seq {
			<-changed
		}
	}
}

func patch(text string) string {
	return `"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`
}

const widgetReview = `{"kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","kind":{"group":"x.io","kind":"Widget"},"namespace":"a","name":"w"}}`

func TestAReplayIsComparedWithTheRecordedAnswer(t *testing.T) {
	const add = `[{"op":"add","path":"/spec/size","value":2}]`
	for name, c := range map[string]struct {
		before, now string
		differs     []string
	}{
		"the same answer":     {`"allowed":true,` + patch(add), `"allowed":true,` + patch(`[{"value":2,"path":"/spec/size","op":"add"}]`), nil},
		"denied now":          {`"allowed":true`, `"allowed":false,"status":{"code":403,"message":"too large"}`, []string{"allowed", "status.code", "status.message"}},
		"another message":     {`"allowed":false,"status":{"message":"a"}`, `"allowed":false,"status":{"message":"b"}`, []string{"status.message"}},
		"another patch":       {`"allowed":true,` + patch(add), `"allowed":true,` + patch(`[{"op":"add","path":"/spec/size","value":3}]`), []string{"patch[0].value"}},
		"another warning":     {`"allowed":true`, `"allowed":true,"warnings":["old"]`, []string{"warnings"}},
		"a converted version": {`"result":{"status":"Success"},"convertedObjects":[{"spec":{"size":1}}]`, `"result":{"status":"Success"},"convertedObjects":[{"spec":{"size":2}}]`, []string{"convertedObjects[0].spec.size"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			seq := b.record(widgetReview, answered(c.before))
			received := b.manager(c.now)
			got, err := b.client.Replay(t.Context(), seq)
			if err != nil {
				t.Fatal(err)
			}
			if sent := <-received; sent != widgetReview {
				t.Errorf("the manager got %s", sent)
			}
			var differs []string
			for _, d := range got.Replay.Differences {
				differs = append(differs, d.Path)
			}
			if fmt.Sprint(differs) != fmt.Sprint(c.differs) || got.Replay.Of != seq || !got.Replay.Known || got.Seq != seq+1 {
				t.Errorf("%+v, %+v, want the differences %v", got, got.Replay, c.differs)
			}
			// The recording marks it, and lists it with the same answer.
			b.wait(got.Seq)
			q, _ := inspect.Named("admissions")
			answer, err := b.client.Ask(t.Context(), q, inspect.Query{Object: "widget/a/w", After: seq})
			if err != nil {
				t.Fatal(err)
			}
			listed, _ := json.Marshal((*answer.(*[]inspect.Admission))[0])
			if sent, _ := json.Marshal(got); string(listed) != string(sent) {
				t.Errorf("recorded %s, and answered %s", listed, sent)
			}
			q, _ = inspect.Named("overview")
			if answer, err := b.client.Ask(t.Context(), q, inspect.Query{}); err != nil || answer.(*inspect.Overview).Admissions != 1 {
				t.Errorf("the replay counts as a call by the API server: %+v, %v", answer, err)
			}
		})
	}
}

func TestAReplaySendsTheSecretThatTheRecordingHides(t *testing.T) {
	const secret = `{"kind":"AdmissionReview","request":{"uid":"u","resource":{"group":"","version":"v1","resource":"secrets"},"kind":{"group":"","kind":"Secret"},"namespace":"a","name":"s","object":{"kind":"Secret","stringData":{"p":"open-sesame-1234"}}}}`
	b := newBench(t)
	seq := b.record(secret, answered(`"allowed":true`))
	received := b.manager(`"allowed":false,"status":{"message":"open-sesame-1234 and hidden-value"}`)
	response, body := request(t, b.server, fmt.Sprint("/api/v1/replay?seq=", seq), func(r *http.Request) { r.Method = http.MethodPost })
	if sent := <-received; sent != secret {
		t.Errorf("the manager got %s", sent)
	}
	if response.StatusCode != 200 || strings.Contains(body, "open-sesame") || strings.Contains(body, "hidden-value") {
		t.Errorf("%s: %s", response.Status, body)
	}
}

func TestAReplayThatCannotBeSentIsAnErrorWithTheReason(t *testing.T) {
	b := newBench(t)
	seq := b.record(widgetReview, answered(`"allowed":true`))
	b.listener.Refuse("the manager ended with exit code 3")
	if _, err := b.client.Replay(t.Context(), seq); err == nil || err.Error() != "the call was not sent again: the manager ended with exit code 3" {
		t.Errorf("without a manager: %v", err)
	}
	if n := len(b.log.Entries()); n != 1 {
		t.Errorf("a review that was not sent is recorded: %d entries", n)
	}
	line := b.log.Record(trace.Entry{Instance: "controller-1", Line: &trace.Line{Text: "hello"}})
	b.wait(line.Seq)
	post := func(change func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			if r.Method = http.MethodPost; change != nil {
				change(r)
			}
		}
	}
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		code   int
	}{
		"a line":            {"/api/v1/replay?seq=2", post(nil), 404},
		"an unknown entry":  {"/api/v1/replay?seq=9", post(nil), 404},
		"no entry":          {"/api/v1/replay", post(nil), 400},
		"another parameter": {"/api/v1/replay?seq=1&limit=3", post(nil), 400},
		"no token":          {"/api/v1/replay?seq=1", post(func(r *http.Request) { r.Header.Del("Authorization") }), 401},
		"another origin":    {"/api/v1/replay?seq=1", post(func(r *http.Request) { r.Header.Set("Origin", "http://attacker.example") }), 403},
		"another name":      {"/api/v1/replay?seq=1", post(func(r *http.Request) { r.Host = "attacker.example" }), 403},
		"another method":    {"/api/v1/replay?seq=1", func(r *http.Request) { r.Method = http.MethodPut }, 405},
	} {
		if response, body := request(t, b.server, c.path, c.change); response.StatusCode != c.code {
			t.Errorf("%s: %s, %s", name, response.Status, body)
		}
	}
}

func TestASessionThatOnlyRecordsOffersNoReplay(t *testing.T) {
	for offered, o := range map[bool]Options{
		false: {}, true: {Replay: func(context.Context, int64, *trace.Review) (trace.Entry, error) {
			return trace.Entry{}, errors.New("unused")
		}},
	} {
		o.Session = inspect.Still(inspect.New(trace.Header{}, nil))
		s, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		if _, body := request(t, s, "/api/v1/replay", nil); body != fmt.Sprintf("{\"offered\":%t}\n", offered) {
			t.Errorf("%t: %s", offered, body)
		}
		if offered {
			continue
		}
		client, _ := NewClient(s.URL())
		if _, err := client.Replay(t.Context(), 1); err == nil || err.Error() != errNoReplay.Error() {
			t.Errorf("%v", err)
		}
	}
}
