// Package plan decides which faults are worth a run, based on runs without a fault. Each
// planned run has one fault at one point. A plan also gives the reasons why the other
// faults are left out.
//
//	reference runs ─Make─▶ Plan per scenario ─Order─▶ one queue ─Shard─▶ this machine's part
//
// Make uses no clock, and takes random numbers only from Seed, so that the same evidence
// always leads to the same plan.
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

// Input holds everything that a plan is derived from.
type Input struct {
	Scenario *scenario.Scenario
	// Reference is the run without a fault whose requests become the points.
	Reference *evidence.Run
	// All holds all runs without a fault. A request that is missing from some of the runs
	// depends on chance, so faults at such a request rank low.
	All []*evidence.Run
	// Canonical and Change must be the functions with which requests are matched later,
	// see fault.PointOf. Each may be nil.
	Canonical func(namespace, name, resource string) string
	Change    func(*trace.Call) string
	Subject   *subject.Subject
	// OldServer reports whether the API server refuses streaming lists.
	OldServer bool
	// Seed determines the choice among similar objects.
	Seed uint64
	// Occurrences limits how many equal requests of a step become points; 0 means 3.
	Occurrences int
}

// Plan lists the faults for one scenario.
type Plan struct {
	Faults  []Planned `json:"faults"`
	Skipped []Skipped `json:"skipped"`
	// Points is the number of points, including those without a planned fault.
	Points int `json:"points"`
}

// Planned is a planned run with one fault.
type Planned struct {
	// ID depends only on the fault and the scenario.
	ID       string      `json:"id"`
	Scenario string      `json:"scenario"`
	Fault    fault.Fault `json:"fault"`
	// Phase is 1 for faults at writes and reads, 2 for watches and restarts, 3 for stale
	// lists, and 4 for other clients, Leases and endpoints.
	Phase int `json:"phase"`
	// Rank orders the faults of a phase: those most likely to find something have rank 0
	// and come first.
	Rank int `json:"rank"`
	// Cost is the extra time compared with the shortest run, in tenths of a second. It is
	// an estimate.
	Cost int `json:"cost"`
}

// Skipped is a fault that is not worth a run, with the reason.
type Skipped struct {
	Scenario string `json:"scenario"`
	// Fault has no Kind if Why applies to every kind at its point.
	Fault fault.Fault `json:"fault"`
	Why   string      `json:"why"`
	// Times is the number of equal faults that this entry stands for.
	Times int `json:"times"`
}

// Make makes the plan for one scenario.
func Make(in Input) Plan {
	m := &maker{in: in, read: read(in), planned: map[string]bool{}, skipped: map[skipKey]int{}, tried: map[fault.Fault]bool{}}
	m.requests()     // phase 1, and endpoints of phase 4
	m.watches()      // phase 2
	m.restarts()     // phase 2
	m.staleness()    // phase 3
	m.interference() // phase 4
	m.leadership()   // phase 4
	m.outages()      // phase 4
	m.starts()       // phase 4
	m.plan.Points = m.points()
	return m.plan
}

// maker builds a plan.
type maker struct {
	in      Input
	read    *reading
	plan    Plan
	planned map[string]bool
	skipped map[skipKey]int      // index in plan.Skipped
	tried   map[fault.Fault]bool // see proposeOnce
}

type skipKey struct {
	fault fault.Fault
	why   string
}

// propose plans a fault if it is legal and new.
func (m *maker) propose(f fault.Fault, rank int) (planned bool) {
	if ok, why := fault.Legal(f, m.read.facts); !ok {
		m.skip(f, why)
		return false
	}
	name := m.in.Scenario.Name
	id := idOf(name, f)
	if m.planned[id] {
		m.skip(f, "the same fault is already planned")
		return false
	}
	m.planned[id] = true
	phase := f.Kind.Phase()
	if f.Point.AtEndpoint() {
		phase = fault.PhaseOthers
	}
	m.plan.Faults = append(m.plan.Faults, Planned{
		ID: id, Scenario: name, Fault: f, Phase: phase, Rank: rank,
		Cost: f.Kind.Cost() + 5*len(m.in.Scenario.Steps),
	})
	return true
}

// skip notes a fault that is left out. Equal faults are noted once.
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

// points counts the points of the plan.
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

// idOf hashes a fault and its scenario. It omits Behind, which is for human readers and
// may differ when the same scenario is learnt again.
func idOf(scenario string, f fault.Fault) string {
	f.Behind = 0
	data, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encoding a fault: %v", err)) // this cannot happen: a fault contains only strings and numbers
	}
	sum := sha256.Sum256(append([]byte(scenario+"\x00"), data...))
	return hex.EncodeToString(sum[:6])
}

// String returns one line for human readers: the phase, the ID, and the fault with its
// place.
func (p Planned) String() string {
	return fmt.Sprintf("%d  %s  %s: %s%s", p.Phase, p.ID, p.Scenario, p.Fault, inStep(p.Fault.Point))
}

// inStep names the step of a request. For any other point, the text of the fault already
// names the step.
func inStep(p fault.Point) string {
	switch {
	case p.Verb == "":
		return ""
	case p.Step == "":
		return ", at startup"
	}
	return ", in step " + p.Step
}

// String returns one line for human readers.
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

// Write writes the plan as JSON, for human readers and for Read.
func (p Plan) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// Read reads a plan that Write wrote.
func Read(r io.Reader) (Plan, error) {
	var p Plan
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		return Plan{}, fmt.Errorf("reading the plan: %w; make a new plan with koboshi check --plan", err)
	}
	return p, nil
}
