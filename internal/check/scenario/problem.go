package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/spelling"
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

// complaint is a problem before its place in the file is known.
type complaint struct {
	path    string // such as steps[2].patch.kind
	message string
	line    int // set only if it differs from the line of the path
}

// place turns complaints into problems. names holds the names of the steps.
func place(complaints []complaint, file string, lines map[string]int, names []string) []*Problem {
	var all []*Problem
	for _, c := range complaints {
		p := &Problem{File: file, Line: c.line, Field: c.path, Message: c.message}
		if p.Line == 0 {
			p.Line = lineOf(lines, c.path)
		}
		var number int
		if n, _ := fmt.Sscanf(c.path, "steps[%d]", &number); n == 1 && number < len(names) && names[number] != "" {
			_, field, _ := strings.Cut(c.path, "]")
			p.Step, p.Field = names[number], strings.TrimPrefix(field, ".")
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// lineOf returns the line of the path, or of its nearest parent with a known line.
func lineOf(lines map[string]int, path string) int {
	for {
		if line, known := lines[path]; known || path == "" {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

func join(problems []*Problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, p)
	}
	return errors.Join(all...)
}

// unknown returns the message for a name that is not among the known names. It suggests a
// similar name if there is one.
func unknown(what, name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s; did you mean %s?", what, near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("unknown %s; none is defined", what)
	}
	return fmt.Sprintf("unknown %s; choose from %s", what, strings.Join(known, ", "))
}

// longestMisspelt is the length of the longest name for which nearest searches for a
// similar name.
const longestMisspelt = 64

// nearest returns the known name that is most similar to name, or "" if no name is
// similar.
func nearest(name string, known []string) string {
	if len(name) > longestMisspelt {
		return ""
	}
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}
