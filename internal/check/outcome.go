package check

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// outcome collects the results of the labs. Several labs may report at the same time.
type outcome struct {
	Options
	began time.Time
	tally *tally

	mu      sync.Mutex
	used    map[judge.Unused]bool    // permissions that only runs with a fault needed
	lessons map[string]*fleet.Lesson // keyed by the name of the scenario
	result  *Result
}

func newOutcome(o Options) *outcome {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	r := &report.Report{Version: 1, Subject: o.Subject.Name, Command: o.Command, Args: o.Args, Seed: o.Seed, Started: time.Now(), Sources: o.Sources}
	if o.Shards > 1 {
		r.Shard = fmt.Sprintf("%d/%d", o.Shard, o.Shards)
	}
	return &outcome{
		Options: o, began: time.Now(), lessons: map[string]*fleet.Lesson{}, used: map[judge.Unused]bool{}, tally: newTally(r),
		result: &Result{Report: r, Traces: map[string][]trace.Entry{}, Scenarios: map[string]*scenario.Scenario{}},
	}
}

// learnt adds the lesson of a scenario, and the findings that occurred without a fault.
func (o *outcome) learnt(l *fleet.Lesson) {
	o.describe(l)
	o.tally.learnt(l.Runs)
	for _, f := range l.Findings {
		f.Seed, f.Attempts, f.Reproduced = o.Seed, l.Runs, l.Runs
		f.FoundAfterRuns, f.FoundAfterSeconds = o.tally.runs(), time.Since(o.began).Seconds()
		o.mu.Lock()
		added := o.result.Report.Add(f)
		o.mu.Unlock()
		for _, f := range added {
			o.kept(f, l.Trace)
		}
	}
}

// describe adds the scenario of a lesson to the report.
func (o *outcome) describe(l *fleet.Lesson) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lessons[l.Scenario.Name] = l
	o.result.Scenarios[l.Scenario.Name] = l.Scenario
	r := o.result.Report
	learnt := report.Scenario{Name: l.Scenario.Name, File: o.Files[l.Scenario.Name], Kind: o.kindOf(l.Scenario), Steps: len(l.Scenario.Steps), Writes: l.Writes, Seconds: l.Took.Seconds()}
	if l.Reference != nil {
		learnt.Masked, learnt.Unseen, learnt.Blind = l.Reference.Mask.Fields(), l.Reference.Mask.Unseen(), l.Reference.Blind
	}
	r.Scenarios = append(r.Scenarios, learnt)
	for _, text := range l.Dropped {
		r.Notes = append(r.Notes, "left out: "+text)
	}
	if note := electing(l.Lease); l.Lease > 0 && !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
}

// electing returns the note about a controller that elects a leader in every run.
func electing(lease time.Duration) string {
	return fmt.Sprintf("the controller elects a leader in every run, so after a kill its successor waits up to %s for the Lease to expire; "+
		"runs are shorter if the controller elects a leader only when it gets the arguments in --election", lease)
}

// notLearnt adds a note about a scenario that was not run, because the budget was used up.
func (o *outcome) notLearnt(sc *scenario.Scenario) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Report.NotLearnt = append(o.result.Report.NotLearnt, sc.Name)
	o.result.Report.Notes = append(o.result.Report.Notes,
		fmt.Sprintf("scenario %s was not run: the budget was used up while other scenarios were learned", sc.Name))
}

// kindOf returns the kind that a scenario is about: the kind of the first object in its
// steps that the controller reconciles.
func (o *outcome) kindOf(sc *scenario.Scenario) string {
	for _, step := range sc.Steps {
		for _, m := range step.Apply {
			version, _ := m.Object["apiVersion"].(string)
			kind, _ := m.Object["kind"].(string)
			name := schema.FromAPIVersionAndKind(version, kind).GroupKind().String()
			if slices.Contains(o.Subject.Primary, name) {
				return name
			}
		}
	}
	return ""
}

// kept stores the trace of a finding and announces the finding.
func (o *outcome) kept(f judge.Finding, entries []trace.Entry) {
	o.mu.Lock()
	o.result.Traces[f.ID] = entries
	o.mu.Unlock()
	o.Observer.Found(f)
}

// doubtful stores a finding that was not confirmed, with its trace. An unconfirmed finding
// may be caused by a rare race.
func (o *outcome) doubtful(p plan.Planned, entries []trace.Entry, f judge.Finding, why string) {
	if f.Verdict.IsRemark() {
		return // a remark that may be wrong has no use
	}
	o.tally.doubtful(p, f, why)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.result.Traces[f.ID] = entries
}

// report completes the report.
func (o *outcome) report(found []judge.Finding) *Result {
	r := o.result.Report
	r.Add(found...)
	r.Tried = o.tally.all()
	r.Unused = o.unused()
	r.Seconds = time.Since(o.began).Seconds()
	r.Sort()
	return o.result
}

// needed remembers permissions that a run with a fault needed.
func (o *outcome) needed(used []judge.Unused) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, u := range used {
		o.used[u] = true
	}
}

// unused lists the permissions that no run needed, in any scenario. A permission may be needed
// only after a fault, for example to read what another instance has written.
func (o *outcome) unused() (unused []judge.Unused) {
	first := true
	for _, l := range o.lessons {
		if first {
			unused, first = slices.Clone(l.Unused), false
		}
		unused = slices.DeleteFunc(unused, func(u judge.Unused) bool { return o.used[u] || !slices.Contains(l.Unused, u) })
	}
	return unused
}
