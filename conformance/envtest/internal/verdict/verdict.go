// Package verdict compares the outcomes of specs that ran with both stock programs and
// Koboshi.
package verdict

import (
	"maps"
	"slices"
)

// These two sides are compared.
const (
	Stock = iota
	Koboshi
)

// An Outcome is the result of one spec in one run of its suite.
type Outcome struct {
	Word string // passed, failed, skipped, ...
	Why  string
}

// absent is the outcome of a spec that a run did not report, because the suite
// crashed or an earlier spec stopped the others.
const absent = "not run"

// A Table holds the outcomes of a suite's specs for each run.
type Table struct {
	rounds int
	specs  map[string]*[2][]Outcome
}

// Add adds one run on each side.
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

// A Kind classifies a finding.
type Kind string

// These are the kinds of findings, the worst first. A spec without a finding had the same
// outcome in all runs.
const (
	// Worse means that the spec passed in every run with stock, but in none with Koboshi.
	Worse Kind = "worse"
	// Other means that the sides differ in every run, but that Koboshi is not clearly worse, for
	// example because the spec fails only with stock. It still counts as a difference.
	Other Kind = "other"
	// Flaky means that the outcomes of the two sides differ in some run, but the sides
	// have at least one outcome in common.
	Flaky Kind = "flaky"
)

// A Finding is a spec that did not always have the same outcome.
type Finding struct {
	Name     string
	Kind     Kind
	Outcomes [2][]Outcome
}

// Findings returns the findings, sorted by the names of the specs.
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

// words returns the distinct outcomes, sorted.
func words(outcomes []Outcome) []string {
	set := map[string]bool{}
	for _, o := range outcomes {
		set[o.Word] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Count returns the number of specs by their outcome in the first run on one side.
func (t *Table) Count(side int) map[string]int {
	count := map[string]int{}
	for _, sides := range t.specs {
		count[sides[side][0].Word]++
	}
	return count
}

// Failing returns the names of the specs that failed on both sides. The report lists them,
// because two equal failures prove nothing.
func (t *Table) Failing() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(t.specs)) {
		word := t.specs[name][Stock][0].Word
		if judge(*t.specs[name]) == "" && word != "passed" && word != "skipped" && word != "pending" {
			names = append(names, name)
		}
	}
	return names
}
