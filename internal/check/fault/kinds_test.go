package fault

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestEachKindSaysEverythingAboutItself(t *testing.T) {
	seen := map[Kind]bool{}
	for _, d := range table {
		if seen[d.kind] {
			t.Errorf("%s has two rows", d.kind)
		}
		seen[d.kind] = true
		if d.kind == "" || d.where == "" || d.sentence == nil || d.legal == nil || d.why == "" ||
			d.phase < PhaseWrites || d.phase > PhaseOthers || d.cost <= 0 {
			t.Errorf("the row of %s is not complete: %+v", d.kind, d)
		}
		if strings.HasPrefix(string(d.kind), "error-") != (d.answer != nil) {
			t.Errorf("%s: its answer is %+v", d.kind, d.answer)
		}
	}
}

func TestAnAnswerThatAsksForPatienceIsOneThatServersGive(t *testing.T) {
	for _, k := range Kinds() {
		answer, ok := k.Answer()
		if !ok {
			continue
		}
		patient := answer.Code == http.StatusServiceUnavailable || answer.Code == http.StatusTooManyRequests
		if patient != (answer.RetryAfter > 0) || answer.Reason == "" || answer.Message == "" {
			t.Errorf("%s answers %+v", k, answer)
		}
	}
}

func TestOnlyWhatJustRestartsKills(t *testing.T) {
	var kills []Kind
	for _, k := range Kinds() {
		if k.Kills() {
			kills = append(kills, k)
		}
	}
	if want := []Kind{KillBefore, KillLost, KillAfter, KillAgain, Terminate, Restart}; !slices.Equal(kills, want) {
		t.Errorf("%v kill, want %v", kills, want)
	}
}

func TestAKindOfAnotherVersionHasNoAnswer(t *testing.T) {
	k := Kind("meteorite")
	if _, ok := k.Answer(); ok || k.Kills() || k.Phase() != PhaseOthers || k.Cost() <= 0 || k.Describe() == "" {
		t.Errorf("it is taken for a known kind: %+v", k)
	}
}

// root is the top of the repository.
const root = "../../.."

func TestEachKindHasARowInTheHandbookAndInTheDesign(t *testing.T) {
	for _, page := range []string{"docs/guide/check/faults.md", "docs/design/2026-11-21-faults.md"} {
		data, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]bool{}
		for _, line := range strings.Split(string(data), "\n") {
			cells := strings.Split(line, "|")
			if len(cells) < 3 || cells[0] != "" {
				continue
			}
			for _, name := range strings.Split(cells[1], ",") {
				rows[strings.Trim(name, " `")] = true
			}
		}
		for _, k := range Kinds() {
			if !rows[string(k)] {
				t.Errorf("%s has no row for %s", page, k)
			}
		}
	}
}

func TestEachKindFindsABugOfTheTrackRecord(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "bugs", "*", "bug.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no bugs: %v", err)
	}
	found := map[Kind][]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var bug struct {
			Finds []Kind `json:"finds"`
		}
		if err := yaml.Unmarshal(data, &bug); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, k := range bug.Finds {
			found[k] = append(found[k], filepath.Base(filepath.Dir(file)))
		}
	}
	for _, k := range Kinds() {
		if len(found[k]) == 0 {
			t.Errorf("no bug is said to be found by %s", k)
		}
		delete(found, k)
	}
	for k, bugs := range found {
		t.Errorf("%v are said to be found by %q, which is no kind", bugs, k)
	}
}
