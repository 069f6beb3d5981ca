package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// SuiteReference holds what runs without a fault have shown about a test suite. The suite is a
// single step of its scenario, so the states in which it waits are found by its turns.
type SuiteReference struct {
	// Mask hides what differs between these states without a fault.
	Mask  *state.Mask `json:"mask"`
	Waits []Wait      `json:"waits,omitempty"`
	// Turns is the number of turns in the longest run. Waits has fewer elements if the runs differ.
	Turns int `json:"turns"`
	// Stall is the Stall of turns that are not known.
	Stall time.Duration `json:"stall"`
}

// Wait is the state that makes a suite go on.
type Wait struct {
	Turn string `json:"turn"`
	// Declared holds the canonical names of the objects that the suite has declared so far.
	Declared []string    `json:"declared"`
	World    state.World `json:"world"`
	// Rested reports whether the state was at rest in all runs. If it was not, some of its fields may
	// have changed later.
	Rested bool `json:"rested,omitempty"`
	// Stall is the time without any event after which the controller has stopped, and the suite waits
	// in vain. Without a fault, no pause in this turn is that long.
	Stall time.Duration `json:"stall"`
}

const (
	// shortestStall is the minimum of a Stall. It is longer than a client's pauses after
	// a few failures.
	shortestStall = 4 * time.Second
	// longestStall is the maximum of a Stall.
	longestStall = 2 * time.Minute
	// briefRest is the time without an event that shows that a state was at rest.
	briefRest = 500 * time.Millisecond
)

// newSuite learns how a suite and the controller take turns, if the scenario has a suite.
func newSuite(sc *scenario.Scenario, runs []*evidence.Run) *SuiteReference {
	at := slices.IndexFunc(runs[0].Steps, func(s evidence.Step) bool { return s.Suite != nil })
	if at < 0 {
		return nil
	}
	r := &SuiteReference{}
	var all [][]turn
	common := -1
	for _, run := range runs {
		turns := turnsOf(run, run.Steps[at])
		if all = append(all, turns); common < 0 {
			common = len(turns)
		}
		common, r.Turns = min(common, sameTurns(all[0], turns)), max(r.Turns, len(turns))
		r.Stall = max(r.Stall, stallAfter(longestPause(run, run.Steps[at].BeganAt, run.Steps[at].Suite.EndedAt)))
	}
	snapshots := make([]map[string]state.Snapshot, len(runs))
	for i, run := range runs {
		snapshots[i] = map[string]state.Snapshot{}
		for _, t := range all[i][:common] {
			snapshots[i][t.name] = run.History.At(t.until)
		}
	}
	r.Mask = state.Learn(snapshots, sc.Ignore, ownOf(runs))
	labels := r.Mask.Label(runs[0].History)
	for n, t := range all[0][:common] {
		w := Wait{Turn: t.name, Declared: declared(labels, all[0][:n+1]), World: r.Mask.CanonicalAfter(t.name, snapshots[0][t.name]), Rested: true}
		for i, run := range runs {
			began, ended := all[i][n].began, all[i][n].end
			w.Rested = w.Rested && ended-Moved(run, ended-1) >= briefRest
			w.Stall = max(w.Stall, stallAfter(longestPause(run, began, ended)))
		}
		r.Waits = append(r.Waits, w)
	}
	return r
}

// Notes describes what cannot be judged of a suite. r may be nil.
func (r *SuiteReference) Notes() (notes []string) {
	switch {
	case r == nil:
	case r.Turns == 0:
		notes = append(notes, "the test suite declared nothing while it ran, so it is unknown what it waits for")
	case len(r.Waits) < r.Turns:
		notes = append(notes, fmt.Sprintf("without faults, the test suite makes only the first %d of its %d changes in the same order in each run; if it stops after another one, only its failure is known (if it has a flag for tests in parallel, allow only one)",
			len(r.Waits), r.Turns))
	}
	return notes
}

// sameTurns returns the number of turns with which both runs begin.
func sameTurns(a, b []turn) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].name == b[n].name {
		n++
	}
	return n
}

// stallAfter returns the Stall for the longest pause that was seen.
func stallAfter(pause time.Duration) time.Duration {
	return min(max(shortestStall, 2*pause), longestStall)
}

// longestPause returns the longest time without an event between two times, beginning with the first
// event.
func longestPause(run *evidence.Run, from, to time.Duration) (longest time.Duration) {
	all := slices.DeleteFunc(moves(run), func(at time.Duration) bool { return at < from || at > to })
	all = append(all, to)
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		longest = max(longest, all[i]-all[i-1])
	}
	return longest
}

// StallIn returns the time without any event after which the suite waits in vain, in the turn in which
// the step of a run is.
func (r *SuiteReference) StallIn(run *evidence.Run, s evidence.Step) time.Duration {
	if turns := turnsOf(run, s); len(turns) > 0 {
		if w := r.wait(turns[len(turns)-1].name); w != nil {
			return w.Stall
		}
	}
	return r.Stall
}

// wait returns the state that a suite waits for in a turn, or nil if it is not known.
func (r *SuiteReference) wait(name string) *Wait {
	for i := range r.Waits {
		if r.Waits[i].Turn == name {
			return &r.Waits[i]
		}
	}
	return nil
}

func (r *SuiteReference) mask() *state.Mask {
	if r == nil {
		return nil
	}
	return r.Mask
}

// deletedIn returns the last states of the resources that a step has deleted for good.
func (in *input) deletedIn(step string) (all []state.Object) {
	if !slices.ContainsFunc(in.ref.Scenario.Steps, func(s scenario.Step) bool { return s.Name == step && s.Suite }) {
		if deleted := in.deletedBy(step); deleted != nil {
			all = append(all, deleted)
		}
		return all
	}
	last := map[state.Ref]state.Object{}
	for _, c := range in.run.History.Changes {
		switch {
		case !slices.Contains(in.subject.Primary, c.Ref.String()) || len(c.Before.Owners())+len(c.After.Owners()) > 0:
		case c.Op == state.Deleted:
			last[c.Ref] = c.Before
		default:
			delete(last, c.Ref)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(last), func(a, b state.Ref) int {
		return strings.Compare(a.String()+" "+a.Namespace+"/"+a.Name, b.String()+" "+b.Namespace+"/"+b.Name)
	}) {
		all = append(all, last[ref])
	}
	return all
}
