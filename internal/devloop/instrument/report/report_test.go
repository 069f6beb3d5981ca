package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

type request struct{ Namespace, Name string }

// result has the fields of reconcile.Result.
type result struct {
	Requeue      bool
	RequeueAfter time.Duration
}

// queue and priorityqueue stand for the queues of controller-runtime, whose names matter.
type queue struct{ n int }

func (q *queue) Len() int { return q.n }

type priorityqueue struct{}

func (*priorityqueue) Len() int { return 0 }

// reports makes the package report to the test, and returns a function that reads the
// next report.
func reports(t *testing.T) func() KoboshiReconcile {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before := koboshi
	koboshi = koboshiConnect("the-token@" + l.Addr().String())
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if koboshi.out != nil {
			_ = koboshi.out.Close()
		}
		koboshi = before
		_, _ = c.Close(), l.Close()
	})
	lines := bufio.NewReader(c)
	if token, err := lines.ReadString('\n'); err != nil || token != "the-token\n" {
		t.Fatalf("the first line is %q, %v", token, err)
	}
	return func() (r KoboshiReconcile) {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// events returns the events of the triggers.
func events(r KoboshiReconcile) (all []string) {
	for _, t := range r.Triggers {
		all = append(all, t.Event)
	}
	return all
}

func TestEachReconcileIsReportedWithWhatAddedItToTheQueue(t *testing.T) {
	next := reports(t)
	q, item := &queue{n: 3}, request{"default", "a"}
	add := func(event string, after time.Duration) {
		KoboshiAdded(q, item, KoboshiTrigger{Event: event}, after)
	}
	run := func(result any, err error, want ...string) {
		t.Helper()
		ctx := KoboshiStarted(context.Background(), "widget", q, 2, item, "id", 7)
		r := next()
		if got := events(r); len(got) != len(want) {
			t.Errorf("the triggers are %q, want %q", got, want)
		} else {
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("the triggers are %q, want %q", got, want)
				}
			}
		}
		if r.ID != "id" || r.Controller != "widget" || r.Namespace != "default" || r.Name != "a" || r.Length != 3 || r.Retries != 2 || *r.Priority != 7 {
			t.Errorf("the report is %+v", r)
		}
		KoboshiEnded(ctx, result, err)
		if end := next(); end.What != "ended" || (end.Error != "") != (err != nil) {
			t.Errorf("the end is %+v", end)
		}
	}
	add("created", 0)
	add("updated", 0)
	add("updated", time.Hour) // not yet due
	KoboshiAdded(q, request{"default", "b"}, KoboshiTrigger{Event: "deleted"}, 0)
	run(result{}, errors.New("broken"), "created", "updated")
	run(result{RequeueAfter: time.Nanosecond}, nil, "retried")
	add("generic", 0)
	run(result{RequeueAfter: time.Hour}, nil, "generic", "requeued")
	add("updated", 0)
	run(result{}, errors.New("terminal error: no"), "updated") // the delayed reconcile is still to come
	run(result{Requeue: true}, nil, "requeued")
	run(result{}, nil, "requeued")
	run(result{}, nil)
}

func TestAPriorityQueueHoldsADelayedItemOnce(t *testing.T) {
	next := reports(t)
	q, item := &priorityqueue{}, request{"default", "a"}
	ctx := KoboshiStarted(context.Background(), "widget", q, 0, item, "1")
	next()
	KoboshiEnded(ctx, result{RequeueAfter: time.Hour}, nil)
	next()
	KoboshiAdded(q, item, KoboshiTrigger{Event: "updated"}, 0)
	KoboshiStarted(context.Background(), "widget", q, 0, item, "2")
	if got := events(next()); len(got) != 1 || got[0] != "updated" {
		t.Errorf("the triggers are %q", got)
	}
	KoboshiStarted(context.Background(), "widget", q, 0, item, "3")
	if got := events(next()); len(got) != 0 {
		t.Errorf("the triggers are %q, but the event replaced the delay", got)
	}
}

func TestTheOldestOfManyTriggersAreDropped(t *testing.T) {
	next := reports(t)
	q, item := &queue{}, request{"default", "a"}
	for range koboshiMostTriggers + 5 {
		KoboshiAdded(q, item, KoboshiTrigger{Event: "updated"}, 0)
	}
	KoboshiStarted(context.Background(), "widget", q, 0, item, "1")
	if r := next(); len(r.Triggers) != koboshiMostTriggers || r.Dropped != 5 {
		t.Errorf("%d triggers, %d dropped", len(r.Triggers), r.Dropped)
	}
}

func TestARequestNamesItsReconcile(t *testing.T) {
	t.Setenv(KoboshiAddress, "set")
	next := reports(t)
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get(KoboshiHeader) }))
	defer server.Close()
	client, err := KoboshiHTTPClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := KoboshiStarted(context.Background(), "widget", &queue{}, 0, request{"default", "a"}, "the-id")
	next()
	for _, of := range []struct {
		ctx  context.Context
		want string
	}{{ctx, "the-id"}, {context.Background(), ""}} {
		r, err := http.NewRequestWithContext(of.ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got != of.want {
			t.Errorf("the request names %q, want %q", got, of.want)
		}
	}
}

func TestWithoutAListenerNothingIsKept(t *testing.T) {
	q, item := &queue{}, request{"default", "a"}
	KoboshiAdded(q, item, KoboshiTrigger{Event: "updated"}, 0)
	ctx := KoboshiStarted(context.Background(), "widget", q, 0, item, "1")
	KoboshiEnded(ctx, result{Requeue: true}, nil)
	if len(koboshi.pending) != 0 || ctx != context.Background() {
		t.Errorf("%d items are kept", len(koboshi.pending))
	}
}

func TestAListenerThatIsGoneDoesNotStopTheController(t *testing.T) {
	reports(t)
	_ = koboshi.out.Close()
	KoboshiStarted(context.Background(), "widget", &queue{}, 0, request{"default", "a"}, "1")
	if koboshi.out != nil {
		t.Error("the reporter goes on")
	}
}
