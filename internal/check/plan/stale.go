package plan

import (
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// staleness plans restarts with an older list. A restart after a step gets a list from that
// step or from the step before, so the number of runs grows only linearly with the number
// of commits.
func (m *maker) staleness() {
	for _, typ := range m.read.watchedTypes() {
		probe := fault.Fault{Kind: fault.StaleRestart, Point: fault.Point{Resource: typ}}
		if ok, why := fault.Legal(probe, m.read.facts); !ok {
			m.skip(probe, why)
			continue
		}
		m.staleType(typ)
	}
}

// watchedTypes returns the types that are watched and changed in the run.
func (r *reading) watchedTypes() []string {
	if len(r.steps) == 0 {
		return nil
	}
	return r.typesIn(step{}, step{to: len(r.run.History.Changes)})
}

// staleType plans the stale restarts of one type.
func (m *maker) staleType(typ string) {
	counts := m.read.countsOfType(typ)
	for i, s := range m.read.steps {
		begin := 0
		if i > 0 && counts[i] == counts[i-1] {
			continue // no object of the type has changed since the previous step came to rest
		}
		if i > 1 {
			begin = counts[i-2]
		}
		for n := max(begin, 1); n < counts[i]; n++ { // Revision counts from 0
			m.propose(fault.Fault{
				Kind:     fault.StaleRestart,
				Point:    fault.Point{Step: s.Name, Resource: typ},
				Revision: n - 1, Behind: counts[i] - n,
			}, m.read.staleRank(typ, n, counts[i]))
		}
	}
}

// countsOfType returns, for each step, the number of commits of a type until the step
// came to rest.
func (r *reading) countsOfType(typ string) []int {
	counts := make([]int, len(r.steps))
	for i, s := range r.steps {
		for _, c := range r.run.History.Changes[:s.to] {
			if r.typeOf(c.Ref.GroupKind) == typ {
				counts[i]++
			}
		}
	}
	return counts
}

// staleRank ranks the state after the given number of commits of a type. States that show
// an object being deleted come first, then states that hide a creation, a deletion or a
// changed spec: in most known bugs, the controller acts on something that is no longer
// true.
func (r *reading) staleRank(typ string, from, to int) int {
	n := 0
	rank := 2
	for _, c := range r.run.History.Changes {
		if r.typeOf(c.Ref.GroupKind) != typ {
			continue
		}
		n++
		if n == from && c.After.Deleting() {
			return 0
		}
		if n > from && n <= to && (c.Op != state.Updated || specChanged(c)) {
			rank = 1
		}
	}
	return rank
}

// specChanged reports whether a commit changed the generation.
func specChanged(c state.Change) bool {
	return c.Before.Generation() != c.After.Generation()
}
