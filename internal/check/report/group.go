package report

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// group holds the findings about one field of one object, or about the object as a whole. A
// finding that names no place has its own group.
type group struct {
	// place describes what the findings have in common; it is "" in a group of one.
	place    string
	findings []numbered
}

// numbered is a finding with its number in the report, counted from 1.
type numbered struct {
	number int
	judge.Finding
}

// groups returns the findings grouped by place. The groups are in the order of their first
// findings, so the most serious finding is still the first. The findings of a group have
// consecutive numbers.
func (r *Report) groups() []group {
	var all []group
	at := map[string]int{}
	for _, f := range r.Findings {
		key := commonPlace(f)
		i, known := at[key]
		if !known || key == "" {
			i = len(all)
			all = append(all, group{})
			at[key] = i
		}
		all[i].findings = append(all[i].findings, numbered{Finding: f})
	}
	number := 0
	for i := range all {
		g := &all[i]
		for j := range g.findings {
			number++
			g.findings[j].number = number
		}
		if len(g.findings) > 1 {
			g.place = inline(commonPlace(g.findings[0].Finding))
		}
	}
	return all
}

// commonPlace returns what a finding is about: a field or an object, a function that panics, or a
// request. It returns "" if the finding names nothing of this kind.
func commonPlace(f judge.Finding) string {
	switch {
	case len(f.Differences) > 0:
		return mainPlace(f)
	case f.Frame != "":
		return f.Frame
	}
	return f.Request
}

// heading introduces a group of several findings, such as "2 to 4: data of Secret default/a".
func (g group) heading() string {
	first, last := g.findings[0].number, g.findings[len(g.findings)-1].number
	between := "to"
	if last == first+1 {
		between = "and"
	}
	return fmt.Sprintf("Findings %d %s %d concern %s", first, between, last, g.place)
}
