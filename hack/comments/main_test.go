package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNounClausesAreCounted(t *testing.T) {
	dir := t.TempDir()
	src := `// Package p is fine.
package p

// Late says that the step took too long.
func Late() bool { return true }

// A fleet is what the labs are to the
// check.
type fleet struct {
	// size is how many labs run.
	size int
	// next names the lab that runs next.
	next string
}

// Early reports whether the step took no time.
func Early() bool { return false }
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := count(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.docs != 6 || len(c.clauses) != 3 {
		t.Errorf("found %d doc comments and %d noun clauses, want 6 and 3: %q", c.docs, len(c.clauses), c.clauses)
	}
}
