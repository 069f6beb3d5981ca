package manifest

import (
	"github.com/pmezard/go-difflib/difflib"
)

// unified returns the difference between the file on disk and the generated file.
func unified(path string, o *output) string {
	from := "a/" + path
	if o.new {
		from = "/dev/null"
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(o.was), B: lines(o.data), FromFile: from, ToFile: "b/" + path, Context: 3,
	})
	if err != nil {
		return err.Error() + "\n" // cannot happen, because a string takes every text
	}
	return text
}

// lines splits a file into lines. Each of them ends with a line break.
func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	all := difflib.SplitLines(string(data))
	if data[len(data)-1] == '\n' {
		return all[:len(all)-1] // SplitLines adds an empty line
	}
	return all
}
