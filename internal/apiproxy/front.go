package apiproxy

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/freeport"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// ReconcileHeader is the header in which an instrumented manager names the reconcile that makes
// the request. It is recorded, but not forwarded.
const ReconcileHeader = "Koboshi-Reconcile"

// front is the common part of Proxy and Endpoint: a server, transports, a gate and
// counters.
type front struct {
	log       *trace.Log
	decider   Decider
	instance  string
	endpoint  string
	transport http.RoundTripper
	// upgrades speaks HTTP/1.1 only, since HTTP/2 has no upgrades.
	upgrades http.RoundTripper
	gate     *gate
	changed  *broadcast.Signal

	ctx      context.Context
	cancel   context.CancelFunc
	handlers sync.WaitGroup
	serving  sync.Mutex
	server   *http.Server
	make     func() *http.Server // makes the next server, see listen
	port     int
	closed   *freeport.Closed // nil unless the client is disconnected
	closing  sync.Once
	idle     func()

	calls    atomic.Int64
	inFlight atomic.Int64
	hanging  atomic.Int64
	requests atomic.Int64
	writes   atomic.Int64
	first    atomic.Int64 // nanoseconds since 1970
	firstUse atomic.Int64 // likewise, of the first request for a resource
	last     atomic.Int64 // nanoseconds since 1970
	electing atomic.Bool

	reading sync.Mutex
	reads   map[string]time.Time // the last time at which each read arrived
	records map[string]bool      // the known records of elections
	again   time.Time
}

func newFront(ctx context.Context, l *trace.Log, d Decider, instance string) *front {
	f := &front{log: l, decider: d, instance: instance, changed: &broadcast.Signal{}, reads: map[string]time.Time{}, records: map[string]bool{}}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.gate = newGate(f.changed.Fire)
	return f
}

// Changed returns a channel that is closed at the next change of Activity. Call Changed before
// Activity so that no change is missed.
func (f *front) Changed() <-chan struct{} { return f.changed.Next() }

// serve starts serving on l, and stops when the context ends. settings makes a server, in which serve
// sets only the fields that all servers have in common.
func (f *front) serve(l net.Listener, settings func() *http.Server, handle http.HandlerFunc) {
	f.make = func() *http.Server {
		s := settings()
		s.BaseContext = func(net.Listener) context.Context { return f.ctx }
		s.ErrorLog = log.New(io.Discard, "", 0)
		s.ReadHeaderTimeout = 30 * time.Second
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.handlers.Add(1)
			defer f.handlers.Done()
			handle(w, r)
		})
		return s
	}
	if address, ok := l.Addr().(*net.TCPAddr); ok {
		f.port = address.Port
	}
	f.listen(l)
	context.AfterFunc(f.ctx, f.close)
}

// listen serves on l with a new server, because a server that was closed cannot be used again.
func (f *front) listen(l net.Listener) {
	f.serving.Lock()
	defer f.serving.Unlock()
	if f.ctx.Err() != nil {
		_ = l.Close()
		return
	}
	s := f.make()
	f.server = s
	f.handlers.Add(1)
	go func() {
		defer f.handlers.Done()
		if s.TLSConfig != nil {
			_ = s.ServeTLS(l, "", "") // returns when the listener is closed
			return
		}
		_ = s.Serve(l)
	}()
}

// shut breaks all connections, and refuses new ones.
func (f *front) shut() {
	f.serving.Lock()
	defer f.serving.Unlock()
	_ = f.server.Close()
}

// release gives up the port of a server that was shut.
func (f *front) release() {
	f.serving.Lock()
	defer f.serving.Unlock()
	if f.closed != nil {
		f.closed.Release()
		f.closed = nil
	}
}

func (f *front) close() {
	f.closing.Do(func() {
		f.cancel()
		f.shut()
		f.release()
		f.idle()
	})
}

// Stop breaks all connections and waits until nothing more is recorded. The functions of
// an Action must not call Stop, because Stop waits for them.
func (f *front) Stop() {
	f.close()
	f.handlers.Wait()
}

// begin counts a request and starts its record.
func (f *front) begin(r *http.Request, a asked) *trace.Call {
	if f.requests.Add(1) == 1 {
		f.first.Store(time.Now().UnixNano())
	}
	if a.target.Resource != "" || f.endpoint != "" {
		f.firstUse.CompareAndSwap(0, time.Now().UnixNano())
	}
	if request.IsLease(a.target) {
		f.electing.Store(true)
	} else if f.mayWrite(a, r.Method) {
		f.writes.Add(1)
	}
	if !a.endless() {
		f.inFlight.Add(1)
	}
	if a.verb == "get" || a.verb == "list" {
		f.read(r, a)
	}
	f.touch()
	// Only Koboshi knows this header.
	reconcile := r.Header.Get(ReconcileHeader)
	r.Header.Del(ReconcileHeader)
	return &trace.Call{
		ID:          f.calls.Add(1),
		Verb:        a.verb,
		Endpoint:    f.endpoint,
		Target:      a.target,
		Path:        tracePath(r.URL),
		ContentType: r.Header.Get("Content-Type"),
		UserAgent:   r.UserAgent(),
		Reconcile:   reconcile,
		RequestSize: max(r.ContentLength, 0),
	}
}

// mayWrite reports whether a request seems to be a write. The body of such a request may still show
// that the request is bookkeeping.
func (f *front) mayWrite(a asked, method string) bool {
	if f.endpoint != "" {
		return method != http.MethodGet && method != http.MethodHead
	}
	return a.writes() && !request.IsBookkeepingTarget(a.target)
}

// weigh corrects the counters once the bodies of a request are known: an election record is a
// ConfigMap or an Endpoints object, and only the object's content shows that it is an election
// record.
func (f *front) weigh(call *trace.Call, a asked, method string) {
	if f.endpoint != "" {
		return
	}
	if f.mayWrite(a, method) && !request.IsWork(call) {
		f.writes.Add(-1)
	}
	if request.IsElectionRecord(call) {
		f.electing.Store(true)
		f.reading.Lock()
		defer f.reading.Unlock()
		f.records[recordOf(call.Target)] = true
	}
}

// recordOf identifies the object that holds the record of an election.
func recordOf(t trace.Target) string { return t.Resource + " " + t.Namespace + "/" + t.Name }

// read updates the time for AskedAgain when a client repeats a read. Reads of Leases and of
// election records are ignored, because clients poll these objects forever. Later pages of a list
// are also ignored, because they are different requests.
func (f *front) read(r *http.Request, a asked) {
	if a.target.Resource == "" || request.IsLease(a.target) || r.URL.Query().Get("continue") != "" {
		return
	}
	key := a.verb + " " + r.URL.Path
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.records[recordOf(a.target)] {
		return
	}
	if before := f.reads[key]; before.After(f.again) {
		f.again = before
	}
	f.reads[key] = time.Now()
}

func (f *front) end(a asked) {
	if !a.endless() {
		f.inFlight.Add(-1)
	}
	f.touch()
}

func (f *front) touch() {
	f.last.Store(time.Now().UnixNano())
	f.changed.Fire()
}

func (f *front) decide(c *trace.Call) Action {
	if f.decider == nil {
		return Action{}
	}
	return f.decider.Decide(c)
}

func (f *front) record(e trace.Entry) {
	if f.log == nil {
		return
	}
	e.Instance = f.instance
	f.log.Record(e)
}

func (f *front) activity() Activity {
	a := Activity{
		InFlight: int(max(f.inFlight.Load()-f.hanging.Load(), 0)),
		Waiting:  int(f.gate.waiting.Load()),
		Requests: f.requests.Load(),
		Writes:   f.writes.Load(),
		Electing: f.electing.Load(),
	}
	if first := f.first.Load(); first > 0 {
		a.FirstRequest = time.Unix(0, first)
	}
	if use := f.firstUse.Load(); use > 0 {
		a.FirstUse = time.Unix(0, use)
	}
	if last := f.last.Load(); last > 0 {
		a.LastRequest = time.Unix(0, last)
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	a.AskedAgain = f.again
	return a
}

// Activity describes what a proxy is doing, and counts what it has done.
type Activity struct {
	// InFlight counts the requests that have not been answered yet, except watches,
	// followed logs and other long-lived connections. Waiting counts requests of any
	// kind that are waiting at the gate.
	InFlight int
	Waiting  int
	// FirstRequest is the time of the first request. LastRequest is the last time that a
	// request arrived or was answered; events of watches do not count. Both are zero if
	// there were no requests.
	FirstRequest, LastRequest time.Time
	// FirstUse is the time of the first request for a resource, or zero. Before it, a client only asks
	// which APIs there are.
	FirstUse time.Time
	// AskedAgain is the arrival time of the latest read that has since been repeated, or
	// zero if no read has been repeated. Since AskedAgain, a polling client has completed a
	// full round of its reads.
	AskedAgain time.Time
	// Streams are the open watches.
	Streams []Stream
	// Requests counts all requests so far. Writes counts all writes so far, except
	// bookkeeping such as Events and Leases.
	Requests, Writes int64
	// Electing reports whether the client has ever sent a request for a Lease, or for the
	// record of an election.
	Electing bool
}

// Stream is an open watch.
type Stream struct {
	// Call is the ID of the watch's trace.Call.
	Call   int64
	Target trace.Target
	// ResourceVersion is the highest version sent to the client, including in bookmarks.
	// Before anything is sent, it is the version in the client's request.
	ResourceVersion string
	// Initial reports whether some of the initial events that the client asked for have
	// not been sent yet.
	Initial bool
	// Held counts the events and bookmarks that Hold is delaying.
	Held int
}
