package scenario

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// comparable returns a scenario as JSON values, without the folder that reading a file adds.
func comparable(t testing.TB, s *Scenario) any {
	t.Helper()
	copied := *s
	copied.Dir = ""
	var value any
	if err := json.Unmarshal(mustJSON(&copied), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAGeneratedScenarioIsTheSameAfterItWasWrittenAndRead(t *testing.T) {
	written := 0
	for _, operator := range []string{"storagebucket", "markdownview"} {
		for _, s := range scenariosOf(t, operator) {
			data, err := s.YAML("Generated from " + s.Sample + ".\nEdit it.")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), s.Name+".yaml")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			again, err := Load(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			if len(again) != 1 {
				t.Fatalf("%s: read %d scenarios", s.Name, len(again))
			}
			if diff := cmp.Diff(comparable(t, s), comparable(t, again[0])); diff != "" {
				t.Errorf("%s: generated, and read again:\n%s", s.Name, diff)
			}
			if !strings.HasPrefix(string(data), "# Generated from "+s.Sample) || s.Sample == "" {
				t.Errorf("%s begins with:\n%.200s", s.Name, data)
			}
			written++
		}
	}
	if written < 10 {
		t.Errorf("only %d scenarios were written", written)
	}
}

func TestAScenarioWithoutAStepKeepsItsSample(t *testing.T) {
	s := scenariosOf(t, "storagebucket")[0]
	step := s.Steps[len(s.Steps)-1].Name
	if got := s.Without(step); got == nil || got.Sample != s.Sample {
		t.Errorf("without step %s: %+v; the sample was %s", step, got, s.Sample)
	}
}

func FuzzValuesAreTheSameAfterTheyWereWrittenAndRead(f *testing.F) {
	for _, text := range []string{"", "on", "No", "1", "1e3", "0x1", "~", "null", "2001-01-01", "a: b", "- a", "line\nline\n", " a ", "\t", "\x7f", "\u2028", "$(endpoint.x)", "#", "<<", "=", "1:30"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		if strings.Contains(key+text, "$(endpoint.") || key == "" {
			return
		}
		manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{key: text, "list": []any{text, map[string]any{}, []any{}, nil, true, 1.5, int64(7)}}}
		s := &Scenario{APIVersion: APIVersion, Kind: Kind, Name: "a", Steps: []Step{{Name: "a", Apply: []Manifest{{Object: manifest}}}}}
		want := comparable(t, s) // encoding/json has replaced invalid UTF-8
		data, err := s.YAML("")
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("a.yaml", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if diff := cmp.Diff(want, comparable(t, again[0])); diff != "" {
			t.Errorf("%s\n%s", diff, data)
		}
	})
}

func TestAFolderStandsForTheScenarioFilesInIt(t *testing.T) {
	dir := t.TempDir()
	for name, scenario := range map[string]string{"b.yaml": "b", "a.yml": "a"} {
		text := strings.Replace(header, "name: test", "name: "+scenario, 1) + "steps: [{name: a, run: [a]}]\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# a"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, from, err := LoadAll([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "a" || from["b"] != filepath.Join(dir, "b.yaml") {
		t.Errorf("read %d scenarios, from %v", len(all), from)
	}
	if _, _, err := LoadAll([]string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "has no YAML files; name a file") {
		t.Errorf("an empty folder: %v", err)
	}
}
