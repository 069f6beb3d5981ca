package plan

import (
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// watches plans faults at watches: delays and gaps.
func (m *maker) watches() {
	m.delaysAtWrites()
	for i, s := range m.read.steps {
		if s.say != nil && s.say.WhileDown {
			continue // no watch is open
		}
		for _, typ := range m.read.typesIn(s, s) {
			m.delayFrom(s, typ)
			m.loseDeletions(s, typ)
		}
		m.losePairs(i)
	}
}

// delaysAtWrites delays the events of the controller's own writes, so that the controller's
// cache lacks its latest writes.
func (m *maker) delaysAtWrites() {
	for i := range m.read.requests {
		q := &m.read.requests[i]
		if !m.read.effective(q) || q.call.Endpoint != "" || q.resting || q.point.Occurrence > m.occurrences() {
			continue
		}
		m.propose(fault.Fault{Kind: fault.DelayWatch, Point: q.point}, m.rankOf(q))
	}
}

// delayFrom delays all events of a type from the beginning of a step.
func (m *maker) delayFrom(s step, typ string) {
	m.propose(fault.Fault{Kind: fault.DelayWatch, Point: fault.Point{Step: s.Name, Resource: typ}}, 2)
}

// typesIn returns the watched types that have commits between the beginning of one step and
// the end of another, ordered by first commit.
func (r *reading) typesIn(from, to step) []string {
	var types []string
	seen := map[string]bool{}
	for _, c := range r.run.History.Changes[from.from:max(from.from, to.to)] {
		typ := r.typeOf(c.Ref.GroupKind)
		if !seen[typ] && r.facts.Watches(typ) {
			seen[typ] = true
			types = append(types, typ)
		}
	}
	return types
}

// loseDeletions plans faults in which the controller misses the event of a deletion, and
// notices the deletion only because a list lacks the object.
func (m *maker) loseDeletions(s step, typ string) {
	f := fault.Fault{Kind: fault.LoseStates, Point: fault.Point{Step: s.Name, Resource: typ}, Until: s.Name}
	gone := false
	for _, c := range m.read.changes(s) {
		if c.Op == state.Deleted && m.read.typeOf(c.Ref.GroupKind) == typ {
			gone = true
		}
	}
	if !gone {
		return
	}
	if m.read.held(s, typ) {
		m.skip(f, "the deletion waits for a finalizer, so the controller cannot miss it")
		return
	}
	m.propose(f, 1)
}

// held reports whether a finalizer delayed the deletion of an object of the type in a
// step.
func (r *reading) held(s step, typ string) bool {
	for _, c := range r.changes(s) {
		if r.typeOf(c.Ref.GroupKind) == typ && c.After.Deleting() && finalizers(c.After) > 0 {
			return true
		}
	}
	return false
}

// finalizers counts the finalizers that a controller has to remove. It skips those that
// Kubernetes itself removes.
func finalizers(o state.Object) int {
	n := 0
	for _, name := range o.Finalizers() {
		switch {
		case name == "foregroundDeletion", name == "orphan", strings.HasPrefix(name, "kubernetes.io/"):
		default:
			n++
		}
	}
	return n
}

// losePairs finds steps that restore an earlier state (A→B→A), and objects that are
// recreated under the same name. A controller that misses a change and its reversal must
// end up as if nothing had happened. A controller that misses a deletion and recreation
// must end up as if the object were new.
func (m *maker) losePairs(i int) {
	first := m.read.steps[i]
	for j := i + 1; j < len(m.read.steps) && j <= i+2; j++ {
		last := m.read.steps[j]
		back := i > 0 && last.say != nil && last.say.SameAs != "" && last.say.SameAs == m.read.steps[i-1].Name
		for _, typ := range m.read.typesIn(first, last) {
			again := m.read.again(first, last, typ)
			if !back && (!again || j != i+1) {
				continue
			}
			f := fault.Fault{Kind: fault.LoseStates, Point: fault.Point{Step: first.Name, Resource: typ}, Until: last.Name}
			if m.read.heldBetween(i, j, typ) {
				m.skip(f, "a deletion waits for a finalizer, so the controller cannot miss it")
				continue
			}
			m.propose(f, 1)
		}
	}
}

// again reports whether an object of the type was deleted in the first step and recreated
// in the last.
func (r *reading) again(first, last step, typ string) bool {
	gone := map[state.Ref]bool{}
	for _, c := range r.changes(first) {
		if c.Op == state.Deleted && r.typeOf(c.Ref.GroupKind) == typ {
			gone[c.Ref] = true
		}
	}
	for _, c := range r.changes(last) {
		if c.Op == state.Created && gone[c.Ref] {
			return true
		}
	}
	return false
}

func (r *reading) heldBetween(i, j int, typ string) bool {
	for _, s := range r.steps[i : j+1] {
		if r.held(s, typ) {
			return true
		}
	}
	return false
}

// restarts plans two faults for each step: the controller restarts after the step, or is
// down during the step.
func (m *maker) restarts() {
	for _, s := range m.read.steps {
		m.propose(fault.Fault{Kind: fault.Restart, Point: fault.Point{Step: s.Name}}, 1)
		down := fault.Fault{Kind: fault.DownDuring, Point: fault.Point{Step: s.Name}}
		switch {
		case s.say == nil || !acts(s.say):
			m.skip(down, "the step changes nothing")
		case s.say.Suite:
			m.skip(down, "the suite waits for the controller, so it would fail")
		case s.say.WhileDown:
			m.skip(down, "the scenario performs the step while the controller is down anyway")
		default:
			m.propose(down, 1)
		}
	}
}

// outages plans an outage at the beginning of each step in which the controller has work to do.
func (m *maker) outages() {
	for _, s := range m.read.steps {
		f := fault.Fault{Kind: fault.Outage, Point: fault.Point{Step: s.Name}}
		switch {
		case s.say == nil || !acts(s.say):
			m.skip(f, "the step changes nothing")
		case s.say.Suite:
			m.skip(f, "the suite waits for the controller, so it would fail")
		case s.say.WhileDown:
			m.skip(f, "the scenario performs the step while the controller is down anyway")
		case !m.read.writesIn(s.Name):
			m.skip(f, "the controller writes nothing in the step")
		default:
			m.propose(f, 2)
		}
	}
}

// starts plans two restarts at which the controller meets a server that is not ready, once in a scenario:
// what depends on the first requests of a process does not depend on the step.
func (m *maker) starts() {
	at := m.read.beforeWork()
	if at == nil {
		return
	}
	for _, kind := range []fault.Kind{fault.OfflineStart, fault.FailingStart} {
		m.propose(fault.Fault{Kind: kind, Point: fault.Point{Step: at.Name}}, 2)
	}
}

// beforeWork returns the first step of the scenario that is followed by a step in which the controller
// writes, because the latter shows what the controller no longer does. If there is none, beforeWork returns
// the start of the controller, or nil. A step that begins with another start shows nothing.
func (r *reading) beforeWork() (at *step) {
	for i := range max(len(r.steps)-1, 0) {
		next := r.steps[i+1]
		if !r.writesIn(next.Name) || next.say != nil && next.say.WhileDown {
			continue
		}
		if at = &r.steps[i]; at.say != nil {
			return at
		}
	}
	return at
}

// acts reports whether a step changes something, rather than only waiting or checking
// expectations.
func acts(s *scenario.Step) bool {
	return len(s.Apply) > 0 || s.Patch != nil || s.Delete != nil || s.Scale != nil || len(s.Run) > 0
}
