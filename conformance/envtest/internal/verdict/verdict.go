// Package verdict judges the outcomes that the same specs had with stock
// programs and with Koboshi's.
package verdict

import (
	"maps"
	"slices"
)

// The sides that are compared.
const (
	Stock = iota
	Koboshi
)

// An Outcome is what became of one spec in one run of its suite.
type Outcome struct {
	Word string // passed, failed, skipped, ...
	Why  string
}

// absent is the outcome of a spec that a run has not reported: its suite
// crashed, or an earlier spec stopped the others.
const absent = "not run"

// A Table holds the outcomes of a suite's specs, run by run.
type Table struct {
	rounds int
	specs  map[string]*[2][]Outcome
}

// Add enters one run on each side.
func (t *Table) Add(runs [2]map[string]Outcome) {
	if t.specs == nil {
		t.specs = map[string]*[2][]Outcome{}
	}
	for _, run := range runs {
		for name := range run {
			if t.specs[name] == nil {
				t.specs[name] = &[2][]Outcome{missing(t.rounds), missing(t.rounds)}
			}
		}
	}
	for name, sides := range t.specs {
		for side, run := range runs {
			o, ok := run[name]
			if !ok {
				o.Word = absent
			}
			sides[side] = append(sides[side], o)
		}
	}
	t.rounds++
}

func missing(n int) []Outcome {
	return slices.Repeat([]Outcome{{Word: absent}}, n)
}

// A Kind of finding.
type Kind string

// What a spec can be found to be, the worst first. A spec that is none of
// these had one and the same outcome in all runs.
const (
	// Worse: with stock it passed in every run, with Koboshi in none.
	Worse Kind = "worse"
	// Other: the outcomes differ in every run and it is not plainly worse, such
	// as failing with stock alone. It is a difference all the same.
	Other Kind = "other"
	// Flaky: the outcomes are not the same on both sides in every run, and the
	// sides share one.
	Flaky Kind = "flaky"
)

// A Finding is a spec whose outcomes are not all the same.
type Finding struct {
	Name     string
	Kind     Kind
	Outcomes [2][]Outcome
}

// Findings in the order of the specs' names.
func (t *Table) Findings() (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(t.specs)) {
		if kind := judge(*t.specs[name]); kind != "" {
			found = append(found, Finding{Name: name, Kind: kind, Outcomes: *t.specs[name]})
		}
	}
	return found
}

func judge(sides [2][]Outcome) Kind {
	stock, koboshi := words(sides[Stock]), words(sides[Koboshi])
	switch {
	case len(stock) == 1 && slices.Equal(stock, koboshi):
		return ""
	case slices.Equal(stock, []string{"passed"}) && !slices.Contains(koboshi, "passed"):
		return Worse
	case !slices.ContainsFunc(koboshi, func(word string) bool { return slices.Contains(stock, word) }):
		return Other
	}
	return Flaky
}

// words are the different outcomes, sorted.
func words(outcomes []Outcome) []string {
	set := map[string]bool{}
	for _, o := range outcomes {
		set[o.Word] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Count of specs by what became of them in the first run on one side.
func (t *Table) Count(side int) map[string]int {
	count := map[string]int{}
	for _, sides := range t.specs {
		count[sides[side][0].Word]++
	}
	return count
}

// Failing names the specs that failed on both sides alike: they are listed, so
// that nobody takes a comparison of failures for a proof.
func (t *Table) Failing() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(t.specs)) {
		word := t.specs[name][Stock][0].Word
		if judge(*t.specs[name]) == "" && word != "passed" && word != "skipped" && word != "pending" {
			names = append(names, name)
		}
	}
	return names
}
