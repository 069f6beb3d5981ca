package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func widget(rv int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":"u","resourceVersion":"%d"},"spec":{"size":%d,"password":"hidden-value"}}`, rv, rv))
}

var target = trace.Target{Group: "x.io", Version: "v1", Resource: "widgets"}

func record(log *trace.Log, rv int) {
	log.Record(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{Type: "MODIFIED", Target: target, Object: widget(rv)}})
}

// start serves a session that follows a log, and waits until it has n entries.
func start(t *testing.T, log *trace.Log, n int64) *Server {
	t.Helper()
	live := inspect.Follow(t.Context(), log, 0)
	for done := false; !done; {
		changed := live.Changed()
		live.View(func(s *inspect.Session) { done = s.Last() >= n })
		if !done {
			<-changed
		}
	}
	s, err := Start(t.Context(), Options{
		Session: live, Page: fstest.MapFS{"index.html": {Data: []byte("<title>page</title>")}},
		Scrub: func(text string) string { return strings.ReplaceAll(text, "hidden-value", "[secret value]") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func request(t *testing.T, s *Server, path string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if change != nil {
		change(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestOnlyRequestsWithTheTokenFromThisMachineGetData(t *testing.T) {
	log := trace.NewLog(time.Now())
	record(log, 1)
	s := start(t, log, 1)
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		code   int
	}{
		"with the token":      {"/api/v1/overview", nil, 200},
		"localhost":           {"/api/v1/overview", func(r *http.Request) { r.Host = "localhost:1" }, 200},
		"own origin":          {"/api/v1/overview", func(r *http.Request) { r.Header.Set("Origin", "http://"+s.address) }, 200},
		"the page":            {"/", func(r *http.Request) { r.Header.Del("Authorization") }, 200},
		"no token":            {"/api/v1/overview", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"no token for events": {"/api/v1/events", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"no token for export": {"/api/v1/export", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another token":       {"/api/v1/overview", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		"the token in a URL":  {"/api/v1/overview?token=" + s.token, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another name":        {"/api/v1/overview", func(r *http.Request) { r.Host = "attacker.example" }, 403},
		"another origin":      {"/api/v1/overview", func(r *http.Request) { r.Header.Set("Origin", "http://attacker.example") }, 403},
		"a write":             {"/api/v1/overview", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"another parameter":   {"/api/v1/objects?limits=3", nil, 400},
		"no number":           {"/api/v1/objects?limit=x", nil, 400},
		"an unknown object":   {"/api/v1/why?object=widget/x", nil, 404},
		"no object":           {"/api/v1/timeline", nil, 404},
	} {
		response, body := request(t, s, c.path, c.change)
		if response.StatusCode != c.code {
			t.Errorf("%s: %s, %s", name, response.Status, body)
		}
		for header := range response.Header {
			if strings.HasPrefix(header, "Access-Control-") {
				t.Errorf("%s: the answer has %s", name, header)
			}
		}
		if got := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: the policy is %q", name, got)
		}
		if strings.Contains(body, s.token) {
			t.Errorf("%s: the token is in %s", name, body)
		}
	}
	if host := strings.Split(s.address, ":")[0]; host != "127.0.0.1" {
		t.Errorf("it listens on %s", host)
	}
}

func TestEveryQuestionIsAnsweredWithItsTypeAndWithoutSecrets(t *testing.T) {
	log := trace.NewLog(time.Now())
	log.Subject = "manager hidden-value"
	record(log, 1)
	record(log, 2)
	log.Record(trace.Entry{Instance: "controller-1", Call: &trace.Call{Verb: "update", Target: trace.Target{Group: "x.io", Version: "v1", Resource: "widgets", Namespace: "a", Name: "w"}, Code: 200, ResourceVersion: "3", Request: widget(3), Response: widget(3)}})
	s := start(t, log, 3)
	client, err := NewClient(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range inspect.Questions {
		query := inspect.Query{Seq: 2}
		if q.About != inspect.None {
			query.Object = "widget/a/w"
		}
		if q.Name != "entry" {
			query.Seq = 0
		}
		answer, err := client.Ask(t.Context(), q, query)
		if err != nil {
			t.Errorf("%s: %v", q.Name, err)
			continue
		}
		data, err := json.Marshal(answer)
		if err != nil || len(data) < 3 && q.Name != "admissions" && q.Name != "managers" && q.Name != "conditions" {
			t.Errorf("%s: %s, %v", q.Name, data, err)
		}
		if strings.Contains(string(data), "hidden-value") {
			t.Errorf("%s: the secret is in %s", q.Name, data)
		}
	}
	var out bytes.Buffer
	if err := client.Export(t.Context(), &out); err != nil || strings.Contains(out.String(), "hidden-value") {
		t.Errorf("exported %s, %v", out.String(), err)
	}
	header, entries, err := trace.Read(&out)
	if err != nil || len(entries) != 3 || header.Subject != "manager [secret value]" {
		t.Errorf("read back %v, %d entries, %v", header, len(entries), err)
	}
}

func TestAClientLearnsOfChangesAndOfTheEnd(t *testing.T) {
	log := trace.NewLog(time.Now())
	record(log, 1)
	s := start(t, log, 1)
	client, err := NewClient(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	q, _ := inspect.Named("timeline")
	last, stop := int64(0), errors.New("enough")
	err = client.Changes(t.Context(), func() error {
		answer, err := client.Ask(t.Context(), q, inspect.Query{Object: "widget/w", After: last})
		if err != nil {
			return err
		}
		for _, item := range *answer.(*[]inspect.Item) {
			if item.Seq != last+1 {
				t.Errorf("entry %d after %d", item.Seq, last)
			}
			if last = item.Seq; last == 3 {
				return stop
			}
			record(log, int(last)+1)
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	asked := make(chan error)
	go func() {
		first := true
		asked <- client.Changes(context.Background(), func() error {
			if first {
				first = false
				go s.Stop()
			}
			return nil
		})
	}()
	if err := <-asked; err != nil {
		t.Errorf("the end of the session is an error: %v", err)
	}
}

func TestAnAddressWithoutATokenIsRefusedAndNeverQuotedWithOne(t *testing.T) {
	for _, address := range []string{"http://127.0.0.1:1/", "https://127.0.0.1:1/#token=abc", "http://example.com/#token=abc", "nonsense#token=abc"} {
		if _, err := NewClient(address); err == nil || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestEventsAreServerSentEvents(t *testing.T) {
	log := trace.NewLog(time.Now())
	record(log, 1)
	s := start(t, log, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/events", nil)
	r.Header.Set("Authorization", "Bearer "+s.token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	first, _ := lines.ReadString('\n')
	second, _ := lines.ReadString('\n')
	if first != "event: changed\n" || second != "data: {\"seq\":1}\n" || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q, %q, %v", first, second, response.Header)
	}
}
