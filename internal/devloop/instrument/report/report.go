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
	// At is the time at which the item was added, and After the delay with which it was added.
	At    time.Time     `json:"at"`
	After time.Duration `json:"after,omitempty"`
}

// KoboshiReconcile is the start or the end of a reconcile.
type KoboshiReconcile struct {
	ID         string `json:"id"`
	What       string `json:"what"` // started or ended
	Controller string `json:"controller,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Triggers are the reasons for the reconcile; Dropped counts the oldest ones, which are left
	// out.
	Triggers []KoboshiTrigger `json:"triggers,omitempty"`
	Dropped  int              `json:"dropped,omitempty"`
	// Length is the number of other items that waited in the queue. Retries counts the failed
	// attempts before this one.
	Length   int  `json:"length"`
	Retries  int  `json:"retries,omitempty"`
	Priority *int `json:"priority,omitempty"`
	// RequeueAfter, Requeue and Error are what the reconciler returned.
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
	Requeue      bool          `json:"requeue,omitempty"`
	Error        string        `json:"error,omitempty"`
}

// koboshiQueue is what the reporter uses of a work queue.
type koboshiQueue interface{ Len() int }

// koboshiItem is an item of one queue.
type koboshiItem struct{ queue, item any }

// koboshiPending holds the triggers of an item that wait for its next reconcile.
type koboshiPending struct {
	triggers []KoboshiTrigger
	dropped  int
	again    *KoboshiTrigger // the previous reconcile's wish to run again
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
	if r.out == nil {
		return
	}
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
	return !value.IsValid() || value.Kind() == reflect.Ptr && value.IsNil()
}

// koboshiType returns the name of a type without its package and its type parameters.
func koboshiType(v any) string {
	name := strings.TrimLeft(fmt.Sprintf("%T", v), "*")
	if at := strings.IndexByte(name, '['); at > 0 {
		name = name[:at]
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// KoboshiAdded notes why an item is added to a queue.
func KoboshiAdded(queue, item any, t KoboshiTrigger, after time.Duration) {
	koboshi.mu.Lock()
	defer koboshi.mu.Unlock()
	if koboshi.out == nil {
		return
	}
	t.At, t.After = time.Now(), after
	p := koboshi.of(koboshiItem{queue, item})
	if p.triggers = append(p.triggers, t); len(p.triggers) > koboshiMostTriggers {
		p.triggers = p.triggers[1:]
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
func KoboshiStarted(ctx context.Context, controller string, queue koboshiQueue, retries int, item any, id string, priority ...int) context.Context {
	run := koboshiRun{id, koboshiItem{queue, item}}
	koboshi.mu.Lock()
	defer koboshi.mu.Unlock()
	if koboshi.out == nil {
		return ctx
	}
	line := KoboshiReconcile{ID: id, What: "started", Controller: controller, Length: queue.Len(), Retries: retries}
	line.Namespace, line.Name = koboshiName(item)
	if len(priority) > 0 {
		line.Priority = &priority[0]
	}
	if p := koboshi.pending[run.key]; p != nil {
		line.Triggers, line.Dropped = p.due(time.Now())
		if koboshiType(queue) == "priorityqueue" { // it holds each item once, even one with a delay
			p.triggers, p.again = nil, nil
		}
		if len(p.triggers) == 0 && p.again == nil {
			delete(koboshi.pending, run.key)
		}
	}
	koboshi.send(line)
	return context.WithValue(ctx, koboshiKey{}, run)
}

// due removes and returns the triggers that can have caused a reconcile that starts now. When a
// retry is due is known only to the queue, so it is taken for the cause if there is no other.
func (p *koboshiPending) due(now time.Time) (due []KoboshiTrigger, dropped int) {
	var later []KoboshiTrigger
	for _, t := range p.triggers {
		if now.Before(t.At.Add(t.After)) {
			later = append(later, t)
		} else {
			due = append(due, t)
		}
	}
	if again := p.again; again != nil && (len(due) == 0 || again.After > 0 && !now.Before(again.At.Add(again.After))) {
		due = append(due, *again)
		p.again = nil
	}
	dropped = p.dropped
	p.triggers, p.dropped = later, 0
	return due, dropped
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

// KoboshiEnded reports the end of a reconcile. result is a reconcile.Result.
func KoboshiEnded(ctx context.Context, result any, err error) {
	run, ok := ctx.Value(koboshiKey{}).(koboshiRun)
	if !ok {
		return
	}
	line := KoboshiReconcile{ID: run.id, What: "ended"}
	v := reflect.ValueOf(result)
	if after := v.FieldByName("RequeueAfter"); after.IsValid() {
		line.RequeueAfter = time.Duration(after.Int())
	}
	if again := v.FieldByName("Requeue"); again.IsValid() {
		line.Requeue = again.Bool()
	}
	koboshi.mu.Lock()
	defer koboshi.mu.Unlock()
	if koboshi.out == nil {
		return
	}
	now := time.Now()
	switch {
	case err != nil:
		line.Error = err.Error()
		line.RequeueAfter, line.Requeue = 0, false // controller-runtime ignores them
		if !strings.HasPrefix(line.Error, "terminal error: ") {
			koboshi.of(run.key).again = &KoboshiTrigger{Event: "retried", At: now}
		}
	case line.RequeueAfter > 0:
		koboshi.of(run.key).again = &KoboshiTrigger{Event: "requeued", At: now, After: line.RequeueAfter}
	case line.Requeue:
		koboshi.of(run.key).again = &KoboshiTrigger{Event: "requeued", At: now}
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
