package plan

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// After a kill, the store is the complete state. If the recovery only goes on where the killed instance
// stopped, each of its writes leads to a state that a run without a fault has shown as well, and a kill
// in this state is planned anyway. Only a recovery that does something of its own, such as a rollback,
// leads to new states:
//
//	run without a fault  a ──▶ b ──▶ c ──▶ d
//	                           │kill       ▲
//	recovery                   └──▶ x ──▶ c┘     a second kill at x is worth a run, and one at c is not

// Shown holds the states that the runs without a fault have shown. It can be encoded as JSON.
type Shown struct {
	// Kinds lists the kinds whose objects the controller writes, as "Kind.group", and Statuses those
	// whose status it writes.
	Kinds    []string `json:"kinds,omitempty"`
	Statuses []string `json:"statuses,omitempty"`
	// States holds hashes of states, by step.
	States map[string][]string `json:"states,omitempty"`
}

// ShownBy returns the states that the runs in in.All have shown.
func ShownBy(in Input, mask *state.Mask) *Shown {
	s := &Shown{States: map[string][]string{}}
	var runs []*stateReader
	for _, run := range in.All {
		runs = append(runs, newStateReader(in, run, mask))
	}
	for _, r := range runs {
		for _, c := range r.run.History.Changes {
			if r.authored[c.Revision] {
				s.note(c)
			}
		}
	}
	for _, r := range runs {
		for _, step := range r.run.Steps {
			s.States[step.Name] = append(s.States[step.Name], r.statesIn(step, s)...)
		}
	}
	for name, states := range s.States {
		slices.Sort(states)
		s.States[name] = slices.Compact(states)
	}
	return s
}

// note notes that the controller made a change.
func (s *Shown) note(c state.Change) {
	kind := c.Ref.String()
	add := func(list *[]string) {
		if !slices.Contains(*list, kind) {
			*list = append(*list, kind)
		}
	}
	add(&s.Kinds)
	if c.After["status"] != nil && !reflect.DeepEqual(c.Before["status"], c.After["status"]) {
		add(&s.Statuses)
	}
}

// stateReader computes the states of one run.
type stateReader struct {
	*reading
	mask     *state.Mask
	authored map[int64]bool // the revisions that the controller made
}

func newStateReader(in Input, run *evidence.Run, mask *state.Mask) *stateReader {
	in.Reference, in.Change = run, nil
	r := &stateReader{
		reading: &reading{run: run, types: typesOf(in), steps: stepsOf(in), requests: requestsOf(run, in)},
		mask:    mask, authored: map[int64]bool{},
	}
	r.effects()
	for i := range r.requests {
		if q := &r.requests[i]; q.change >= 0 {
			r.authored[run.History.Changes[q.change].Revision] = true
		}
	}
	return r
}

// statesIn returns the states from the beginning of a step until it came to rest.
func (r *stateReader) statesIn(step evidence.Step, s *Shown) []string {
	states := []string{r.stateAt(step.Began, step.Name, s)}
	for _, c := range r.run.History.Between(step.Began, step.Rested) {
		if slices.Contains(s.Kinds, c.Ref.String()) {
			states = append(states, r.stateAt(c.Revision, step.Name, s))
		}
	}
	return states
}

// stateAt returns a hash of the objects of the kinds that the controller writes, at a revision. An object
// counts as the controller has written it last, because how far other controllers have got with it depends
// on chance.
func (r *stateReader) stateAt(revision int64, step string, s *Shown) string {
	now := r.run.History.At(revision)
	own := state.Snapshot{}
	for _, c := range r.run.History.Between(0, revision) {
		if now[c.Ref] != nil && r.authored[c.Revision] {
			own[c.Ref] = c.After
		}
	}
	for ref, object := range now {
		kind := ref.String()
		if _, written := own[ref]; !written && slices.Contains(s.Kinds, kind) {
			own[ref] = object
		}
		if own[ref] != nil && !slices.Contains(s.Statuses, kind) {
			own[ref] = without(own[ref], "status")
		}
	}
	return r.mask.CanonicalAfter(step, own).Hash()
}

// without returns a copy of an object without a field.
func without(object state.Object, field string) state.Object {
	copied := state.Object{}
	for key, value := range object {
		if key != field {
			copied[key] = value
		}
	}
	return copied
}

// mostSecondKills is the number of second kills that are proposed for one recovery. After the first new
// state, most of the following states are new as well.
const mostSecondKills = 3

// SecondKills returns the kills that are worth a run during the recovery that a run with a kill has
// shown: those after a write of the next instance that leads to a new state, in the order of the writes.
func SecondKills(in Input, run *evidence.Run, mask *state.Mask, s *Shown) (kills []fault.SecondKill) {
	killed, known := killedAt(run)
	if run.Fault == nil || run.Fault.Kind != fault.KillLost || !known || s == nil {
		return nil
	}
	first := run.Fault.Point
	seen, sent := map[string]bool{}, map[fault.Point]int{}
	for _, state := range s.States[first.Step] {
		seen[state] = true
	}
	r := newStateReader(in, run, mask)
	for i := range r.requests {
		q := &r.requests[i]
		if q.arrived < killed || q.point.Step != first.Step || q.resting {
			continue
		}
		at := q.point
		at.Occurrence = 0
		sent[at]++
		at.Occurrence = sent[at]
		if q.change < 0 {
			continue
		}
		reached := r.stateAt(run.History.Changes[q.change].Revision, at.Step, s)
		if seen[reached] {
			continue
		}
		seen[reached] = true
		kills = append(kills, fault.SecondKill{Fault: fault.Fault{Kind: fault.KillAgain, Point: first, Again: at}, State: reached})
		if len(kills) == mostSecondKills {
			break
		}
	}
	return kills
}

// killedAt returns the time at which the fault of a run killed the controller. The scenario may have
// killed it before.
func killedAt(run *evidence.Run) (time.Duration, bool) {
	applied := false
	for _, e := range run.Entries {
		applied = applied || e.Fault != nil && e.Fault.What == "applied"
		if applied && e.Process != nil && e.Process.What == "killed" {
			return e.At, true
		}
	}
	return 0, false
}

// Select makes plan entries for second kills, by scenario, at most a number for each. Among kills that lead
// to the same state in the same step, it chooses one. The choice does not depend on the order in which
// the recoveries were seen.
func Select(kills map[string][]fault.SecondKill, most int) (planned []Planned) {
	for scenario, all := range kills {
		byState := map[[2]string]Planned{} // by step and state
		for _, s := range all {
			key := [2]string{s.Fault.Point.Step, s.State}
			p := Planned{ID: idOf(scenario, s.Fault), Scenario: scenario, Fault: s.Fault, Phase: s.Fault.Kind.Phase(), Cost: s.Fault.Kind.Cost()}
			if chosen, known := byState[key]; !known || p.ID < chosen.ID {
				byState[key] = p
			}
		}
		own := slices.SortedFunc(maps.Values(byState), byID)
		own = slices.CompactFunc(own, func(a, b Planned) bool { return a.ID == b.ID })
		planned = append(planned, own[:min(most, len(own))]...)
	}
	slices.SortFunc(planned, byID)
	return planned
}

func byID(a, b Planned) int { return cmp.Compare(a.ID, b.ID) }
