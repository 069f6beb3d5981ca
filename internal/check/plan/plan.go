// Package plan says which faults are worth a run, from what runs without a fault
// showed: one fault at one point each, and why the others are left out.
//
//	reference runs ─Make─▶ Plan per scenario ─Order─▶ one queue ─Shard─▶ this machine's part
//
// Make looks at no clock and draws no random number that Seed does not give: the
// same evidence makes the same plan.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Input is what a plan is made of.
type Input struct {
	Scenario *scenario.Scenario
	// Reference is one of the runs without a fault; points are named by it.
	Reference *evidence.Run
	// All are all runs without a fault. A request that is not in all of them
	// depends on chance and comes late.
	All []*evidence.Run
	// Canonical and Change have to be the ones that the runs are matched by, see
	// fault.PointOf. Each may be nil.
	Canonical func(namespace, name, resource string) string
	Change    func(*trace.Call) string
	Subject   *subject.Subject
	// OldServer says that the API server refuses streaming lists.
	OldServer bool
	// Seed chooses among objects that are alike.
	Seed uint64
	// Occurrences is how often a request that repeats itself in a step is a point;
	// zero means 3.
	Occurrences int
}

// Plan is what is to be done to one scenario.
type Plan struct {
	Faults  []Planned `json:"faults"`
	Skipped []Skipped `json:"skipped"`
	// Points is how many places there are, also those at which nothing is done.
	Points int `json:"points"`
}

// Planned is one run to be.
type Planned struct {
	// ID is the same for the same fault in the same scenario, always.
	ID       string      `json:"id"`
	Scenario string      `json:"scenario"`
	Fault    fault.Fault `json:"fault"`
	// Phase is 1 for faults at writes and reads, 2 for watches and restarts, 3 for
	// stale lists, 4 for other people, leases and endpoints.
	Phase int `json:"phase"`
	// Rank orders within a phase by how likely a fault finds something: 0 first.
	Rank int `json:"rank"`
	// Cost is in about tenths of a second more than the shortest of runs.
	Cost int `json:"cost"`
}

// Skipped is a fault that needs no run, and why.
type Skipped struct {
	Scenario string `json:"scenario"`
	// Fault has no Kind if Why is true of every kind at its point.
	Fault fault.Fault `json:"fault"`
	Why   string      `json:"why"`
	// Times is how often the same was found.
	Times int `json:"times"`
}

// Make makes the plan of one scenario.
func Make(in Input) Plan {
	m := &maker{in: in, read: read(in), planned: map[string]bool{}, skipped: map[skipKey]int{}}
	m.requests()     // phase 1, and endpoints of phase 4
	m.watches()      // phase 2
	m.restarts()     // phase 2
	m.staleness()    // phase 3
	m.interference() // phase 4
	m.leadership()   // phase 4
	m.plan.Points = m.points()
	return m.plan
}

// maker is a plan that is being made.
type maker struct {
	in      Input
	read    *reading
	plan    Plan
	planned map[string]bool
	skipped map[skipKey]int // index in plan.Skipped
}

type skipKey struct {
	fault fault.Fault
	why   string
}

// propose plans a fault if it is legal and new. Rank is what the caller knows of
// its likelihood.
func (m *maker) propose(f fault.Fault, phase, rank int) {
	if ok, why := fault.Legal(f, m.read.facts); !ok {
		m.skip(f, why)
		return
	}
	name := m.in.Scenario.Name
	id := idOf(name, f)
	if m.planned[id] {
		m.skip(f, "the same as one that is planned")
		return
	}
	m.planned[id] = true
	m.plan.Faults = append(m.plan.Faults, Planned{
		ID: id, Scenario: name, Fault: f, Phase: phase, Rank: rank,
		Cost: cost(f.Kind) + 5*len(m.in.Scenario.Steps),
	})
}

// skip notes a fault that is not done. Many of the same are noted once.
func (m *maker) skip(f fault.Fault, why string) {
	key := skipKey{f, why}
	key.fault.Point.Occurrence = 0
	if i, ok := m.skipped[key]; ok {
		m.plan.Skipped[i].Times++
		return
	}
	m.skipped[key] = len(m.plan.Skipped)
	m.plan.Skipped = append(m.plan.Skipped, Skipped{Scenario: m.in.Scenario.Name, Fault: f, Why: why, Times: 1})
}

// points counts the places of the plan.
func (m *maker) points() int {
	places := map[fault.Point]bool{}
	for _, p := range m.plan.Faults {
		places[p.Fault.Point] = true
	}
	for _, s := range m.plan.Skipped {
		places[s.Fault.Point] = true
	}
	return len(places)
}

// idOf hashes what a fault means. Behind is left out: it is for people, and may
// differ between two learnings of the same.
func idOf(scenario string, f fault.Fault) string {
	f.Behind = 0
	data, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encoding a fault: %v", err)) // strings and numbers only
	}
	sum := sha256.Sum256(append([]byte(scenario+"\x00"), data...))
	return hex.EncodeToString(sum[:6])
}

// String is one line for people: the phase, the ID, and what is done where.
func (p Planned) String() string {
	return fmt.Sprintf("%d  %s  %s: %s%s", p.Phase, p.ID, p.Scenario, p.Fault, inStep(p.Fault.Point))
}

// inStep tells the step of a request; of other points the sentence tells it.
func inStep(p fault.Point) string {
	switch {
	case p.Verb == "":
		return ""
	case p.Step == "":
		return ", at its start"
	}
	return ", in step " + p.Step
}

// String is one line for people.
func (s Skipped) String() string {
	what := s.Fault.String() + inStep(s.Fault.Point)
	if s.Fault.Kind == "" {
		what = "any fault at " + s.Fault.Point.String()
	}
	times := ""
	if s.Times > 1 {
		times = fmt.Sprintf(" (%d times)", s.Times)
	}
	return fmt.Sprintf("%s: %s: %s%s", s.Scenario, what, s.Why, times)
}

// Write writes the plan as JSON, to be looked at and read again.
func (p Plan) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// Read reads what Write wrote.
func Read(r io.Reader) (Plan, error) {
	var p Plan
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		return Plan{}, fmt.Errorf("reading the plan: %w; make a new one with koboshi check --plan", err)
	}
	return p, nil
}
