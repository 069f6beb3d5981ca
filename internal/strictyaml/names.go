package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/spelling"
)

// LineOf returns the line of the path, or of its nearest parent with a known line.
func LineOf(lines map[string]int, path string) int {
	for {
		if line, known := lines[path]; known || path == "" {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// Unknown returns the message for a name that is not among the known names. It suggests a
// similar name if there is one.
func Unknown(what, name string, known []string) string {
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

// mostComplaints is the maximum number of mistakes that are reported together.
const mostComplaints = 20

// Join returns one error that joins the complaints, each with the file and the line.
func Join(file string, lines map[string]int, complaints []Complaint) error {
	var all []error
	complaints = slices.Clone(complaints)
	for i := range complaints {
		if complaints[i].Line == 0 {
			complaints[i].Line = LineOf(lines, complaints[i].Path)
		}
	}
	slices.SortStableFunc(complaints, func(a, b Complaint) int { return cmp.Compare(a.Line, b.Line) })
	for _, c := range complaints[:min(len(complaints), mostComplaints)] {
		text := file
		if c.Line > 0 {
			text += fmt.Sprintf(":%d", c.Line)
		}
		if c.Path != "" {
			text += ": " + c.Path
		}
		all = append(all, errors.New(text+": "+c.Message))
	}
	return errors.Join(all...)
}
