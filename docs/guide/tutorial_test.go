package guide

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	tutorial = "tutorial"
	// japanese is the folder of the book's Japanese pages.
	japanese = "../guide.ja"
	// mostTyped limits the lines that a reader of the tutorial types, besides the code that
	// the pages show.
	mostTyped = 60
	// allChapters limits the duration of the tutorial on a busy machine.
	allChapters = 10 * time.Minute
)

// The chapters depend on each other, so they run as one script in one folder. The last
// chapter fails unless a process on the plane serves the page.
func TestTheTutorialServesAPageFromAnEmptyFolder(t *testing.T) {
	t.Parallel()
	koboshi := built(t)
	var script strings.Builder
	// The script has another home folder, but must not compile everything again.
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(&script, "export %s='%s'\n", name, strings.TrimSpace(string(value)))
	}
	script.WriteString("export GOFLAGS=-trimpath CGO_ENABLED=0\n")
	typed := 0
	for _, p := range chapters(t, Files) {
		for _, b := range p.blocks {
			switch {
			case b.file != "":
				_, _ = fmt.Fprintf(&script, "mkdir -p '%s'\ncat > '%s' <<'END-OF-FILE'\n%sEND-OF-FILE\n", path.Dir(b.file), b.file, b.text)
			case b.language == "sh":
				_, _ = fmt.Fprintf(&script, "date +%%T; : %s:%d\n%s", p.path, b.line, b.text)
				typed += strings.Count(b.text, "\n")
			}
		}
	}
	if typed == 0 || typed > mostTyped {
		t.Errorf("the reader types %d lines; the maximum is %d", typed, mostTyped)
	}
	out, err := runScript(t, koboshi, script.String(), allChapters)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Because the blocks are the same, the Japanese tutorial need not run a second time.
func TestTheJapaneseTutorialHasTheSameBlocks(t *testing.T) {
	folder := os.DirFS(japanese)
	english, translated := chapters(t, Files), chapters(t, folder)
	if len(english) != len(translated) {
		t.Fatalf("%d chapters in English, %d in Japanese", len(english), len(translated))
	}
	for i, want := range english {
		got := translated[i]
		if got.path != want.path {
			t.Errorf("chapter %d is %s in English, but %s in Japanese", i, want.path, got.path)
		}
		same := func(a, b block) bool { return a.language == b.language && a.file == b.file && a.text == b.text }
		if !slices.EqualFunc(want.blocks, got.blocks, same) {
			t.Errorf("%s: the blocks differ", want.path)
		}
		for _, l := range got.links {
			target, _, _ := strings.Cut(l.target, "#")
			if target == "" || strings.HasPrefix(target, "https://") {
				continue
			}
			if _, err := os.Stat(path.Join(japanese, path.Dir(got.path), target)); err != nil {
				t.Errorf("%s:%d: %v", got.path, l.line, err)
			}
		}
	}
}

// chapters returns the pages of the tutorial in the order of the list on its first page.
func chapters(t *testing.T, folder fs.FS) []page {
	t.Helper()
	first := readPageIn(t, folder, tutorial+"/README.md")
	all := []page{first}
	for _, l := range first.links {
		if !strings.Contains(l.target, "/") && strings.HasSuffix(l.target, ".md") {
			all = append(all, readPageIn(t, folder, path.Join(tutorial, l.target)))
		}
	}
	if len(all) < 7 {
		t.Fatalf("the tutorial has only %d pages", len(all))
	}
	return all
}
