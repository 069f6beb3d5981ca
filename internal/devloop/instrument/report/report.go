// Package report is the part of an instrumented controller-runtime that reports, to koboshi dev, why
// each reconcile happened. It becomes a file of the copy of controller-runtime, so it uses only
// what the versions of Go and client-go that old projects need already have.
//
//	event handler ──KoboshiAdded──▶ triggers of each item ─┐
//	controller ──KoboshiStarted, KoboshiEnded──────────────┴─▶ koboshi: one line of JSON each
//	client ──KoboshiHTTPClient──▶ requests name their reconcile in a header
//
// Without the variable that names koboshi's address, it does nothing.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	// KoboshiAddress is the environment variable that holds a token and the loopback address at
	// which koboshi listens: TOKEN@HOST:PORT. The token is the first line that it expects.
	KoboshiAddress = "KOBOSHI_RECONCILES"
	// KoboshiHeader is the header in which a request names the reconcile that made it.
	KoboshiHeader = "Koboshi-Reconcile"
	// koboshiMostTriggers limits the number of triggers that are kept for one item, and
	// koboshiPatience how long a reconcile waits for koboshi to read.
	koboshiMostTriggers = 20
	koboshiPatience     = time.Second
)

// KoboshiTrigger is a reason why an item was added to a queue.
type KoboshiTrigger struct {
	// Event is created, updated, deleted or generic for an event that a handler received,
	// requeued if the previous reconcile asked for it, or retried after an error.
	Event string `json:"event"`
	// Handler is the Go type of the handler. Type is the Go type of the event's object, or its
	// kind if the Go type is the same for all kinds.
	Handler         string `json:"handler,omitempty"`
	Type            string `json:"type,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// At is the time at which the item was added, and After the delay with which it was added. The
	// delay is negative if only the rate limiter of the queue knows it.
	At    time.Time     `json:"at"`
	After time.Duration `json:"after,omitempty"`
	// Reconcile is the ID of the reconcile that requeued the item, or that failed.
	Reconcile string `json:"reconcile,omitempty"`
}

// ready returns the time from which the queue hands out the item, or the zero time if it is not
// known.
func (t *KoboshiTrigger) ready() time.Time {
	if t.After < 0 {
		return time.Time{}
	}
	return t.At.Add(t.After)
}

// KoboshiReconcile is the start or the end of a reconcile.
type KoboshiReconcile struct {
	ID         string `json:"id"`
	What       string `json:"what"` // started or ended
	Controller string `json:"controller,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Triggers are the reasons for the reconcile, in the order in which they were added; Dropped
	// counts the oldest ones, which are left out.
	Triggers []KoboshiTrigger `json:"triggers,omitempty"`
	Dropped  int              `json:"dropped,omitempty"`
	// Waited is the time for which the queue could have handed out the item, or 0 if it is not
	// known. Length is the number of other items in the queue. Failures counts the errors in a row
	// before this attempt.
	Waited   time.Duration `json:"waited,omitempty"`
	Length   int           `json:"length"`
	Failures int           `json:"failures,omitempty"`
	Priority *int          `json:"priority,omitempty"`
	// RequeueAfter, Requeue and Error are what the reconciler returned.
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
	Requeue      bool          `json:"requeue,omitempty"`
	Error        string        `json:"error,omitempty"`
}

// koboshiQueue has the one method of a work queue that the reporter calls.
type koboshiQueue interface{ Len() int }

// koboshiItem is an item of one queue.
type koboshiItem struct{ queue, item any }

// koboshiPending is what the queue holds of an item, as the reporter knows it. As in a work queue,
// all delayed additions are one, which has the earliest of their times.
type koboshiPending struct {
	ready, delayed []KoboshiTrigger
	dropped        int
	failures       int
}

type koboshiReporter struct {
	mu      sync.Mutex
	out     net.Conn // nil if nobody listens
	pending map[koboshiItem]*koboshiPending
}

var koboshi = koboshiConnect(os.Getenv(KoboshiAddress))

func koboshiConnect(to string) *koboshiReporter {
	r := &koboshiReporter{pending: map[koboshiItem]*koboshiPending{}}
	at := strings.IndexByte(to, '@')
	if at < 0 {
		return r
	}
	var err error
	if r.out, err = net.DialTimeout("tcp", to[at+1:], koboshiPatience); err != nil {
		r.out = nil
		return r
	}
	_ = r.out.SetWriteDeadline(time.Now().Add(koboshiPatience))
	_, _ = r.out.Write([]byte(to[:at] + "\n")) // the next line shows whether it failed
	return r
}

// send writes one line. If koboshi does not read, the reporter falls silent, because it must not
// hold up the controller.
func (r *koboshiReporter) send(line KoboshiReconcile) {
	data, err := json.Marshal(line)
	if err == nil {
		_ = r.out.SetWriteDeadline(time.Now().Add(koboshiPatience))
		_, err = r.out.Write(append(data, '\n'))
	}
	if err != nil {
		_ = r.out.Close()
		r.out = nil
		r.pending = map[koboshiItem]*koboshiPending{}
	}
}

func (r *koboshiReporter) of(key koboshiItem) *koboshiPending {
	p := r.pending[key]
	if p == nil {
		p = &koboshiPending{}
		r.pending[key] = p
	}
	return p
}

// KoboshiEvent describes an event that a handler is about to receive.
func KoboshiEvent(event string, handler, object any) KoboshiTrigger {
	t := KoboshiTrigger{Event: event, Handler: koboshiType(handler), Type: koboshiType(object)}
	if meta, ok := object.(interface {
		GetName() string
		GetNamespace() string
		GetResourceVersion() string
	}); ok && !koboshiNil(object) {
		t.Namespace, t.Name, t.ResourceVersion = meta.GetNamespace(), meta.GetName(), meta.GetResourceVersion()
		uid := reflect.ValueOf(object).MethodByName("GetUID")
		if uid.IsValid() {
			t.UID = uid.Call(nil)[0].String()
		}
	}
	// The kind of an object from a typed client is empty.
	if k, ok := object.(interface{ GetObjectKind() schema.ObjectKind }); ok && !koboshiNil(object) {
		if kind := k.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			t.Type = kind
		}
	}
	return t
}

func koboshiNil(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// koboshiType returns the name of a type without its package and its type parameters.
func koboshiType(v any) string {
	name := strings.TrimLeft(fmt.Sprintf("%T", v), "*")
	if at := strings.IndexByte(name, '['); at > 0 {
		name = name[:at]
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// KoboshiAdded notes why an item is added to a queue. A negative delay stands for one that only the
// rate limiter of the queue knows.
func KoboshiAdded(queue, item any, t KoboshiTrigger, after time.Duration) {
	koboshi.mu.Lock()
	defer koboshi.mu.Unlock()
	if koboshi.out == nil {
		return
	}
	t.At, t.After = time.Now(), after
	koboshi.of(koboshiItem{queue, item}).add(t)
}

func (p *koboshiPending) add(t KoboshiTrigger) {
	to := &p.ready
	if t.After != 0 {
		to = &p.delayed
	}
	if *to = append(*to, t); len(*to) > koboshiMostTriggers {
		*to = (*to)[1:]
		p.dropped++
	}
}

// koboshiKey is the key of the reconcile in a context.
type koboshiKey struct{}

// koboshiRun is a reconcile in progress.
type koboshiRun struct {
	id  string
	key koboshiItem
}

// KoboshiStarted reports the start of a reconcile, and returns a context that names it.
func KoboshiStarted(ctx context.Context, controller string, queue koboshiQueue, item any, id string, priority ...int) context.Context {
	run := koboshiRun{id, koboshiItem{queue, item}}
	length := queue.Len() // it may wait for a lock of the queue
	koboshi.mu.Lock()
	defer koboshi.mu.Unlock()
	if koboshi.out == nil {
		return ctx
	}
	line := KoboshiReconcile{ID: id, What: "started", Controller: controller, Length: length}
	line.Namespace, line.Name = koboshiName(item)
	if len(priority) > 0 {
		line.Priority = &priority[0]
	}
	if p := koboshi.pending[run.key]; p != nil {
		now := time.Now()
		line.Triggers, line.Dropped, line.Failures = p.due(now), p.dropped, p.failures
		line.Waited = koboshiWaited(line.Triggers, now)
		p.ready, p.dropped = nil, 0
		if koboshiType(queue) == "priorityqueue" { // it holds each item once, even one with a delay
			p.delayed = nil
		}
		if len(p.delayed)+p.failures == 0 {
			delete(koboshi.pending, run.key)
		}
	}
	koboshi.send(line)
	if koboshi.out == nil {
		return ctx
	}
	return context.WithValue(ctx, koboshiKey{}, run)
}

// due returns the triggers that can have caused a reconcile that starts now, and removes the delayed
// ones if their time has come. If a delay is not known, it is taken to be over if nothing else
// explains the reconcile.
func (p *koboshiPending) due(now time.Time) []KoboshiTrigger {
	over, unknown := false, false
	for i := range p.delayed {
		at := p.delayed[i].ready()
		unknown = unknown || at.IsZero()
		over = over || !at.IsZero() && !at.After(now)
	}
	if !over && (!unknown || len(p.ready) > 0) {
		return p.ready
	}
	var due []KoboshiTrigger
	for _, t := range p.delayed {
		if at := t.ready(); at.IsZero() && !over || !at.IsZero() && !at.After(now) {
			due = append(due, t)
		}
	}
	p.delayed = nil
	due = append(due, p.ready...)
	sort.SliceStable(due, func(i, j int) bool { return due[i].At.Before(due[j].At) })
	return due
}

// koboshiWaited returns the time since the first trigger was ready.
func koboshiWaited(due []KoboshiTrigger, now time.Time) (waited time.Duration) {
	for i := range due {
		if at := due[i].ready(); !at.IsZero() && now.Sub(at) > waited {
			waited = now.Sub(at)
		}
	}
	return waited
}

// koboshiName returns the object that an item names: a reconcile.Request, or a type of the
// project.
func koboshiName(item any) (namespace, name string) {
	v := reflect.Indirect(reflect.ValueOf(item))
	if v.Kind() == reflect.Struct {
		ns, n := v.FieldByName("Namespace"), v.FieldByName("Name")
		if n.IsValid() && n.Kind() == reflect.String {
			if ns.IsValid() && ns.Kind() == reflect.String {
				namespace = ns.String()
			}
			return namespace, n.String()
		}
	}
	return "", fmt.Sprint(item)
}

// koboshiMostError limits the length of an error, in bytes.
const koboshiMostError = 8 << 10

// KoboshiEnded reports the end of a reconcile. result is a reconcile.Result. A terminal error is not
// retried.
func KoboshiEnded(ctx context.Context, result any, err error, terminal bool) {
	run, ok := ctx.Value(koboshiKey{}).(koboshiRun)
	if !ok {
		return
	}
	line := KoboshiReconcile{ID: run.id, What: "ended"}
	again := KoboshiTrigger{Event: "requeued", At: time.Now(), Reconcile: run.id}
	v := reflect.ValueOf(result)
	if after := v.FieldByName("RequeueAfter"); after.IsValid() {
		again.After = time.Duration(after.Int())
	}
	requeue := v.FieldByName("Requeue")
	switch {
	case err != nil: // controller-runtime then ignores the result
		line.Error = err.Error()
		if len(line.Error) > koboshiMostError {
			line.Error = line.Error[:koboshiMostError]
		}
		again.Event, again.After = "retried", -1
	case again.After > 0:
		line.RequeueAfter = again.After
	case requeue.IsValid() && requeue.Bool():
		line.Requeue, again.After = true, -1
	}
	koboshi.mu.Lock()
	defer koboshi.mu.Unlock()
	if koboshi.out == nil {
		return
	}
	if err != nil {
		koboshi.of(run.key).failures++
	} else if p := koboshi.pending[run.key]; p != nil {
		p.failures = 0
	}
	if again.After != 0 && !terminal {
		koboshi.of(run.key).add(again)
	}
	koboshi.send(line)
}

// KoboshiHTTPClient is rest.HTTPClientFor for clients whose requests name their reconcile.
func KoboshiHTTPClient(config *rest.Config) (*http.Client, error) {
	if os.Getenv(KoboshiAddress) != "" {
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return koboshiTransport{next} })
	}
	return rest.HTTPClientFor(config)
}

type koboshiTransport struct{ next http.RoundTripper }

func (t koboshiTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if run, ok := r.Context().Value(koboshiKey{}).(koboshiRun); ok {
		r = r.Clone(r.Context())
		r.Header.Set(KoboshiHeader, run.id)
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (t koboshiTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
