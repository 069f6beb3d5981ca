package merge

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// lines merges by lines. A line that is the same in all three files separates the changes
// before it from the changes after it. Between two such lines, either the person or the
// scaffold may have changed something, but not both. In a conflict, the lines of the person
// stay.
func lines(base, ours, theirs []byte) ([]byte, []Conflict) {
	b, o, t := split(base), split(ours), split(theirs)
	toOurs, toTheirs := matches(b, o), matches(b, t)
	var merged []string
	var conflicts []Conflict
	i, j, k := 0, 0, 0 // the first lines of b, o and t that are not merged yet
	for at := 0; at <= len(b); at++ {
		endOurs, endTheirs := len(o), len(t)
		if at < len(b) {
			if toOurs[at] < 0 || toTheirs[at] < 0 {
				continue
			}
			endOurs, endTheirs = toOurs[at], toTheirs[at]
		}
		part := chunk{b[i:at], o[j:endOurs], t[k:endTheirs]}
		text, clean := part.merge()
		if !clean {
			conflicts = append(conflicts, Conflict{
				Line: j + 1, Reason: "you and koboshi both changed " + count(max(len(part.ours), 1)), Text: strings.Join(part.theirs, ""),
			})
		}
		merged = append(merged, text...)
		if at < len(b) {
			merged = append(merged, b[at])
		}
		i, j, k = at+1, endOurs+1, endTheirs+1
	}
	return []byte(strings.Join(merged, "")), conflicts
}

// A chunk holds the lines of the three files between two lines that all of them contain.
type chunk struct{ base, ours, theirs []string }

// merge returns the merged lines, and whether there is no conflict.
func (c chunk) merge() ([]string, bool) {
	switch {
	case slices.Equal(c.base, c.theirs), slices.Equal(c.ours, c.theirs):
		return c.ours, true
	case slices.Equal(c.base, c.ours):
		return c.theirs, true
	}
	return c.ours, false
}

// whole returns the lines with a newline at the end of the last one.
func whole(lines []string) []string {
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		return append(slices.Clone(lines[:n-1]), lines[n-1]+"\n")
	}
	return lines
}

// split splits a file into lines that keep their newline.
func split(data []byte) []string {
	return slices.Collect(strings.Lines(string(data)))
}

// matches returns, for each line of a, the number of the same line in b, or -1.
func matches(a, b []string) []int {
	found := make([]int, len(a))
	for i := range found {
		found[i] = -1
	}
	// Without the heuristic for frequent lines, even a file with many equal lines is merged.
	for _, block := range difflib.NewMatcherWithJunk(a, b, false, nil).GetMatchingBlocks() {
		for n := range block.Size {
			found[block.A+n] = block.B + n
		}
	}
	return found
}
