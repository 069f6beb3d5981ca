package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// effects determines which writes changed something, because a fault can make a difference
// only at a write that leaves a different state behind.
func (r *reading) effects() {
	e := newEffects(r)
	for i := range r.requests {
		q := &r.requests[i]
		if q.write && r.isPoint(q.call) {
			q.change, q.idle = e.of(q)
		}
	}
}

// isPoint reports whether faults may be applied to a request. Bookkeeping and discovery
// are excluded: bookkeeping is done by the machinery around a controller, and discovery
// requests name no object. Reading CRDs counts as discovery.
func (r *reading) isPoint(call *trace.Call) bool {
	if call.Endpoint != "" {
		return true
	}
	t := call.Target
	crd := t.Group == "apiextensions.k8s.io" && t.Resource == "customresourcedefinitions"
	return t.Resource != "" && !request.IsBookkeeping(call) && (!crd || request.IsWrite(call))
}

// effects attributes commits to writes. A commit belongs to at most one write. If the answers to
// several writes contain the revision of a commit, the commit belongs to the first of these writes
// to arrive, provided that no client had seen the revision before.
type effects struct {
	r       *reading
	byRev   map[int64]int
	claimed map[int]bool
	seen    []sighting
}

// sighting records the highest revision that had been seen by a given time. Revisions count
// writes to the complete store, so a revision implies that all lower ones are committed.
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

// revisionIn returns the revision that an entry proves to be committed, or 0.
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
		return 0 // it is empty or not a number
	}
	return n
}

// of returns the index of the commit that a write made, or -1 if the commit is unknown.
// If the write made no commit, of returns the reason.
func (e *effects) of(q *asked) (change int, idle string) {
	call := q.call
	switch {
	case call.Code == 0:
		return -1, "it got no response in the run without a fault"
	case call.Code >= 400:
		return -1, fmt.Sprintf("it was refused with %d in the run without a fault", call.Code)
	case call.Endpoint != "":
		return -1, ""
	case request.IsDryRun(call):
		return -1, "it is a dry run"
	}
	rev := parseRevision(call.ResourceVersion)
	if call.Verb == "delete" || call.Verb == "deletecollection" {
		return e.deletion(q, rev)
	}
	if rev == 0 {
		return -1, "" // the answer has no version; the answer to an eviction has none
	}
	if i, ok := e.byRev[rev]; ok && !e.claimed[i] && e.before(q.arrived) < rev {
		e.claimed[i] = true
		return i, ""
	}
	if i, ok := e.lastFinalizer(q); ok {
		return i, ""
	}
	return -1, "it changed nothing (the resourceVersion stayed the same)"
}

// lastFinalizer finds the commit of an update that removes the last finalizer. Since the
// object is gone after the update, the server answers with the object from the request,
// which has the old resourceVersion.
func (e *effects) lastFinalizer(q *asked) (int, bool) {
	if q.call.Verb == "create" || q.call.Target.Subresource != "" || !released(q.call) {
		return -1, false
	}
	return e.find(q, func(c state.Change) bool { return c.Op == state.Deleted && c.Before.Deleting() })
}

// released reports whether an answer shows an object that is being deleted and has no
// finalizers.
func released(call *trace.Call) bool {
	body, err := call.ResponseObject()
	if err != nil {
		return false // it shows no object
	}
	object := state.Object(body)
	return object.Deleting() && len(object.Finalizers()) == 0
}

// deletion finds the commit of a deletion. The answer to a deletion is often only a Status
// without a revision, so this function also searches for a commit that deletes the object.
func (e *effects) deletion(q *asked, rev int64) (int, string) {
	if i, ok := e.byRev[rev]; ok && !e.claimed[i] && deletes(e.r.run.History.Changes[i]) && e.before(q.arrived) < rev {
		e.claimed[i] = true
		return i, ""
	}
	if i, ok := e.find(q, deletes); ok {
		return i, ""
	}
	return -1, "it changed nothing (the object was already being deleted, or gone)"
}

// find returns the first commit in the step of the request that changes the object of the request
// and for which wanted returns true. It skips commits of other writes, and commits that were
// already known when the request arrived.
func (e *effects) find(q *asked, wanted func(state.Change) bool) (int, bool) {
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

// span returns the range of commits from the beginning of a step to the beginning of the
// next.
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

// before returns the highest revision that had been seen when a request arrived.
func (e *effects) before(arrived time.Duration) int64 {
	n, _ := slices.BinarySearchFunc(e.seen, arrived, func(s sighting, want time.Duration) int {
		return cmp.Compare(s.at, want)
	})
	if n == 0 {
		return 0
	}
	return e.seen[n-1].rev
}

// about reports whether a commit changes an object that a request names. A request for a
// collection names all objects in its namespace.
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

// deletes reports whether a commit removes an object, or marks it for deletion.
func deletes(c state.Change) bool {
	return c.Op == state.Deleted || c.After.Deleting() && !c.Before.Deleting()
}
