package inspect

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Reconcile is one run of a controller's reconcile function for one object.
//
// The trace of an instrumented manager contains its reconciles; see koboshi dev --instrument. Other
// traces do not. There, reconcileIDs in the log identify the reconciles, if the controller logs them
// as with controller-runtime. Otherwise, calls of one instance that are
// close together, and concern objects with the same owner, count as one reconcile, until a write is
// repeated.
type Reconcile struct {
	// ID is the reconcileID in the log, or "~" and a number.
	ID string `json:"id"`
	// Seq is the number of the entry that is the first sign of the reconcile. Done reports
	// whether it has ended, so that the answer is final.
	Seq        int64  `json:"seq"`
	Done       bool   `json:"done"`
	Controller string `json:"controller,omitempty"`
	Instance   string `json:"instance"`
	Object     Ref    `json:"object"`
	// Began and Ended are the times of the first and of the last sign of the reconcile.
	Began time.Duration `json:"began"`
	Ended time.Duration `json:"ended"`
	// Inferred lists what the trace only suggests: began, ended, object and causes. The causes
	// are inferred unless the manager reports them, because a queue does not record why it holds
	// an object.
	Inferred []string `json:"inferred"`
	// Causes holds the events about the object, and about objects that it owns or mentions, that
	// reached the controller after the previous reconcile began. Dropped counts the oldest events,
	// which are left out of Causes. Why explains a cause that is not an event.
	Causes  []Cause  `json:"causes"`
	Dropped int      `json:"dropped,omitempty"`
	Why     string   `json:"why,omitempty"`
	Reads   int      `json:"reads"`
	Writes  []*Write `json:"writes"`
	// Calls and Lines hold the numbers of the entries.
	Calls []int64 `json:"calls"`
	Lines []int64 `json:"lines,omitempty"`
	// Queue is the state of the queue, if the manager reports it.
	Queue *Queue `json:"queue,omitempty"`
	// Error is the last error that the reconcile logged. Result is what controller-runtime
	// logged at its end.
	Error  string `json:"error,omitempty"`
	Result string `json:"result,omitempty"`

	logged               bool // whether ID is from the log or from a report
	reported             *trace.Reconcile
	unnamed              bool // some of the calls do not name the reconcile
	beganExact, endExact bool
	pending              []delivery
	previous             *Reconcile
}

// Cause is an event that may have caused a reconcile.
type Cause struct {
	Seq    int64         `json:"seq"`
	At     time.Duration `json:"at"`
	Object Ref           `json:"object"`
	// Relation is itself, owned or mentioned, or mapped if a handler of the manager leads from
	// the object to the reconciled one. Handler is the handler's Go type, if the manager reports it.
	Relation string `json:"relation"`
	Handler  string `json:"handler,omitempty"`
	// Type is ADDED, MODIFIED or DELETED; LISTED for an item of a list; or GENERIC for an event
	// that the manager made.
	Type            string `json:"type"`
	ResourceVersion int64  `json:"resourceVersion,omitempty"`
	// Changed holds the paths of the fields that the event changed, as far as the previous
	// version is known.
	Changed []string `json:"changed,omitempty"`
	// Manager is the field manager that made the change.
	Manager string `json:"manager,omitempty"`
	// Own is the ID of the reconcile whose write caused the event, if the write was the
	// controller's own.
	Own string `json:"own,omitempty"`
}

// groupKey identifies the reconciles of one object by one instance.
type groupKey struct {
	instance string
	root     Ref
}

// group is the work of one instance on one object.
type group struct {
	key     groupKey
	current *Reconcile
	all     []*Reconcile
	done    map[string]bool // the writes of the current reconcile
	pending []delivery      // events since the current reconcile began
	dropped int
}

// delivery is an event that reached an instance.
type delivery struct {
	entry  int
	object *object
}

const (
	// pause is the time without calls after which an inferred reconcile is over, and longPause the
	// same time for a reconcile whose ID was logged.
	pause, longPause = 500 * time.Millisecond, 10 * time.Second
	// late is the longest delay with which a log line is read after a call that actually followed
	// the line.
	late = 20 * time.Millisecond
	// mostPending limits the number of events that are kept for one reconcile.
	mostPending = 50
)

func (s *Session) group(key groupKey) *group {
	g := s.groups[key]
	if g == nil {
		g = &group{key: key}
		s.groups[key] = g
	}
	return g
}

// await records an event until the next reconcile of the object begins.
func (s *Session) await(i int, e *trace.Entry, o *object) {
	if e.Instance == "" {
		return
	}
	root := s.root(o)
	if root == o && !s.primary[o.ref.Kind] {
		s.alone[e.Instance] = append(s.alone[e.Instance], delivery{i, o})
	}
	g := s.group(groupKey{e.Instance, root.ref})
	if g.pending = append(g.pending, delivery{i, o}); len(g.pending) > mostPending {
		g.pending = g.pending[1:]
		g.dropped++
	}
}

func (s *Session) start(g *group, at time.Duration, seq int64) *Reconcile {
	// A call is recorded when it is complete. Events that arrived after the call began, such as the
	// event of its own write, belong to the next reconcile.
	earlier := slices.IndexFunc(g.pending, func(d delivery) bool { return s.entries[d.entry].At > at })
	if earlier < 0 {
		earlier = len(g.pending)
	}
	r := &Reconcile{
		ID: fmt.Sprintf("~%d", len(s.reconciles)+1), Instance: g.key.instance, Object: g.key.root,
		Began: at, Ended: at, Writes: []*Write{}, Calls: []int64{},
		Seq: seq, pending: g.pending[:earlier:earlier], Dropped: g.dropped, previous: g.current,
	}
	g.current, g.done, g.pending, g.dropped = r, map[string]bool{}, g.pending[earlier:], 0
	g.all = append(g.all, r)
	s.reconciles = append(s.reconciles, r)
	return r
}

// assign adds a call to the reconcile to which it belongs.
func (s *Session) assign(e *trace.Entry, o *object, w *Write) {
	c := e.Call
	if e.Instance == "" || request.IsBookkeeping(c) {
		return
	}
	if c.Reconcile != "" {
		s.assignTo(c.Reconcile, e, w)
		return
	}
	began := e.At - c.Took
	g := s.groupOf(e.Instance, s.rootOfCall(c, o, w), began)
	key := c.Verb + " " + c.Target.Subresource + " " + o.ref.String()
	r := g.current
	if r == nil || r.over(began) || w != nil && !r.beganExact && g.done[key] {
		r = s.start(g, began, e.Seq)
	}
	if w != nil { // after a conflict, the same reconcile often tries again
		g.done[key] = g.done[key] || w.Code != http.StatusConflict
		s.worked[r.Object.Kind] = s.worked[r.Object.Kind] || len(r.pending) > 0
	}
	r.unnamed = true
	r.add(e, w)
}

// add adds a call to a reconcile.
func (r *Reconcile) add(e *trace.Entry, w *Write) {
	r.extend(e.At)
	r.Calls = append(r.Calls, e.Seq)
	if w == nil {
		r.Reads++
		return
	}
	r.Writes = append(r.Writes, w)
	w.Reconcile = r.ID
}

// assignTo adds a call to the reconcile that it names. The report of its start may arrive later,
// because it takes another way.
func (s *Session) assignTo(id string, e *trace.Entry, w *Write) {
	entry := *e
	if r := s.byID[id]; r != nil {
		r.add(&entry, w)
		return
	}
	s.early[id] = append(s.early[id], func() { s.byID[id].add(&entry, w) })
}

// extend moves the end of a reconcile, unless its end was reported.
func (r *Reconcile) extend(at time.Duration) {
	if r.reported == nil || !r.endExact {
		r.Ended = max(r.Ended, at)
	}
}

// over reports whether the reconcile had ended before a time.
func (r *Reconcile) over(at time.Duration) bool {
	switch {
	case r.endExact:
		return at > r.Ended
	case r.reported != nil:
		return false
	case r.logged:
		return at-r.Ended > longPause
	}
	return at-r.Ended > pause
}

// rootOfCall returns the object on whose behalf a call was made. An object that could not be
// created has an owner only in the request.
func (s *Session) rootOfCall(c *trace.Call, o *object, w *Write) *object {
	if w != nil && w.Failed && o.uid == "" && o.owner.uid == "" {
		if body, err := c.RequestObject(); err == nil && body != nil {
			o.owner = ownerOf(body)
		}
	}
	return s.root(o)
}

// groupOf returns the group of a call. An object without an owner may belong to the one
// reconcile that is in progress.
func (s *Session) groupOf(instance string, root *object, at time.Duration) *group {
	key := groupKey{instance, root.ref}
	own := s.reconciledKinds()
	if len(own) == 0 || own[root.ref.Kind] {
		return s.group(key)
	}
	var open []*group
	for i := len(s.reconciles) - 1; i >= max(0, len(s.reconciles)-mostOpen); i-- {
		r := s.reconciles[i]
		g := s.groups[groupKey{r.Instance, r.Object}]
		if r.Instance == instance && own[r.Object.Kind] && g != nil && g.current == r && !r.over(at) && at-r.Ended <= pause {
			open = append(open, g)
		}
	}
	if len(open) == 1 {
		return open[0]
	}
	return s.group(key)
}

// reconciledKinds returns the kinds that controllers reconcile, as far as they are known.
func (s *Session) reconciledKinds() map[string]bool {
	if len(s.primary) > 0 {
		return s.primary
	}
	return s.worked
}

// onlyRead reports whether a reconcile is only inferred from reads of an object that is
// probably not reconciled, such as a Secret that another object names.
func (s *Session) onlyRead(r *Reconcile) bool {
	own := s.reconciledKinds()
	return !r.logged && len(r.Writes) == 0 && len(own) > 0 && !own[r.Object.Kind]
}

// mostOpen is the number of recent reconciles among which those in progress are searched.
const mostOpen = 20

func (s *Session) addLine(i int, e *trace.Entry) {
	line := ParseLine(e.Line.Text)
	if line.Level == "error" {
		s.errors = append(s.errors, i)
	}
	if line.Object == nil && line.ReconcileID == "" {
		return
	}
	r := s.byID[line.ReconcileID]
	if line.Object != nil {
		o := s.object(*line.Object)
		o.items = append(o.items, i)
		if line.ReconcileID != "" {
			s.primary[o.ref.Kind] = true
			s.controllers[line.Controller] = Ref{Group: o.ref.Group, Kind: o.ref.Kind}
		}
		if r == nil && line.ReconcileID != "" {
			r = s.identify(e, &line, o)
		}
	}
	if r == nil {
		return
	}
	r.Lines = append(r.Lines, e.Seq)
	r.extend(e.At)
	r.Controller = cmp.Or(line.Controller, r.Controller)
	if line.Level == "error" {
		r.Error = s.scrub(strings.TrimSuffix(line.Message+": "+line.Error, ": "))
		r.endExact = r.endExact || line.Message == "Reconciler error"
	}
	result, is := strings.CutPrefix(line.Message, "Reconcile ")
	if is && r.reported == nil && line.Level != "error" && (result == "successful" || strings.HasPrefix(result, "done, requeueing")) {
		r.Result, r.endExact = result, true
	}
}

// identify finds or starts the reconcile of a line with a new ID.
func (s *Session) identify(e *trace.Entry, line *LogLine, o *object) *Reconcile {
	g := s.group(groupKey{e.Instance, o.ref})
	r := g.current
	first := line.Message == "Reconciling"
	if r == nil || r.logged || e.At-r.Ended > pause || first && e.At-r.Began > late {
		r = s.start(g, e.At, e.Seq)
	}
	r.ID, r.logged, r.beganExact = line.ReconcileID, true, first
	s.known(r)
	for _, w := range r.Writes {
		w.Reconcile = r.ID
	}
	return r
}

// Why returns the reconciles of an object, and the reconciles that wrote the object, in their
// order. At most the given number of the most recent ones is returned; 0 means all.
func (s *Session) Why(ref Ref, most int) []*Reconcile { return s.whyAfter(ref, 0, most) }

// whyAfter leaves out the reconciles up to an entry's number.
func (s *Session) whyAfter(ref Ref, after int64, most int) []*Reconcile {
	var found []*Reconcile
	for i := len(s.reconciles) - 1; i >= 0 && s.reconciles[i].Seq > after && (most == 0 || len(found) < most); i-- {
		r := s.reconciles[i]
		if ref == (Ref{}) && !s.onlyRead(r) || r.Object == ref || slices.ContainsFunc(r.Writes, func(w *Write) bool { return w.Object == ref }) {
			found = append(found, s.explain(r))
		}
	}
	slices.Reverse(found)
	if found == nil {
		return []*Reconcile{}
	}
	return found
}

// explain returns a copy of a reconcile with its causes.
func (s *Session) explain(r *Reconcile) *Reconcile {
	whole := *r
	if r.reported != nil {
		whole.Causes, whole.Why = s.triggered(r)
		whole.Dropped, whole.Done, whole.Inferred = r.reported.Dropped, s.done(r), []string{}
		if !r.endExact {
			whole.Inferred = append(whole.Inferred, "ended")
		}
		if r.unnamed {
			whole.Inferred = append(whole.Inferred, "calls")
		}
		return &whole
	}
	whole.Causes = []Cause{}
	for _, d := range r.pending {
		whole.Causes = append(whole.Causes, s.cause(r, d))
	}
	whole.Causes = append(whole.Causes, s.mentioned(r)...)
	slices.SortFunc(whole.Causes, func(a, b Cause) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(whole.Causes) == 0 {
		whole.Why = s.otherwise(r)
	}
	whole.Done = s.done(r)
	whole.Inferred = []string{"causes"}
	if !r.beganExact {
		whole.Inferred = append(whole.Inferred, "began")
	}
	if !r.endExact {
		whole.Inferred = append(whole.Inferred, "ended")
	}
	if !r.logged {
		whole.Inferred = append(whole.Inferred, "object")
	}
	return &whole
}

func (s *Session) done(r *Reconcile) bool {
	if r.endExact || s.clock == nil {
		return true
	}
	if r.reported != nil {
		return slices.ContainsFunc(s.instances, func(i *Instance) bool { return i.Name == r.Instance && i.How != "" })
	}
	g := s.groups[groupKey{r.Instance, r.Object}]
	return g == nil || g.current != r || s.clock()-r.Ended > pause
}

func (s *Session) cause(r *Reconcile, d delivery) Cause {
	e := &s.entries[d.entry]
	c := Cause{Seq: e.Seq, At: e.At, Object: d.object.ref, Relation: "owned", Type: "LISTED"}
	if d.object.ref == r.Object {
		c.Relation = "itself"
	}
	if e.Watch == nil {
		return c
	}
	c.Type, c.ResourceVersion = e.Watch.Type, parse(e.Watch.ResourceVersion)
	if c.ResourceVersion == 0 {
		c.ResourceVersion = rvOf(e.Watch)
	}
	for _, w := range d.object.written {
		if w.After == c.ResourceVersion && !w.NoOp {
			c.Own = w.Reconcile
		}
	}
	if c.Type == "MODIFIED" {
		c.Changed, c.Manager = s.changedAt(d.object, c.ResourceVersion)
	}
	return c
}

// changedAt returns the fields in which a version differs from the one before it, and the
// manager that changed the first of them.
func (s *Session) changedAt(o *object, rv int64) (fields []string, manager string) {
	changes, _, _ := s.changesAt(o, rv)
	if len(changes) == 0 {
		return nil, ""
	}
	v, _ := o.at(rv)
	return paths(changes), authorOf(s.content(v), changes[0].steps)
}

func rvOf(w *trace.Watch) int64 {
	object, err := w.EventObject()
	if err != nil {
		return 0
	}
	return parse(metadata(object, "resourceVersion"))
}

// mostMentioned limits the number of events that are searched for mentioned objects.
const mostMentioned = 200

// mentioned returns the events about objects that have no owner, and whose names the
// reconciled object contains.
func (s *Session) mentioned(r *Reconcile) (causes []Cause) {
	o := s.objects[r.Object]
	if o == nil {
		return nil
	}
	v, found := o.latest()
	if !found {
		return nil
	}
	names := map[string]bool{}
	texts(s.content(v), names)
	var since int64
	if r.previous != nil {
		since = r.previous.Seq
	}
	all := s.alone[r.Instance]
	last, _ := slices.BinarySearchFunc(all, r.Seq, func(d delivery, seq int64) int { return cmp.Compare(s.entries[d.entry].Seq, seq) })
	for i := last - 1; i >= max(0, last-mostMentioned) && s.entries[all[i].entry].Seq > since; i-- {
		ref := all[i].object.ref
		if names[ref.Name] && ref != r.Object && s.root(all[i].object) == all[i].object && (ref.Namespace == "" || ref.Namespace == r.Object.Namespace) {
			c := s.cause(r, all[i])
			c.Relation = "mentioned"
			causes = append(causes, c)
		}
	}
	return causes
}

// texts collects all strings in a value, except in its metadata.
func texts(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if key != "metadata" && key != "status" {
				texts(inner, into)
			}
		}
	case []any:
		for _, inner := range v {
			texts(inner, into)
		}
	case string:
		into[v] = true
	}
}

// otherwise explains a reconcile that no event caused.
func (s *Session) otherwise(r *Reconcile) string {
	p := r.previous
	switch {
	case p == nil:
		return "no earlier event about the object, or about one that it owns, is recorded; it is the first recorded reconcile of the object"
	case p.Error != "":
		return "probably tried again after an error: " + p.Error
	case slices.ContainsFunc(p.Writes, func(w *Write) bool { return w.Failed }):
		return "probably tried again because a write of the previous reconcile failed"
	case strings.Contains(p.Result, "requeueing"):
		return "probably requeued: the previous reconcile was " + p.Result
	}
	return "no event about the object, or about one that it owns, reached the controller since the previous reconcile: probably a requeue, a resync, or an event about another object"
}
