// Package inspect explains what a controller did, and why. A Session is built from the entries
// of a trace, one after the other, and answers questions about objects:
//
//	trace.Log ──Add──▶ Session: indexes ──▶ Timeline, Why, Writes, Diff, Owners, … ──▶ page
//	trace file ─┘                                                                  ──▶ commands
//
// A Session does not decide how an answer is shown. Everything that it returns can be encoded
// as JSON, and has been redacted. What the trace does not state, but only suggests, is marked
// as inferred.
package inspect

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Session is the trace of a controller with indexes. It is not safe for concurrent use; see
// Live.
type Session struct {
	header  trace.Header
	entries []trace.Entry
	// scrub removes known secret values from lines.
	scrub func(string) string
	// clock returns the present time of a session that grows; it is nil for others.
	clock func() time.Duration

	kinds      kinds
	objects    map[Ref]*object
	sorted     []*object // all objects, or nil if there are new ones
	byUID      map[string]*object
	children   map[string][]*object // by the UID of the owner
	cache      map[version]map[string]any
	items      map[version][]byte // the items of lists, so that no list is decoded for each of them
	instances  []*Instance
	reconciles []*Reconcile
	groups     map[groupKey]*group
	alone      map[string][]delivery // events about objects without an owner, by instance
	// primary holds the kinds that controllers name in the log as theirs, and worked the kinds of
	// which they saw an event before they wrote.
	primary, worked map[string]bool
	writes          []*Write
	reviews         []int
	replays         int // reviews that a person sent again
	uses            map[Permission]*Use
	grants          *trace.Entry // the last one
	granted         []*grant     // by grants
	notices         map[noticeKey]*Notice
	byID            map[string]*Reconcile
	// controllers holds the kinds that named controllers reconcile, and early the calls that name
	// a reconcile whose start has not arrived.
	controllers map[string]Ref
	early       map[string][]func()
	errors      []int // lines
	last        time.Duration
}

// New returns an empty session. scrub removes known secret values from what instances print;
// nil removes nothing.
func New(header trace.Header, scrub func(string) string) *Session {
	if scrub == nil {
		scrub = func(text string) string { return text }
	}
	return &Session{
		header: header, scrub: scrub, kinds: newKinds(),
		objects: map[Ref]*object{}, byUID: map[string]*object{}, children: map[string][]*object{},
		cache: map[version]map[string]any{}, items: map[version][]byte{}, groups: map[groupKey]*group{}, alone: map[string][]delivery{}, primary: map[string]bool{}, worked: map[string]bool{},
		uses: map[Permission]*Use{}, notices: map[noticeKey]*Notice{}, byID: map[string]*Reconcile{},
		controllers: map[string]Ref{}, early: map[string][]func(){},
	}
}

// Of returns the session of a complete trace.
func Of(header trace.Header, entries []trace.Entry) *Session {
	s := New(header, nil)
	s.Add(entries...)
	return s
}

// Add appends entries. The numbers of the entries must increase.
func (s *Session) Add(entries ...trace.Entry) {
	for _, e := range entries {
		s.entries = append(s.entries, e)
		s.last = max(s.last, e.At)
		i := len(s.entries) - 1
		switch {
		case e.Call != nil:
			s.addCall(i, &e)
		case e.Watch != nil:
			s.addWatch(i, &e)
		case e.Commit != nil:
			s.addCommit(i, &e)
		case e.Review != nil:
			s.addReview(i, e.Review)
		case e.Line != nil:
			s.addLine(i, &e)
		case e.Process != nil:
			s.addProcess(&e)
		case e.Grants != nil:
			s.addGrants(&e)
		case e.Reconcile != nil:
			s.addReconcile(&e)
		}
	}
}

// Last returns the number of the last entry.
func (s *Session) Last() int64 {
	if len(s.entries) == 0 {
		return 0
	}
	return s.entries[len(s.entries)-1].Seq
}

// Entry returns the entry with a number. Its JSON is redacted.
func (s *Session) Entry(seq int64) (trace.Entry, bool) {
	i, found := slices.BinarySearchFunc(s.entries, seq, func(e trace.Entry, seq int64) int { return int(e.Seq - seq) })
	if !found {
		return trace.Entry{}, false
	}
	e := s.entries[i]
	if e.Line != nil {
		e.Line = &trace.Line{Stream: e.Line.Stream, Text: s.scrub(e.Line.Text), Cut: e.Line.Cut}
	}
	if e.Reconcile != nil {
		clean := *e.Reconcile
		clean.Error = s.scrub(clean.Error)
		e.Reconcile = &clean
	}
	return e, true
}

// Header returns the header of the trace.
func (s *Session) Header() trace.Header { return s.header }

func (s *Session) addCall(i int, e *trace.Entry) {
	c := e.Call
	s.use(e)
	if c.Endpoint != "" || c.Target.Resource == "" {
		return
	}
	if c.Verb == "list" {
		s.addList(i, e)
		return
	}
	if c.Verb == "deletecollection" {
		s.writes = append(s.writes, s.collectionDeleted(e))
		return
	}
	if c.Verb == "watch" || c.Target.Name == "" && c.Verb != "create" {
		return
	}
	body, err := c.ResponseObject()
	if err != nil {
		body = nil
	}
	o := s.object(s.refOfCall(c, body))
	o.items = append(o.items, i)
	if about := involved(body); about != nil && c.Verb == "create" {
		s.object(*about).items = append(s.object(*about).items, i)
	}
	w := s.addWrite(i, e, o, body)
	if w != nil {
		s.writes = append(s.writes, w)
	}
	s.assign(e, o, w)
}

// collectionDeleted returns the write that deletes all objects of a kind in a namespace. It
// belongs to no object.
func (s *Session) collectionDeleted(e *trace.Entry) *Write {
	c := e.Call
	return &Write{
		Seq: e.Seq, At: e.At, Took: c.Took, Instance: e.Instance, Verb: c.Verb, Manager: manager(c),
		Object: Ref{Group: c.Target.Group, Kind: s.kinds.kind(c.Target), Namespace: c.Target.Namespace},
		Code:   c.Code, Reason: c.Reason, Message: s.scrub(c.Message),
		Bookkeeping: request.IsBookkeeping(c), DryRun: request.IsDryRun(c), Failed: failed(c),
	}
}

// refOfCall returns the object of a call, and learns its kind from the answer.
func (s *Session) refOfCall(c *trace.Call, body map[string]any) Ref {
	kind, _ := body["kind"].(string)
	s.learn(c.Target, kind)
	ref := Ref{c.Target.Group, s.kinds.kind(c.Target), c.Target.Namespace, c.Target.Name}
	if name := metadata(body, "name"); ref.Name == "" && !partial(kind) {
		ref.Name = name
	}
	return ref
}

// addList records the items of a list as versions of objects, and as events that the
// controller saw.
func (s *Session) addList(i int, e *trace.Entry) {
	body, err := e.Call.ResponseObject()
	if err != nil || body == nil {
		return
	}
	items, _ := body["items"].([]any)
	kind, _ := body["kind"].(string)
	if n := len(kind) - len("List"); n > 0 && kind[n:] == "List" && kind != "PartialObjectMetadataList" {
		s.learn(e.Call.Target, kind[:n])
	}
	for n, item := range items {
		object, isObject := item.(map[string]any)
		if !isObject || metadata(object, "name") == "" {
			continue
		}
		t := e.Call.Target
		o := s.object(Ref{t.Group, s.kinds.kind(t), metadata(object, "namespace"), metadata(object, "name")})
		o.items = append(o.items, i)
		if kind != "PartialObjectMetadataList" {
			s.addVersion(o, version{rv: parse(metadata(object, "resourceVersion")), at: e.At, entry: i, item: n}, object)
		}
		s.await(i, e, o)
	}
}

func (s *Session) addWatch(i int, e *trace.Entry) {
	w := e.Watch
	if w.Type != "ADDED" && w.Type != "MODIFIED" && w.Type != "DELETED" {
		return
	}
	object, err := w.EventObject()
	if err != nil || metadata(object, "name") == "" {
		return
	}
	kind, _ := object["kind"].(string)
	s.learn(w.Target, kind)
	o := s.object(Ref{w.Target.Group, s.kinds.kind(w.Target), metadata(object, "namespace"), metadata(object, "name")})
	o.items = append(o.items, i)
	if !partial(kind) {
		s.addVersion(o, version{rv: parse(metadata(object, "resourceVersion")), at: e.At, entry: i, item: whole, deleted: w.Type == "DELETED"}, object)
	}
	if about := involved(object); about != nil && w.Type != "DELETED" {
		s.object(*about).items = append(s.object(*about).items, i)
	}
	s.await(i, e, o)
}

func (s *Session) addCommit(i int, e *trace.Entry) {
	c := e.Commit
	o := s.object(Ref{c.Group, c.Kind, c.Namespace, c.Name})
	if c.Op != trace.Existed {
		o.items = append(o.items, i)
	}
	s.addVersion(o, version{rv: c.Revision, at: e.At, entry: i, item: whole, deleted: c.Op == trace.Deleted}, c.Redacted())
	if about := involved(c.Object); about != nil && c.Op == trace.Created {
		s.object(*about).items = append(s.object(*about).items, i)
	}
}

func (s *Session) addReview(i int, r *trace.Review) {
	s.reviews = append(s.reviews, i)
	if r.Replays != 0 {
		s.replays++
	}
	for _, ref := range s.refsOfReview(r) {
		o := s.object(ref)
		o.items = append(o.items, i)
	}
}

func (s *Session) addProcess(e *trace.Entry) {
	p := e.Process
	how := p.What
	switch how {
	case "started":
		s.instances = append(s.instances, &Instance{Name: e.Instance, PID: p.PID, Started: e.At})
		return
	case "terminated":
		return // it still runs
	case "ended":
		how = "exited"
	}
	for _, instance := range s.instances {
		if instance.Name == e.Instance {
			instance.Ended, instance.How, instance.ExitCode = e.At, how, p.ExitCode
		}
	}
}

// Instance is one process of the controller.
type Instance struct {
	Name    string        `json:"name"`
	PID     int           `json:"pid,omitempty"`
	Started time.Duration `json:"started"`
	// Ended is 0 while the instance runs. How is killed or exited.
	Ended    time.Duration `json:"ended,omitempty"`
	How      string        `json:"how,omitempty"`
	ExitCode int           `json:"exitCode,omitempty"`
}

// involved returns the object that a Kubernetes Event is about, or nil if the object is not an
// Event.
func involved(object map[string]any) *Ref {
	if object["kind"] != "Event" {
		return nil
	}
	about, _ := object["involvedObject"].(map[string]any)
	if about == nil {
		about, _ = object["regarding"].(map[string]any)
	}
	text := func(key string) string { t, _ := about[key].(string); return t }
	if text("kind") == "" || text("name") == "" {
		return nil
	}
	return &Ref{groupOf(text("apiVersion")), text("kind"), text("namespace"), text("name")}
}

func parse(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// failed reports whether a call was refused or had no answer. A read that finds nothing is
// normal.
func failed(c *trace.Call) bool {
	if c.Code == http.StatusNotFound && !request.IsWrite(c) {
		return false
	}
	return c.Code == 0 || c.Code >= http.StatusBadRequest
}
