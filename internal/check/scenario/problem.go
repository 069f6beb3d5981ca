package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Problem is a mistake in a scenario. Parse and Validate return all problems in one
// joined error.
type Problem struct {
	// File and Line locate the mistake; Line is 0 if there is no file.
	File string
	Line int
	// Step is the name of the step with the mistake. It is empty if the mistake is not in
	// a named step.
	Step string
	// Field is the path of the mistake in the step or, if Step is empty, in the scenario.
	Field   string
	Message string
}

func (p *Problem) Error() string {
	var where strings.Builder
	switch {
	case p.Line > 0:
		fmt.Fprintf(&where, "%s:%d: ", p.File, p.Line)
	case p.File != "":
		where.WriteString(p.File + ": ")
	}
	if p.Step != "" {
		fmt.Fprintf(&where, "step %q: ", p.Step)
	}
	if p.Field != "" {
		where.WriteString(p.Field + ": ")
	}
	return where.String() + p.Message
}

// place turns complaints into problems. names holds the names of the steps.
func place(complaints []strictyaml.Complaint, file string, lines map[string]int, names []string) []*Problem {
	var all []*Problem
	for _, c := range complaints {
		p := &Problem{File: file, Line: c.Line, Field: c.Path, Message: c.Message}
		if p.Line == 0 {
			p.Line = strictyaml.LineOf(lines, c.Path)
		}
		var number int
		if n, _ := fmt.Sscanf(c.Path, "steps[%d]", &number); n == 1 && number < len(names) && names[number] != "" {
			_, field, _ := strings.Cut(c.Path, "]")
			p.Step, p.Field = names[number], strings.TrimPrefix(field, ".")
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

func join(problems []*Problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, p)
	}
	return errors.Join(all...)
}
