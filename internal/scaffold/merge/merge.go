// Package merge applies the difference between two versions of a scaffolded file to the
// file of a person, who may have edited it.
//
//	base ──difference──▶ theirs       base and theirs are what koboshi scaffolds
//	  │                     │         before and after a command
//	ours ──────────────▶ merged       ours is the file of the person
//
// Go files are merged by imports, declarations and statements, and YAML files by the items
// of their lists. All other differences are merged by lines, as git does.
package merge

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// A Conflict is a part of the difference that cannot be applied, because the person has
// changed the same part of the file.
type Conflict struct {
	// Line is the first line of the part in the file of the person, counted from 1. It is 0
	// if the place is not known.
	Line int
	// Reason describes the conflict, without the name of the file.
	Reason string
	// Text is the code that the person has to add or to remove by hand.
	Text string
}

func (c Conflict) String() string {
	if text := strings.TrimSpace(c.Text); text != "" {
		return c.Reason + ":\n\n" + text
	}
	return c.Reason
}

// File applies the difference between base and theirs to ours. The name of the file decides
// how it is merged. If there are conflicts, the result lacks the parts that they name.
func File(name string, base, ours, theirs []byte) ([]byte, []Conflict) {
	switch {
	case bytes.Equal(base, theirs), bytes.Equal(ours, theirs):
		return ours, nil
	case bytes.Equal(ours, base):
		return theirs, nil
	}
	var merged []byte
	var conflicts []Conflict
	ok := false
	switch path.Ext(name) {
	case ".go":
		merged, conflicts, ok = goFile(base, ours, theirs)
	case ".yaml", ".yml":
		merged, ok = yamlFile(base, ours, theirs)
	}
	if !ok {
		return lines(base, ours, theirs)
	}
	return merged, conflicts
}

// count describes a number of lines.
func count(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
