package merge

import (
	"strings"
	"testing"
)

func TestChangesInDifferentLinesAreBothKept(t *testing.T) {
	for name, c := range map[string]struct{ base, ours, theirs, want string }{
		"different places":      {"a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\n"},
		"the same change":       {"a\nb\n", "a\nc\n", "a\nc\n", "a\nc\n"},
		"only the person":       {"a\nb\n", "x\n", "a\nb\n", "x\n"},
		"only koboshi":          {"a\nb\n", "a\nb\n", "b\n", "b\n"},
		"no newline at the end": {"a\nb\nc", "A\nb\nc", "a\nb\nc\nd", "A\nb\nc\nd"},
		"a deleted part":        {"a\nb\nc\nd\ne\n", "a\nd\ne\n", "a\nb\nc\nd\nE\n", "a\nd\nE\n"},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts := File("Makefile", []byte(c.base), []byte(c.ours), []byte(c.theirs))
			if string(merged) != c.want {
				t.Errorf("merged %q, want %q", merged, c.want)
			}
			if len(conflicts) > 0 && name != "no newline at the end" {
				t.Errorf("conflicts: %v", conflicts)
			}
		})
	}
}

func TestTwoChangesOfOneLineAreAConflict(t *testing.T) {
	merged, conflicts := File("Makefile", []byte("a\nb\nc\n"), []byte("a\nmine\nc\n"), []byte("a\nyours\nc\n"))
	if want := "a\nmine\nc\n"; string(merged) != want {
		t.Errorf("merged %q, want %q", merged, want)
	}
	if len(conflicts) != 1 || conflicts[0].Line != 2 || !strings.Contains(conflicts[0].Text, "yours") {
		t.Errorf("conflicts %v", conflicts)
	}
}

// A merge must neither lose a line of the person nor invent one.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n", "a\nb\nc\nd\n")
	f.Add("", "x", "y")
	f.Add("a", "a\n", "a\nb")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		merged, conflicts := lines([]byte(base), []byte(ours), []byte(theirs))
		if len(conflicts) > 0 {
			return
		}
		known := map[string]bool{}
		for line := range strings.Lines(base + "\n" + ours + "\n" + theirs) {
			known[strings.TrimSuffix(line, "\n")] = true
		}
		for line := range strings.Lines(string(merged)) {
			if !known[strings.TrimSuffix(line, "\n")] {
				t.Errorf("the line %q is in none of the files", line)
			}
		}
	})
}
