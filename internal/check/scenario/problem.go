package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a scenario. Parse and Validate return
// all of them, joined.
type Problem struct {
	// File and Line are where; Line is 0 if there is no file.
	File string
	Line int
	// Step is the name of the step, if it is about one that has a name.
	Step string
	// Field is the path in the step or, without Step, in the scenario.
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

// complaint is a problem before it is known where it stands in a file.
type complaint struct {
	path    string // such as steps[2].patch.kind
	message string
	line    int // if it is another than that of the path
}

// place makes problems of complaints. names are those of the steps by number.
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

// lineOf is the line of the path, or of the nearest thing around it that has one.
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

// unknown says that name is not among those that are known, and which of them it
// may have been meant to be.
func unknown(what, name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s, did you mean %s?", what, near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("unknown %s; there is none", what)
	}
	return fmt.Sprintf("unknown %s; there are %s", what, strings.Join(known, ", "))
}

// nearest is the known name that is most like name, or empty if none is.
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// mostNameLength is the longest name for which it is worth looking for a near one.
const mostNameLength = 64

// distance counts how many letters have to be put in, taken out or changed.
func distance(a, b string) int {
	if len(a) > mostNameLength || len(b) > mostNameLength {
		return mostNameLength
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
