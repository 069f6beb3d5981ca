package judge

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// fewest is the number of fault-free runs that a reference needs. Two runs would miss
// differences that occur only now and then.
const fewest = 3

// Reference holds the results of a scenario without a fault. A Reference can be encoded as JSON.
type Reference struct {
	Scenario *scenario.Scenario `json:"scenario"`
	Mask     *state.Mask        `json:"mask"`
	Steps    []StepReference    `json:"steps"`
	// Exits reports whether the controller exited even without a fault.
	Exits bool `json:"exits,omitempty"`
	// Advances lists the fields of statuses that a legal disturbance may advance: numbers
	// that grow, and lists that get longer.
	Advances []Advance `json:"advances,omitempty"`
	// Steady lists the random values outside of Secrets that a legal disturbance does not
	// change, each as object and path.
	Steady []string `json:"steady,omitempty"`
	// Histories lists the families of objects that are histories, by the beginning of their
	// canonical names.
	Histories []string `json:"histories,omitempty"`
	// Exposed lists the values of Secrets that the controller makes readable even without a fault.
	Exposed []string `json:"exposed,omitempty"`
	// Reowned lists the objects that the controller takes from a living owner even without a fault,
	// each with both owners.
	Reowned []string `json:"reowned,omitempty"`
	// Broken lists the rules of the scenario that do not hold even without a fault, each with the
	// canonical name of the object.
	Broken []string `json:"broken,omitempty"`
	// Anyway lists the differences between two steps that come about even if nothing is changed between them, each
	// as object and path.
	Anyway []string `json:"anyway,omitempty"`
	// Doubts lists the places where the reference itself is wrong.
	Doubts []Doubt `json:"doubts,omitempty"`
	// Suite holds what is known about the test suite of the scenario; nil if it has none.
	Suite *SuiteReference `json:"suite,omitempty"`
	// Blind lists the controller's own objects that cannot be compared, if these are at least half
	// of all objects that it makes. If there are such objects, the check proves little.
	Blind []string `json:"blind,omitempty"`
}

// StepReference holds the results of one step without a fault.
type StepReference struct {
	Name  string      `json:"name"`
	World state.World `json:"world"`
	// Creates and Deletes hold, for each canonical name, the maximum number of creations
	// and deletions during the step in any run.
	Creates map[string]int `json:"creates,omitempty"`
	Deletes map[string]int `json:"deletes,omitempty"`
	// Upsets holds the maximum number of destructive updates that the controller revises in the
	// step, by object and field. Rollouts holds the maximum number of rollouts by workload.
	Upsets   map[string]int `json:"upsets,omitempty"`
	Rollouts map[string]int `json:"rollouts,omitempty"`
	// Ledger holds the external resources as canonical lines. Counted reports whether only the
	// number of lines is the same in all runs. NoLedger reports whether there is nothing to
	// compare.
	Ledger   []string `json:"ledger,omitempty"`
	Counted  bool     `json:"counted,omitempty"`
	NoLedger bool     `json:"noLedger,omitempty"`
	// Loops lists the writes that continue at rest even without a fault, each as verb,
	// resource and object.
	Loops []string `json:"loops,omitempty"`
	// Passing lists the conditions that are False after the step and were True before, but never
	// True at rest, each as object and type.
	Passing []string `json:"passing,omitempty"`
	// Fresh lists the random values that change in this step even without a fault.
	Fresh []string `json:"fresh,omitempty"`
}

// A DifferentError reports runs without a fault that differ in ways that no mask can hide. The
// reason may be a pause of the controller that was mistaken for rest.
type DifferentError struct{ message string }

func (e *DifferentError) Error() string { return e.message }

// NewReference learns the results of a scenario from runs without a fault. NewReference fails if
// there are too few runs, or if they differ in ways that no mask can hide.
func NewReference(sc *scenario.Scenario, runs []*evidence.Run) (*Reference, error) {
	if err := usable(runs); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", sc.Name, err)
	}
	return learn(sc, runs)
}

// learn returns a reference of any number of runs. With one run, it does not know what differs between runs anyway.
func learn(sc *scenario.Scenario, runs []*evidence.Run) (*Reference, error) {
	var snapshots []map[string]state.Snapshot
	for _, run := range runs {
		at := map[string]state.Snapshot{}
		for _, step := range run.Steps {
			at[step.Name] = run.History.At(step.Rested)
		}
		snapshots = append(snapshots, at)
	}
	r := &Reference{Scenario: sc, Suite: newSuite(sc, runs)}
	r.Mask = state.LearnMore(r.Suite.mask(), snapshots, sc.Ignore, ownOf(runs))
	for step, left := range r.Mask.Unexplained(snapshots) {
		return nil, &DifferentError{fmt.Sprintf("scenario %s, step %s: the runs without a fault differ in %s %s; add this field to the scenario's ignore list", sc.Name, step, left[0].Object, left[0].Path)}
	}
	if object := r.unsteady(); object != "" {
		return nil, &DifferentError{fmt.Sprintf("scenario %s: in some runs without a fault, %s does not exist when the controller is at rest; make the scenario wait for this object", sc.Name, object)}
	}
	for i := range runs[0].Steps {
		r.Steps = append(r.Steps, r.step(i, runs, snapshots))
	}
	r.Blind, r.Histories = r.blind(runs), historiesOf(runs, r.Mask)
	for _, run := range runs {
		r.Exits = r.Exits || len(exits(run)) > 0
		if err := r.learnBroken(newInput(r, run, nil)); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", sc.Name, err)
		}
	}
	return r, nil
}

// LearnAnyway learns from a run with the same steps, in which nothing was changed, what differs between them anyway,
// such as an object that the controller makes some time after its start.
func (r *Reference) LearnAnyway(unchanged *evidence.Run) {
	in := newInput(r, unchanged, nil)
	for _, s := range r.repeated() {
		if in.indexOf(s.SameAs) < 0 || in.indexOf(s.Name) < 0 {
			continue
		}
		for _, d := range in.dependent(s.SameAs, s.Name) {
			r.Anyway = append(r.Anyway, d.Object+" "+d.Path)
		}
	}
}

// learnBroken learns what the controller does wrong without a fault, and what is therefore not the
// consequence of a fault. learnBroken fails if a rule of the scenario cannot be evaluated.
func (r *Reference) learnBroken(in *input) error {
	add := func(list *[]string, what string) {
		if !slices.Contains(*list, what) {
			*list = append(*list, what)
		}
	}
	for _, e := range in.exposures() {
		add(&r.Exposed, e.what)
	}
	for _, t := range in.handovers() {
		add(&r.Reowned, t.what())
	}
	for _, v := range in.violations() {
		add(&r.Broken, v.what)
	}
	return in.unevaluated()
}

// usable returns an error if the runs cannot be compared.
func usable(runs []*evidence.Run) error {
	if len(runs) < fewest {
		return fmt.Errorf("%d runs without a fault are too few; at least %d are needed", len(runs), fewest)
	}
	if len(runs[0].Steps) == 0 {
		return errors.New("a run without a fault has no steps; check whether the controller starts")
	}
	for i, run := range runs {
		if run.Inconclusive != "" {
			return fmt.Errorf("run %d, in which no fault was injected, is inconclusive: %s", i+1, run.Inconclusive)
		}
		if !slices.EqualFunc(runs[0].Steps, run.Steps, func(a, b evidence.Step) bool { return a.Name == b.Name }) {
			return fmt.Errorf("run %d without a fault went through different steps from the first run; check whether the controller comes to rest", i+1)
		}
		for _, step := range run.Steps {
			if step.Restless {
				return fmt.Errorf("step %s, run %d without a fault: the controller does not come to rest; raise rest.timeout or fix the controller", step.Name, i+1)
			}
		}
	}
	return nil
}

// unsteady returns an object that the scenario itself names but that exists at rest only in
// some runs. If an object that the scenario names were ignored, nothing would be checked.
func (r *Reference) unsteady() string {
	for _, step := range r.Scenario.Steps {
		for _, m := range step.Apply {
			name := objectName(m.Object)
			for _, name := range []string{name, inDefault(name)} {
				if name != "" && slices.Contains(r.Mask.Objects, name) {
					return name
				}
			}
		}
	}
	return ""
}

// objectName returns the canonical name of the object in a manifest.
func objectName(object state.Object) string {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if kind == "" {
		return ""
	}
	if group, _, found := strings.Cut(version, "/"); found {
		kind += "." + group
	}
	name := object.Metadata("name")
	if space := object.Metadata("namespace"); space != "" {
		name = space + "/" + name
	}
	return kind + " " + name
}

// inDefault adds the default namespace to the name of an object without a namespace.
func inDefault(name string) string { return strings.Replace(name, " ", " default/", 1) }

func (r *Reference) step(i int, runs []*evidence.Run, snapshots []map[string]state.Snapshot) StepReference {
	name := runs[0].Steps[i].Name
	s := StepReference{Name: name, World: r.Mask.CanonicalAfter(name, snapshots[0][name]), Creates: map[string]int{}, Deletes: map[string]int{},
		Upsets: map[string]int{}, Rollouts: map[string]int{}}
	var ledgers [][]string
	for _, run := range runs {
		labels := r.Mask.Label(run.History)
		tally := r.Mask.Tally(run.History, labels, run.Steps[i].Began, end(run, i))
		most(s.Creates, tally.Creates)
		most(s.Deletes, tally.Deletes)
		s.learnUpdates(r.Mask, labels, run, i)
		ledgers = append(ledgers, canonicalLedger(run.Steps[i].Ledger))
		for _, l := range idleLoops(r.Mask, run, run.Steps[i]) {
			s.Loops = append(s.Loops, l.what)
		}
		s.Passing = append(s.Passing, passing(labels, run, i)...)
		if i > 0 {
			for _, place := range renewed(r.Mask, labels, run, span{run.Steps[i-1].Rested, run.Steps[i].Rested}) {
				s.Fresh = append(s.Fresh, place.String())
			}
		}
	}
	slices.Sort(s.Loops)
	s.Loops = slices.Compact(s.Loops)
	slices.Sort(s.Fresh)
	s.Fresh = slices.Compact(s.Fresh)
	slices.Sort(s.Passing)
	s.Passing = slices.Compact(s.Passing)
	s.learnLedger(ledgers)
	return s
}

func most(into, from map[string]int) {
	for key, n := range from {
		into[key] = max(into[key], n)
	}
}

// end returns the last revision that belongs to a step.
func end(run *evidence.Run, i int) int64 {
	if i+1 < len(run.Steps) {
		return run.Steps[i+1].Began
	}
	return max(run.Steps[i].Rested, run.History.Last())
}

var (
	ledgerUUID = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	ledgerTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)
)

// canonicalLedger replaces the times and UUIDs in a ledger, because they differ in each
// run.
func canonicalLedger(lines []string) []string {
	if lines == nil {
		return nil
	}
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, ledgerUUID.ReplaceAllString(ledgerTime.ReplaceAllString(line, "TIME"), "UUID"))
	}
	sort.Strings(out)
	return out
}

// learnLedger determines how the ledger can be compared.
func (s *StepReference) learnLedger(ledgers [][]string) {
	s.Ledger = ledgers[0]
	s.NoLedger = ledgers[0] == nil
	for _, other := range ledgers[1:] {
		if !slices.Equal(s.Ledger, other) {
			s.Counted = true
		}
		if len(s.Ledger) != len(other) || other == nil {
			s.NoLedger = true
		}
	}
}

// World returns the state that a step leads to, or an empty world if there is no such
// step.
func (r *Reference) World(step string) state.World {
	s := r.find(step)
	if s == nil {
		return state.World{Objects: map[string][]any{}}
	}
	return s.World
}

func (r *Reference) find(step string) *StepReference {
	for i := range r.Steps {
		if r.Steps[i].Name == step {
			return &r.Steps[i]
		}
	}
	return nil
}
