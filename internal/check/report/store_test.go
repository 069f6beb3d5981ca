package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func saved() Saved {
	return Saved{
		Finding: sample().Findings[0],
		Scenario: scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Name: "life", Steps: []scenario.Step{
			{Name: "create", Apply: []scenario.Manifest{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}}},
			{Name: "delete", Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}},
		}},
		Subject: []string{"--crds", "config/crd", "--", "./manager", "--leader-elect=false"},
		Plane:   "workloads",
		Trace:   sampleTrace(),
	}
}

func save(t *testing.T, dir string, s Saved) string {
	t.Helper()
	path, err := SaveFinding(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindingIsLoadedAsItWasSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "findings")
	path := save(t, dir, saved())
	if want := "DIVERGED-life-create-1a2b3c4d5e6f.json"; filepath.Base(path) != want {
		t.Errorf("the file is %s, want %s", filepath.Base(path), want)
	}
	got, err := LoadFinding(path)
	if err != nil {
		t.Fatal(err)
	}
	want := saved()
	want.Version, want.Finding.File = SavedVersion, filepath.ToSlash(path)
	want.Finding.Replay = "koboshi check replay " + filepath.ToSlash(path)
	// Saving may change the white space in bodies.
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, *got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(got.Trace) != len(want.Trace) || got.Trace[9].Process.What != "killed" {
		t.Errorf("the trace has %d entries, want %d", len(got.Trace), len(want.Trace))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSavingAgainReplacesAndLeavesNothingElseBehind(t *testing.T) {
	dir := t.TempDir()
	s := saved()
	save(t, dir, s)
	s.Finding.Reproduced, s.Trace = 1, nil
	path := save(t, dir, s)
	got, err := LoadFinding(path)
	if err != nil || got.Finding.Reproduced != 1 || got.Trace != nil {
		t.Errorf("loaded %+v, %v; want the second one, without the trace of the first", got, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(files) != 1 || len(hidden) != 0 {
		t.Errorf("the folder holds %v %v", files, hidden)
	}
}

func TestNamesInAFindingCannotLeaveTheFolder(t *testing.T) {
	dir := t.TempDir()
	s := saved()
	s.Finding.ID, s.Finding.Verdict = "../../etc/passwd", "SPLIT BRAIN"
	s.Finding.Scenario, s.Finding.Step = "../../../x", "a/b\x00"+strings.Repeat("long", 100)
	path := save(t, dir, s)
	if filepath.Dir(path) != dir || !strings.HasPrefix(filepath.Base(path), "SPLIT-BRAIN-x-a-b-long") || len(filepath.Base(path)) > 200 {
		t.Errorf("saved as %s", path)
	}
	if got, err := LoadFinding(path); err != nil || len(got.Trace) == 0 {
		t.Errorf("loaded with a trace of %d entries, %v", len(got.Trace), err)
	}
}

func TestDamagedFindingsAreNamedAndTheOthersLoaded(t *testing.T) {
	dir := t.TempDir()
	leak := saved()
	leak.Finding.ID, leak.Finding.Verdict = "aaaa", judge.HotLoop
	save(t, dir, leak)
	save(t, dir, saved())
	for name, text := range map[string]string{
		"cut.json": `{"version": 1, "finding": {`, "later.json": `{"version": 9}`, "other.json": `{"version": 1}`,
		"readme.txt": "no finding", ".hidden.json": "{",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "aaaa.trace.jsonl"), []byte("{\"version\":1}\n{\"seq\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := LoadFindings(dir)
	if len(all) != 2 || all[0].Finding.Verdict != judge.Diverged {
		t.Errorf("loaded %d findings, want 2 with DIVERGED first", len(all))
	}
	if err == nil {
		t.Fatal("the damaged files are not reported")
	}
	for _, want := range []string{"cut.json is damaged", "later.json is a finding of version 9", "other.json is damaged", "aaaa.trace.jsonl is damaged"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "readme") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("files that are no findings are named:\n%v", err)
	}
}

func TestAFolderThatIsNotThereHasNoFindings(t *testing.T) {
	all, err := LoadFindings(filepath.Join(t.TempDir(), "never"))
	if len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

func TestAFindingWithoutIDCannotBeSaved(t *testing.T) {
	s := saved()
	s.Finding.ID = ""
	if path, err := SaveFinding(t.TempDir(), s); err == nil {
		t.Errorf("saved as %s", path)
	}
}

func TestKeptFindingsNameTheirFileAndReplay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my findings")
	life := saved().Scenario
	r := sample()
	suspected := r.Findings[0]
	suspected.ID, suspected.Reproduced = "5e1d0b", 1
	r.Inconclusive = []NotRun{{Scenario: "life", Suspicion: &suspected}, {Scenario: "life"}}
	o := KeepOptions{
		Dir: dir, Subject: []string{"--dir=x"}, Plane: "gc",
		Scenarios: map[string]*scenario.Scenario{"life": &life},
		Traces:    map[string][]trace.Entry{r.Findings[0].ID: sampleTrace()},
	}
	if err := r.Keep(o); err != nil {
		t.Fatal(err)
	}
	kept, err := LoadFindings(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range kept {
		ids = append(ids, s.Finding.ID)
		if diff := cmp.Diff(o.Subject, s.Subject); diff != "" || s.Plane != "gc" {
			t.Errorf("%s: plane %s, subject (-want +got):\n%s", s.Finding.ID, s.Plane, diff)
		}
		if s.Unconfirmed != (s.Finding.ID == suspected.ID) {
			t.Errorf("%s: unconfirmed is %t", s.Finding.ID, s.Unconfirmed)
		}
	}
	// Keep skips the finding whose scenario was not run.
	if diff := cmp.Diff([]string{"1a2b3c4d5e6f", "5e1d0b", "99aa00ff11ee"}, ids); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	for _, f := range []judge.Finding{r.Findings[0], suspected} {
		want := "koboshi check replay '" + filepath.ToSlash(f.File) + "'"
		if _, err := os.Stat(f.File); err != nil || f.Replay != want {
			t.Errorf("%s: file %q (%v), replay %q, want %q", f.ID, f.File, err, f.Replay, want)
		}
	}
	if traces := r.SavedTraces(); len(traces[r.Findings[0].ID]) != len(sampleTrace()) {
		t.Errorf("traces: %v", traces)
	}
	faults := Faults(kept)
	if len(faults) != 1 || len(faults["life"]) != 2 || faults["life"][0] != *r.Findings[0].Fault {
		t.Errorf("faults to run first: %v", faults)
	}
}

func TestAFindingThatAReplayCannotShowIsNotSaved(t *testing.T) {
	dir := t.TempDir()
	r := &Report{Findings: []judge.Finding{
		{ID: "1", Verdict: judge.MoreRequests, Scenario: "life", Attempts: 3}, {ID: "2", Verdict: judge.UnboundedLists, Scenario: "life", Attempts: 3},
	}}
	if err := r.Keep(KeepOptions{Dir: dir, Scenarios: map[string]*scenario.Scenario{"life": {Name: "life"}}}); err != nil {
		t.Fatal(err)
	}
	if saved, err := os.ReadDir(dir); err != nil || len(saved) > 0 || r.Findings[0].Replay+r.Findings[1].Replay != "" {
		t.Errorf("saved %v, %v, replays %q and %q", saved, err, r.Findings[0].Replay, r.Findings[1].Replay)
	}
}

func TestReplayedFindingKeepsItsFile(t *testing.T) {
	r := &Report{Command: "koboshi check --seed=1", Findings: []judge.Finding{{ID: "a", File: "elsewhere"}}}
	r.Replayed("findings/a.json")
	if want := "koboshi check replay findings/a.json"; r.Command != want || r.Findings[0].Replay != want || r.Findings[0].File != "findings/a.json" {
		t.Errorf("%+v", r)
	}
}
