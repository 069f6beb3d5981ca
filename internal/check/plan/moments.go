package plan

import (
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// watches plans what is done to watches: late, or with holes.
func (m *maker) watches() {
	m.delaysAtWrites()
	for i, s := range m.read.steps {
		if s.say != nil && s.say.WhileDown {
			continue // nobody watches
		}
		for _, typ := range m.read.typesIn(s, s) {
			m.delayFrom(s, typ)
			m.loseDeletions(s, typ)
		}
		m.losePairs(i)
	}
}

// delaysAtWrites holds back what a controller has written itself: until the watch
// shows it, its cache is older than what it knows.
func (m *maker) delaysAtWrites() {
	for i := range m.read.requests {
		q := &m.read.requests[i]
		if !m.read.effective(q) || q.call.Endpoint != "" || q.resting || q.point.Occurrence > m.occurrences() {
			continue
		}
		m.propose(fault.Fault{Kind: fault.DelayWatch, Point: q.point}, atWatches, m.rankOf(q))
	}
}

// delayFrom holds back the whole type from the beginning of a step.
func (m *maker) delayFrom(s step, typ string) {
	m.propose(fault.Fault{Kind: fault.DelayWatch, Point: fault.Point{Step: s.Name, Resource: typ}}, atWatches, 2)
}

// typesIn are the types of which something was committed from the beginning of one
// step to the rest of another, in the order of their first commit.
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

// loseDeletions lets a client miss that an object was deleted: it learns of it
// from a list in which the object is missing.
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
		m.skip(f, "the deletion waits for a finalizer: a controller that is told nothing cannot miss it")
		return
	}
	m.propose(f, atWatches, 1)
}

// held says that in a step an object of the type was deleted that a finalizer
// held first.
func (r *reading) held(s step, typ string) bool {
	for _, c := range r.changes(s) {
		if r.typeOf(c.Ref.GroupKind) == typ && terminating(c.After) && finalizers(c.After) > 0 {
			return true
		}
	}
	return false
}

// finalizers counts those that a controller of somebody's has to take off;
// Kubernetes takes off its own.
func finalizers(o state.Object) int {
	metadata, _ := o["metadata"].(map[string]any)
	list, _ := metadata["finalizers"].([]any)
	n := 0
	for _, v := range list {
		name, _ := v.(string)
		switch {
		case name == "foregroundDeletion", name == "orphan", strings.HasPrefix(name, "kubernetes.io/"):
		default:
			n++
		}
	}
	return n
}

// losePairs finds the steps after which all is as before (A→B→A), and objects that
// come again under the same name. Whoever misses what was between must end as if
// nothing had been, or as if the object were new.
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
				m.skip(f, "a deletion waits for a finalizer: a controller that is told nothing cannot miss it")
				continue
			}
			m.propose(f, atWatches, 1)
		}
	}
}

// again says that an object of the type was deleted in the first step and created
// anew in the last.
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

// restarts plans a restart at each rest, and each step while it is down.
func (m *maker) restarts() {
	for _, s := range m.read.steps {
		m.propose(fault.Fault{Kind: fault.Restart, Point: fault.Point{Step: s.Name}}, atWatches, 1)
		down := fault.Fault{Kind: fault.DownDuring, Point: fault.Point{Step: s.Name}}
		switch {
		case s.say == nil || !acts(s.say):
			m.skip(down, "the step changes nothing")
		case s.say.WhileDown:
			m.skip(down, "the scenario does the step while it is down anyway")
		default:
			m.propose(down, atWatches, 1)
		}
	}
}

// acts says that a step does something, and not only waits or expects.
func acts(s *scenario.Step) bool {
	return len(s.Apply) > 0 || s.Patch != nil || s.Delete != nil || s.Scale != nil || len(s.Run) > 0
}
