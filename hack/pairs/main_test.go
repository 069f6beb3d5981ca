package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachPairIsComplete(t *testing.T) {
	pairs, err := read("pairs")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		if len(p.Before) != 40 || len(p.After) != 40 || p.Before == p.After {
			t.Errorf("%s has the commits %q and %q", p.ID, p.Before, p.After)
		}
	}
}

func TestAPairIsToldApartOnlyByAFindingThatTheFixRemoves(t *testing.T) {
	const (
		inert = `{"findings": [], "remarks": [{"verdict": "INERT FIELD", "sentence": "it has no effect", "differences": [{"object": "Cache", "path": "spec.size"}]}], "seconds": 61, "inputs": [{"outcome": "no effect"}, {"outcome": "unknown"}]}`
		clean = `{"findings": [{"verdict": "LEAK", "sentence": "a Service is left behind"}], "seconds": 70}`
	)
	for _, c := range []struct{ name, before, after, want string }{
		{"the finding is gone", inert, clean, "| INERT FIELD; 0 others; 1 of 2 inputs; 61 s | not named; 1 others; 0 of 0 inputs; 70 s | yes |"},
		{"the finding stays", inert, inert, "| INERT FIELD; 0 others; 1 of 2 inputs; 61 s | INERT FIELD; 0 others; 1 of 2 inputs; 61 s | no |"},
		{"nothing is found", clean, clean, "| not named; 1 others; 0 of 0 inputs; 70 s | not named; 1 others; 0 of 0 inputs; 70 s | no |"},
		{"one side is not run", inert, "", "| INERT FIELD; 0 others; 1 of 2 inputs; 61 s | not run | no |"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, dir := t.TempDir(), t.TempDir()
			write(t, filepath.Join(folder, "P1.yaml"), "repository: example/cache\nbug: the size has no effect\nbefore: a\nafter: b\ncheck: []\nnamed: INERT FIELD.*spec\\.size\n")
			for side, text := range map[string]string{before: c.before, after: c.after} {
				if text != "" {
					write(t, filepath.Join(dir, "P1-"+side+".json"), text)
				}
			}
			pairs, err := read(folder)
			if err != nil {
				t.Fatal(err)
			}
			o, r := options{dir: dir, list: true}, result{pair: pairs[0]}
			for side := range sides {
				if r.reports[side], err = o.report(t.Context(), pairs[0], sides[side]); err != nil {
					t.Fatal(err)
				}
			}
			var b strings.Builder
			if err := table(&b, []result{r}); err != nil || !strings.Contains(b.String(), c.want) {
				t.Errorf("error %v, the table is\n%s", err, &b)
			}
		})
	}
}

func TestAPairWithAnUnknownFieldIsRefused(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "P1.yaml"), "repository: example/cache\nbefor: a\n")
	if _, err := read(folder); err == nil || !strings.Contains(err.Error(), "befor") {
		t.Errorf("the error is %v", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
