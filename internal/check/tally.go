package check

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// tally counts the runs.
type tally struct {
	mu     sync.Mutex
	report *report.Report
	kinds  map[tried]*report.Tried
	shown  map[shown]int // the number of a run's findings that were not withdrawn
}

func newTally(r *report.Report) *tally {
	return &tally{report: r, kinds: map[tried]*report.Tried{}, shown: map[shown]int{}}
}

// tried is the key by which runs are counted.
type tried struct {
	scenario string
	kind     fault.Kind
}

// shown identifies a run.
type shown struct {
	scenario string
	fault    fault.Fault
}

func (t *tally) of(p plan.Planned) *report.Tried {
	key := tried{p.Scenario, p.Fault.Kind}
	if t.kinds[key] == nil {
		t.kinds[key] = &report.Tried{Scenario: p.Scenario, Kind: p.Fault.Kind}
	}
	return t.kinds[key]
}

func (t *tally) planned(p plan.Planned) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(p).Planned++
}

// learnt counts the runs without a fault.
func (t *tally) learnt(runs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Runs += runs
	t.report.References += runs
}

// ran counts a run with a fault.
func (t *tally) ran(p plan.Planned, out *fleet.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Runs++
	k := t.of(p)
	k.Runs++
	k.Seconds += out.Took.Seconds()
	switch {
	case out.Inconclusive != "":
		k.Inconclusive++
		t.report.Inconclusive = append(t.report.Inconclusive, notRun(p, out.Inconclusive))
	case out.NotApplied != "":
		k.NotApplied++
		t.report.NotApplied = append(t.report.NotApplied, notRun(p, out.NotApplied))
	case serious(out.Findings) > 0:
		k.Found++
		t.shown[shown{p.Scenario, p.Fault}] = serious(out.Findings)
	default:
		k.Clean++
	}
	if out.Pruned {
		k.Pruned++
	}
}

// serious counts the findings that are not only remarks.
func serious(found []judge.Finding) (n int) {
	for _, f := range found {
		if !f.Verdict.IsRemark() {
			n++
		}
	}
	return n
}

// confirmed counts a run for the confirmation of a finding.
func (t *tally) confirmed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Runs++
	t.report.Confirmations++
}

// upgraded counts a run that replaces the version of the controller.
func (t *tally) upgraded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Runs++
	t.report.Upgrades++
}

// doubtful withdraws a finding that was not confirmed. If the run has no other findings,
// it becomes inconclusive.
func (t *tally) doubtful(p plan.Planned, f judge.Finding, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := shown{p.Scenario, p.Fault}
	if t.shown[run]--; t.shown[run] == 0 {
		k := t.of(p)
		k.Found--
		k.Inconclusive++
	}
	not := notRun(p, why)
	not.Suspicion = &f
	t.report.Inconclusive = append(t.report.Inconclusive, not)
}

// onlyLate withdraws a finding that has become a remark. If the run has no other findings, it becomes
// clean.
func (t *tally) onlyLate(p plan.Planned) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := shown{p.Scenario, p.Fault}
	if t.shown[run]--; t.shown[run] == 0 {
		k := t.of(p)
		k.Found--
		k.Clean++
	}
}

func (t *tally) leftOut(p plan.Planned, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.LeftOut = append(t.report.LeftOut, notRun(p, why))
}

func (t *tally) runs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report.Runs
}

// all returns the counts ordered by scenario, and within a scenario in the order of
// fault.Kinds.
func (t *tally) all() (all []report.Tried) {
	t.mu.Lock()
	defer t.mu.Unlock()
	order := fault.Kinds()
	for _, k := range t.kinds {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b report.Tried) int {
		return cmp.Or(strings.Compare(a.Scenario, b.Scenario), cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)))
	})
	return all
}

func notRun(p plan.Planned, why string) report.NotRun {
	return report.NotRun{Scenario: p.Scenario, Fault: p.Fault, Why: why}
}
