package cost

import (
	"cmp"
	"maps"
	"slices"
)

// Budget is the number of requests that a scenario needs, by the names of Requests.
type Budget map[string]int32

// A run never sends exactly as many requests as another one: a conflict or a late event costs a few
// more. So a number counts only above half as many again, and only if the difference is at least
// spare, which a second reconcile of a small controller may need. The budget holds the largest number
// of several runs, and is compared with the smallest.
const (
	factor = 1.5
	spare  = 10
)

// exceeds reports whether a number of requests is clearly larger than another.
func exceeds(n, budget int) bool {
	return n >= budget+spare && float64(n) > factor*float64(budget)
}

// Budget returns the budget that the runs need. A request that only some of the runs sent is left to
// chance. A number of the old budget that still fits is kept, so that a budget does not change from run
// to run.
func (u Usage) Budget(old Budget) Budget {
	budget := Budget{}
	for _, r := range u.Requests {
		if r.Least == 0 {
			continue
		}
		budget[r.Name] = int32(r.Most)
		if before, known := old[r.Name]; known && !exceeds(r.Least, int(before)) && !exceeds(int(before), r.Most) {
			budget[r.Name] = before
		}
	}
	return budget
}

// Excess is a kind of request that is sent more often than the budget allows. Budget is 0 for a
// request that is not in the budget.
type Excess struct {
	Name        string
	Budget, Now int
}

// Over returns the requests that every run sent more often than the budget allows.
func (u Usage) Over(b Budget) (all []Excess) {
	for _, r := range u.Requests {
		budget := int(b[r.Name])
		if exceeds(r.Least, budget) {
			all = append(all, Excess{Name: r.Name, Budget: budget, Now: r.Least})
		}
	}
	return all
}

const (
	// fewestLists is the number of lists in one scenario from which a resource counts as listed again
	// and again, and fewestSteps the number of steps.
	fewestLists, fewestSteps = 5, 2
)

// Whole describes a whole resource that is listed again and again. Of all scenarios that show it, it
// names the one with the most lists.
type Whole struct {
	Resource  string
	Namespace string // empty if the lists were not limited to a namespace
	Scenario  string
	Times     int // in the scenario
	InSteps   int // steps with a list
	Steps     int // all steps
	AlsoIn    []string
}

// Again returns the resources that are listed again and again, by scenario: at least five times and in
// more than half of the steps, in every run. So the number of lists grows with the number of changes,
// as it does if each reconcile lists the resource.
func Again(usages map[string]Usage) (found []Whole) {
	at := map[string]int{}
	for _, scenario := range slices.Sorted(maps.Keys(usages)) {
		u := usages[scenario]
		for _, l := range u.Lists {
			if l.Times < fewestLists || l.Steps < fewestSteps || 2*l.Steps <= u.Steps {
				continue
			}
			w := Whole{Resource: l.Resource, Namespace: l.Namespace, Scenario: scenario, Times: l.Times, InSteps: l.Steps, Steps: u.Steps}
			i, known := at[l.Resource]
			if !known {
				at[l.Resource] = len(found)
				found = append(found, w)
				continue
			}
			found[i] = found[i].with(w)
		}
	}
	slices.SortFunc(found, func(a, b Whole) int { return cmp.Compare(a.Resource, b.Resource) })
	return found
}

// with returns one description of lists of the same resource in two places.
func (w Whole) with(other Whole) Whole {
	if other.Times > w.Times {
		w, other = other, w
	}
	for _, scenario := range append([]string{other.Scenario}, other.AlsoIn...) {
		if scenario != w.Scenario && !slices.Contains(w.AlsoIn, scenario) {
			w.AlsoIn = append(w.AlsoIn, scenario)
		}
	}
	w.AlsoIn = slices.DeleteFunc(w.AlsoIn, func(scenario string) bool { return scenario == w.Scenario })
	slices.Sort(w.AlsoIn)
	return w
}
