package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
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

// bench drives the reporter as controller-runtime does.
type bench struct {
	*testing.T
	next  func() KoboshiReconcile
	queue koboshiQueue
	item  request
	n     int
}

func (b *bench) add(event string, after time.Duration) {
	KoboshiAdded(b.queue, b.item, KoboshiTrigger{Event: event}, after)
}

// later makes the delays of the item end.
func (b *bench) later() {
	p := koboshi.of(koboshiItem{b.queue, b.item})
	for i := range p.delayed {
		p.delayed[i].At = p.delayed[i].At.Add(-2 * time.Hour)
	}
}

// run runs a reconcile, which returns result and err, and compares the triggers.
func (b *bench) run(r any, err error, want ...string) KoboshiReconcile {
	b.Helper()
	b.n++
	ctx := KoboshiStarted(context.Background(), "widget", b.queue, b.item, strconv.Itoa(b.n), 7)
	began := b.next()
	var got []string
	for _, t := range began.Triggers {
		text := t.Event
		if t.Reconcile != "" {
			text += " by " + t.Reconcile
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		b.Errorf("reconcile %d: the triggers are %q, want %q", b.n, got, want)
	}
	KoboshiEnded(ctx, r, err, err != nil && strings.HasPrefix(err.Error(), "terminal"))
	if end := b.next(); end.What != "ended" || (end.Error != "") != (err != nil) {
		b.Errorf("the end is %+v", end)
	}
	return began
}

func TestEachReconcileIsReportedWithWhatAddedItToTheQueue(t *testing.T) {
	b := &bench{T: t, next: reports(t), queue: &queue{n: 3}, item: request{"default", "a"}}
	b.add("created", 0)
	b.add("updated", 0)
	KoboshiAdded(b.queue, request{"default", "b"}, KoboshiTrigger{Event: "deleted"}, 0)
	r := b.run(result{}, errors.New("broken"), "created", "updated")
	if r.Controller != "widget" || r.Namespace != "default" || r.Name != "a" || r.Length != 3 || r.Failures != 0 || *r.Priority != 7 || r.Waited <= 0 {
		t.Errorf("the report is %+v", r)
	}
	b.add("updated", 0)
	b.run(result{}, errors.New("terminal error"), "updated") // the retry is still to come
	if r := b.run(result{}, nil, "retried by 1"); r.Failures != 2 || r.Waited != 0 {
		t.Errorf("after 2 failures, the report is %+v", r)
	}
	if r := b.run(result{Requeue: true}, nil); r.Failures != 0 {
		t.Errorf("after a success, %d failures are reported", r.Failures)
	}
	b.run(result{}, nil, "requeued by 4")
	b.run(result{}, nil)
	if n := len(koboshi.pending); n != 1 {
		t.Errorf("%d items are kept, want only b", n)
	}
}

func TestAllDelaysOfAnItemAreOneThatHasTheEarliestTime(t *testing.T) {
	b := &bench{T: t, next: reports(t), queue: &queue{}, item: request{"default", "a"}}
	b.add("created", 0)
	b.run(result{RequeueAfter: time.Hour}, nil, "created")
	b.add("updated", 0)
	b.run(result{RequeueAfter: 3 * time.Hour}, nil, "updated")
	b.later() // the first delay is over, the second one is not
	b.run(result{}, nil, "requeued by 1")
	b.later()
	b.run(result{}, nil)
	b.add("updated", time.Hour) // a handler that waits for more events
	b.later()
	b.add("deleted", time.Hour)
	b.run(result{}, nil, "updated")
	b.run(result{}, nil)
}

func TestAPriorityQueueHoldsADelayedItemOnce(t *testing.T) {
	b := &bench{T: t, next: reports(t), queue: &priorityqueue{}, item: request{"default", "a"}}
	b.run(result{RequeueAfter: time.Hour}, nil)
	b.add("updated", 0)
	b.run(result{}, nil, "updated")
	b.run(result{}, nil)
}

func TestTheOldestOfManyTriggersAreDropped(t *testing.T) {
	next := reports(t)
	q, item := &queue{}, request{"default", "a"}
	for range koboshiMostTriggers + 5 {
		KoboshiAdded(q, item, KoboshiTrigger{Event: "updated"}, 0)
	}
	KoboshiStarted(context.Background(), "widget", q, item, "1")
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
	ctx := KoboshiStarted(context.Background(), "widget", &queue{}, request{"default", "a"}, "the-id")
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
	ctx := KoboshiStarted(context.Background(), "widget", q, item, "1")
	KoboshiEnded(ctx, result{Requeue: true}, nil, false)
	if len(koboshi.pending) != 0 || ctx != context.Background() {
		t.Errorf("%d items are kept", len(koboshi.pending))
	}
}

func TestAListenerThatIsGoneDoesNotStopTheController(t *testing.T) {
	reports(t)
	_ = koboshi.out.Close()
	KoboshiStarted(context.Background(), "widget", &queue{}, request{"default", "a"}, "1")
	if koboshi.out != nil {
		t.Error("the reporter goes on")
	}
}
