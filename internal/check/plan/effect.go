package plan

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// effects finds out which writes changed something. Only those leave another
// state behind, and only at those can a fault make a difference.
func (r *reading) effects() {
	e := newEffects(r)
	for i := range r.requests {
		q := &r.requests[i]
		if q.write && r.isPoint(q.call) {
			q.change, q.idle = e.of(q)
		}
	}
}

// isPoint says that faults may be done to a request: events, leases, reviews and
// tokens are of the machinery around a controller, and discovery is no object.
func (r *reading) isPoint(call *trace.Call) bool {
	if call.Endpoint != "" {
		return true
	}
	switch call.Target.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "events.k8s.io", "coordination.k8s.io":
		return false
	}
	t := call.Target
	switch {
	case t.Resource == "", t.Group == "" && t.Resource == "events":
		return false
	case t.Resource == "serviceaccounts" && t.Subresource == "token":
		return false
	case t.Resource == "customresourcedefinitions" && !fault.IsWrite(call):
		return false // discovery by another name
	}
	return true
}

// effects attributes commits to writes. Each commit has one write only: the first
// that arrived of those that were answered with its revision, and that one only
// if nobody had seen the revision before it arrived.
type effects struct {
	r       *reading
	byRev   map[int64]int
	claimed map[int]bool
	seen    []sighting
}

// sighting is the highest revision that had been seen at a time. Revisions are of
// the whole store: a higher one tells that all lower ones are committed.
type sighting struct {
	at  time.Duration
	rev int64
}

func newEffects(r *reading) *effects {
	e := &effects{r: r, byRev: map[int64]int{}, claimed: map[int]bool{}}
	for i, c := range r.run.History.Changes {
		e.byRev[c.Revision] = i
	}
	for _, entry := range r.run.Entries {
		if rev := revisionIn(entry); rev > 0 {
			e.seen = append(e.seen, sighting{entry.At, rev})
		}
	}
	slices.SortStableFunc(e.seen, func(a, b sighting) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(e.seen); i++ {
		e.seen[i].rev = max(e.seen[i].rev, e.seen[i-1].rev)
	}
	return e
}

// revisionIn is the revision that an entry shows to be committed, or 0.
func revisionIn(entry trace.Entry) int64 {
	switch {
	case entry.Call != nil:
		return parseRevision(entry.Call.ResourceVersion)
	case entry.Watch != nil:
		return parseRevision(entry.Watch.ResourceVersion)
	case entry.Step != nil:
		return entry.Step.Revision
	}
	return 0
}

func parseRevision(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0 // none, or not a number: then it says nothing
	}
	return n
}

// of is the index of the commit that a write made, -1 if it is not known; or why
// it made none.
func (e *effects) of(q *request) (change int, idle string) {
	call := q.call
	switch {
	case call.Code == 0:
		return -1, "it was not answered in the run without a fault"
	case call.Code >= 400:
		return -1, fmt.Sprintf("it was refused with %d in the run without a fault", call.Code)
	case call.Endpoint != "":
		return -1, ""
	case dryRun(call):
		return -1, "it is a dry run"
	}
	rev := parseRevision(call.ResourceVersion)
	if call.Verb == "delete" || call.Verb == "deletecollection" {
		return e.deletion(q, rev)
	}
	if rev == 0 {
		return -1, "" // the answer tells nothing, such as that of an eviction
	}
	if i, ok := e.byRev[rev]; ok && !e.claimed[i] && e.before(q.arrived) < rev {
		e.claimed[i] = true
		return i, ""
	}
	if i, ok := e.lastFinalizer(q); ok {
		return i, ""
	}
	return -1, "it changed nothing (the resourceVersion stayed)"
}

// lastFinalizer finds the commit of an update that takes off the last finalizer.
// The object is gone then, and the server answers with the object of the request:
// its resourceVersion is the old one.
func (e *effects) lastFinalizer(q *request) (int, bool) {
	if q.call.Verb == "create" || q.call.Target.Subresource != "" || !released(q.call) {
		return -1, false
	}
	return e.find(q, func(c state.Change) bool { return c.Op == state.Deleted && terminating(c.Before) })
}

// released says that an answer shows an object that is being deleted and is held
// by nobody.
func released(call *trace.Call) bool {
	body, err := call.ResponseObject()
	if err != nil {
		return false // no object
	}
	metadata, _ := body["metadata"].(map[string]any)
	held, _ := metadata["finalizers"].([]any)
	return terminating(body) && len(held) == 0
}

// deletion looks for the commit by the object, because the answer to a deletion
// is often a bare Status.
func (e *effects) deletion(q *request, rev int64) (int, string) {
	if i, ok := e.byRev[rev]; ok && !e.claimed[i] && deletes(e.r.run.History.Changes[i]) && e.before(q.arrived) < rev {
		e.claimed[i] = true
		return i, ""
	}
	if i, ok := e.find(q, deletes); ok {
		return i, ""
	}
	return -1, "it changed nothing (the object was being deleted, or gone)"
}

// find looks in the request's step for the first commit to its object that is of
// the wanted sort and that nobody knew of when the request arrived.
func (e *effects) find(q *request, wanted func(state.Change) bool) (int, bool) {
	from, to := e.span(q.point.Step)
	known := e.before(q.arrived)
	for i := from; i < to; i++ {
		c := e.r.run.History.Changes[i]
		if !e.claimed[i] && c.Revision > known && wanted(c) && e.r.about(c, q.call) {
			e.claimed[i] = true
			return i, true
		}
	}
	return -1, false
}

// span is which commits are of a step, with those until the next one begins.
func (e *effects) span(name string) (from, to int) {
	to = len(e.r.run.History.Changes)
	for i, s := range e.r.steps {
		if s.Name == name {
			from = s.from
			if i+1 < len(e.r.steps) {
				to = e.r.steps[i+1].from
			}
			return from, to
		}
	}
	if len(e.r.steps) > 0 { // before the first step
		to = e.r.steps[0].from
	}
	return 0, to
}

// before is the highest revision that was known when a request arrived.
func (e *effects) before(arrived time.Duration) int64 {
	n, _ := slices.BinarySearchFunc(e.seen, arrived, func(s sighting, want time.Duration) int {
		return cmp.Compare(s.at, want)
	})
	if n == 0 {
		return 0
	}
	return e.seen[n-1].rev
}

// about says that a commit is about what a request names; a collection is about
// all objects of its namespace.
func (r *reading) about(c state.Change, call *trace.Call) bool {
	t := call.Target
	if r.typeOf(c.Ref.GroupKind) != fault.TypeOf(t) {
		return false
	}
	if call.Verb == "deletecollection" {
		return t.Namespace == "" || t.Namespace == c.Ref.Namespace
	}
	return t.Namespace == c.Ref.Namespace && t.Name == c.Ref.Name
}

// deletes says that a commit removes an object, or begins to.
func deletes(c state.Change) bool {
	return c.Op == state.Deleted || terminating(c.After) && !terminating(c.Before)
}

func terminating(o state.Object) bool {
	metadata, _ := o["metadata"].(map[string]any)
	return metadata["deletionTimestamp"] != nil
}

func dryRun(call *trace.Call) bool {
	_, query, _ := strings.Cut(call.Path, "?")
	values, _ := url.ParseQuery(query)
	return values.Has("dryRun")
}
