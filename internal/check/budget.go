package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/cost"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// requests adds remarks about what the controller costs the API server in the runs without faults, or
// measures a new budget. A replay is about another question, and an upgrade runs only parts of
// scenarios.
func (o *outcome) requests() {
	if o.Only || o.Upgrade != nil {
		return
	}
	usages := map[string]cost.Usage{}
	for name, l := range o.lessons {
		if l.Reference != nil && !l.Scenario.HasSuite() && !o.isTooSmallFor(l) {
			usages[name] = l.Usage
		}
	}
	for _, w := range cost.Again(usages) {
		if !slices.Contains(o.Opinions.Requests.Lists, w.Resource) {
			o.remark(judge.ListsWhole(w))
		}
	}
	for _, sc := range o.Scenarios {
		if sc.Seeded { // with another seed, it has other steps
			delete(usages, sc.Name)
		}
	}
	if o.UpdateBudget {
		o.measure(usages)
		return
	}
	o.compare(usages)
}

// remark adds a remark about the runs of a scenario without a fault.
func (o *outcome) remark(f judge.Finding) {
	f.Seed, f.Attempts = o.Seed, o.lessons[f.Scenario].Runs
	f.Reproduced = f.Attempts
	f.Silence = opinions.Silence(f)
	o.result.Report.Add(f)
}

// compare compares the requests of each scenario with its budget.
func (o *outcome) compare(usages map[string]cost.Usage) {
	budget := o.Opinions.Requests.Budget
	if len(budget) == 0 {
		return
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(usages)) {
		allowed, known := budget[name]
		if !known {
			unknown = append(unknown, name)
			continue
		}
		for _, e := range usages[name].Over(allowed) {
			o.remark(judge.OverBudget(name, e))
		}
	}
	if len(unknown) > 0 {
		o.noted(fmt.Sprintf("%s not in the budget of requests (%s); koboshi check --update-budget adds them", noun.Count(len(unknown), "scenario"), strings.Join(unknown, ", ")))
	}
}

// measure stores the requests of each scenario as a new budget. A scenario that is missing would get no
// remark later, so the reason is stored as well.
func (o *outcome) measure(usages map[string]cost.Usage) {
	r := o.result
	r.Budget = map[string]map[string]int32{}
	for name, u := range usages {
		r.Budget[name] = u.Budget(o.Opinions.Requests.Budget[name])
	}
	switch left := r.Report.NotLearnt; {
	case r.Report.Stopped != "":
		r.NoBudget = "the check was " + r.Report.Stopped
	case len(left) > 0:
		r.NoBudget = fmt.Sprintf("scenario %s could not be run without a fault (%s)", left[0].Scenario, left[0].Why)
	case r.Report.Idle != "":
		r.NoBudget = r.Report.Idle
	}
	for _, sc := range o.Scenarios {
		if _, measured := r.Budget[sc.Name]; r.NoBudget == "" && !measured && !sc.Seeded {
			r.NoBudget = fmt.Sprintf("scenario %s has no result without a fault", sc.Name)
		}
	}
}
