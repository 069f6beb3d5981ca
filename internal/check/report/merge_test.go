package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// part returns the report of a shard of a plan with 12 faults.
func part(name string, planned int, findings ...judge.Finding) *Report {
	return &Report{
		Version: Version, Subject: "viewer", Seed: 42, Shard: name, Command: "koboshi check --shard " + name + " --seed 42",
		Seconds: 10, Runs: planned + 3, References: 3, WholePlan: 12, LeftToShards: 12 - planned, Findings: findings,
		Scenarios: []Scenario{{Name: "life", Steps: 2, Masked: []string{"a", name}}},
		Tried:     []Tried{{Scenario: "life", Kind: fault.KillAfter, Planned: planned, Runs: planned, Clean: planned}},
		Notes:     []string{"the same note"},
	}
}

func TestShardsOfOnePlanMakeOneReport(t *testing.T) {
	unused := judge.Unused{Role: "manager", Permission: judge.Permission{Verb: "delete", Resource: "nodes"}}
	usedElsewhere := judge.Unused{Role: "manager", Permission: judge.Permission{Verb: "patch", Resource: "nodes"}}
	shaky := judge.Finding{ID: "f", Verdict: judge.Leak, Reproduced: 2, Attempts: 3}
	firm := judge.Finding{ID: "f", Verdict: judge.Leak, Reproduced: 3, Attempts: 3}
	grave := judge.Finding{ID: "g", Verdict: judge.Diverged}
	parts := []*Report{part("3/3", 4, grave), part("1/3", 5, shaky), part("2/3", 3, firm)}
	for i, p := range parts {
		p.Unused = []judge.Unused{unused, usedElsewhere}[:2-i%2]
	}
	got, err := Merge(parts)
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Version: Version, Subject: "viewer", Seed: 42, Command: "koboshi check --seed 42",
		Seconds: 30, Runs: 21, References: 9, Findings: []judge.Finding{grave, firm}, Unused: []judge.Unused{unused},
		Scenarios: []Scenario{{Name: "life", Steps: 2, Masked: []string{"a", "1/3", "2/3", "3/3"}}},
		Tried:     []Tried{{Scenario: "life", Kind: fault.KillAfter, Planned: 12, Runs: 12, Clean: 12}},
		Notes:     []string{"the same note"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMissingShardsAreSaidInTheNotesWithTheirFaults(t *testing.T) {
	got, err := Merge([]*Report{part("4/4", 2), part("2/4", 3)})
	if err != nil {
		t.Fatal(err)
	}
	if note := got.Notes[len(got.Notes)-1]; !strings.Contains(note, "2 of 4 shards") || !strings.Contains(note, "1/4, 3/4") {
		t.Errorf("the note is %q", note)
	}
	if got.LeftToShards != 7 {
		t.Errorf("%d faults are left to shards that are missing, want 12-2-3", got.LeftToShards)
	}
	if got.MissingShards != 2 {
		t.Errorf("%d shards are missing", got.MissingShards)
	}
}

func TestSecondKillsAreNoPartOfThePlanThatShardsShare(t *testing.T) {
	again := Tried{Scenario: "life", Kind: fault.KillAgain, Planned: 9, Runs: 9, Clean: 9}
	first, second := part("1/3", 4), part("2/3", 4)
	first.Tried, second.Tried = append(first.Tried, again), append(second.Tried, again)
	got, err := Merge([]*Report{first, second})
	if err != nil || got.LeftToShards != 4 {
		t.Errorf("%d faults are left to the shard that is missing, want 12-4-4; %v", got.LeftToShards, err)
	}
}

func TestPlansOfDifferentSizesAreSaidInTheNotes(t *testing.T) {
	other := part("2/2", 3)
	other.WholePlan = 10
	got, err := Merge([]*Report{part("1/2", 2), other})
	if err != nil {
		t.Fatal(err)
	}
	if note := got.Notes[len(got.Notes)-1]; !strings.Contains(note, "plans of different sizes, from 10 to 12 faults") {
		t.Errorf("the note is %q", note)
	}
}

func TestPartsThatAreNotOfOnePlanAreRefused(t *testing.T) {
	other := func(change func(*Report)) *Report {
		p := part("2/3", 4)
		change(p)
		return p
	}
	tests := map[string]struct {
		part *Report
		want string
	}{
		"subject":      {other(func(r *Report) { r.Subject = "editor" }), "different subjects (viewer and editor)"},
		"seed":         {other(func(r *Report) { r.Seed = 43 }), "different seeds (42 and 43)"},
		"version":      {other(func(r *Report) { r.Version = 2 }), "different versions"},
		"count":        {other(func(r *Report) { r.Shard = "2/4" }), "different numbers of shards (3 and 4)"},
		"twice":        {other(func(r *Report) { r.Shard = "1/3" }), "shard 1/3 is given twice"},
		"no shard":     {other(func(r *Report) { r.Shard = "" }), `shard ""`},
		"beyond":       {other(func(r *Report) { r.Shard = "4/3" }), `shard "4/3"`},
		"not a number": {other(func(r *Report) { r.Shard = "x/3" }), `shard "x/3"`},
	}
	for name, test := range tests {
		if _, err := Merge([]*Report{part("1/3", 4), test.part}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := Merge(nil); err == nil {
		t.Error("an empty list of reports is merged without an error")
	}
}

func TestOneWholeReportIsMergedToItself(t *testing.T) {
	got, err := Merge([]*Report{sample()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReportIsReadAsItWasWritten(t *testing.T) {
	r := sample()
	r.Findings[0].Detail = hostile + "\U000E0001 & <b>"
	data := written(t, func(b *bytes.Buffer) error { return r.WriteJSON(b) })
	if strings.ContainsAny(string(data), "\x1b\x07\u009b\u202e\U000E0001") {
		t.Error("the file holds characters that a terminal obeys")
	}
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFilesThatAreNoReportAreRefusedWithTheNextAction(t *testing.T) {
	tests := map[string][2]string{
		"later version": {`{"version": 2, "runs": "many"}`, "use the koboshi that wrote the file"},
		"no version":    {`{"runs": 3}`, "has no version field; specify a different file"},
		"cut off":       {`{"version": 1, "find`, "is damaged"},
		"wrong type":    {`{"version": 1, "runs": "many"}`, "run the check again"},
		"empty":         {``, "is damaged"},
	}
	for name, test := range tests {
		path := filepath.Join(t.TempDir(), "report.json")
		if err := os.WriteFile(path, []byte(test[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), test[1]) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want the path and %q", name, err, test[1])
		}
	}
}
