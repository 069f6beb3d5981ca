package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestFindingIsSavedWithTheProfileThatWasUsed(t *testing.T) {
	t.Chdir(t.TempDir())
	var f checkFlags
	fs := pflag.NewFlagSet("check", pflag.ContinueOnError)
	f.register(fs)
	o, err := f.options(fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.record(fs, &o); err != nil {
		t.Fatal(err)
	}
	sc := &scenario.Scenario{APIVersion: "check.koboshi.dev/v1", Kind: "Scenario", Name: "life", Steps: []scenario.Step{{Name: "create", Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{APIVersion: "v1", Kind: "Secret", Name: "a"}}}}}
	found := &judge.Finding{ID: "1a", Verdict: judge.HotLoop, Scenario: "life", Attempts: 2}
	if err := o.Save(found, "workloads", sc, []trace.Entry{}); err != nil {
		t.Fatal(err)
	}
	saved, err := report.LoadFinding(found.File)
	if err != nil || saved.Plane != "workloads" {
		t.Errorf("a finding in progress is saved with %+v, %v", saved, err)
	}
	if got := f.keepOptions(&check.Result{Profile: "workloads"}).Plane; got != "workloads" {
		t.Errorf("at the end, the profile is %q", got)
	}
}

func TestReplayUsesTheProfileAndTheHorizonOfTheCheckAndTriesNothingElse(t *testing.T) {
	saved := &report.Saved{Plane: "workloads", Finding: judge.Finding{WatchedSeconds: 40}}
	for _, test := range []struct {
		flags   []string
		profile string
	}{{nil, "workloads"}, {[]string{"--profile=gc"}, "gc"}} {
		var f checkFlags
		if err := f.parse("finding.json", test.flags, nil, nil); err != nil {
			t.Fatal(err)
		}
		o, err := f.optionsOf(saved, nil)
		if err != nil || o.Profile != test.profile || o.Horizon != 40*time.Second || !o.EveryRest || f.inputs || f.paths {
			t.Errorf("with the flags %q: profile %s, horizon %s, every rest %t, inputs %t, paths %t, %v", test.flags, o.Profile, o.Horizon, o.EveryRest, f.inputs, f.paths, err)
		}
	}
}

func TestFindingAtARestIsFixedOnlyIfTheRestWasWatchedAsLong(t *testing.T) {
	loop := judge.Finding{ID: "1a", Verdict: judge.HotLoop, Scenario: "life", Step: "create", Sentence: "it writes", WatchedSeconds: 15}
	crash := judge.Finding{ID: "2b", Verdict: judge.Crashed, Scenario: "life", Step: "create"}
	elsewhere := loop
	elsewhere.ID, elsewhere.Scenario = "3c", "other"
	at := check.Rest{Scenario: "life", Step: "create"}
	for name, test := range map[string]struct {
		saved    judge.Finding
		compared []string
		watched  map[check.Rest]time.Duration
		found    []judge.Finding
		want     bool
	}{
		"nothing was watched":       {loop, []string{"life"}, nil, nil, false},
		"another rest was watched":  {loop, []string{"life"}, map[check.Rest]time.Duration{{Scenario: "life", Step: "delete"}: time.Minute}, nil, false},
		"watched for less time":     {loop, []string{"life"}, map[check.Rest]time.Duration{at: 3 * time.Second}, nil, false},
		"watched as long":           {loop, []string{"life"}, map[check.Rest]time.Duration{at: 15 * time.Second}, nil, true},
		"found again":               {loop, []string{"life"}, map[check.Rest]time.Duration{at: 15 * time.Second}, []judge.Finding{loop}, false},
		"reported elsewhere":        {loop, []string{"life"}, map[check.Rest]time.Duration{at: 15 * time.Second}, []judge.Finding{elsewhere}, false},
		"it was not found at rest":  {crash, []string{"life"}, nil, nil, true},
		"its scenario was not run":  {crash, nil, nil, nil, false},
		"the crash was found again": {crash, []string{"life"}, nil, []judge.Finding{crash}, false},
	} {
		s := &report.Saved{Finding: test.saved, Scenario: scenario.Scenario{Name: "life"}}
		if got := fixed(&check.Result{Report: &report.Report{Findings: test.found}, Compared: test.compared, Watched: test.watched}, s); got != test.want {
			t.Errorf("%s: fixed is %t", name, got)
		}
	}
}

func TestFindingOfAnotherProfileOrOfOtherFlagsIsNotMoved(t *testing.T) {
	f := checkFlags{values: map[string][]string{"crds": {"crds"}}}
	for name, test := range map[string]struct {
		plane   string
		subject []string
		want    int
	}{
		"the same":                       {"gc", []string{"--crds=crds"}, 1},
		"another profile":                {"workloads", []string{"--crds=crds"}, 0},
		"other flags":                    {"gc", nil, 0},
		"a profile that was not written": {"", []string{"--crds=crds"}, 1},
	} {
		file := filepath.Join(t.TempDir(), "finding.json")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		saved := &report.Saved{Plane: test.plane, Subject: test.subject, Finding: judge.Finding{ID: "1a", Verdict: judge.Crashed, File: file}, Scenario: scenario.Scenario{Name: "life"}}
		result := &check.Result{Report: &report.Report{}, Profile: "gc", Compared: []string{"life"}}
		if f.moveFixed(result, []*report.Saved{saved}); len(result.Report.Fixed) != test.want {
			t.Errorf("%s: %d findings are fixed, with the notes %q", name, len(result.Report.Fixed), result.Report.Notes)
		}
	}
}

func TestProjectsWithTheirOwnFindingsShareNoJournal(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, err := os.Getwd() // without symbolic links
	if err != nil {
		t.Fatal(err)
	}
	for findings, want := range map[string]string{
		".koboshi/findings":  ".koboshi/journal",
		".koboshi/findings/": ".koboshi/journal",
		"/tmp/a":             "/tmp/a.journal",
		"/tmp/b/":            "/tmp/b.journal",
		"out":                filepath.Join(here, "out.journal"),
		".":                  here + ".journal",
	} {
		if got := journalFolder(findings); got != filepath.FromSlash(want) {
			t.Errorf("%s: %s, want %s", findings, got, want)
		}
	}
}

func TestALossyConversionIsFixedOnlyIfTheConversionWasTriedAndLostNothing(t *testing.T) {
	saved := &report.Saved{
		Finding:  judge.Finding{ID: "1a", Verdict: judge.ConversionLossy, Scenario: "ship-example-com-v1-to-v2"},
		Scenario: scenario.Scenario{Name: "ship-example-com-v1-to-v2"},
	}
	result := &check.Result{Report: &report.Report{Notes: []string{"a conversion failed: no"}}, Compared: []string{saved.Scenario.Name}}
	if fixed(result, saved) {
		t.Error("it is fixed although only the scenario was run, and nothing was converted")
	}
	if err := tried(result, saved); err == nil || !strings.Contains(err.Error(), "a conversion failed: no") {
		t.Errorf("a replay that converts nothing ends with %v", err)
	}
	result.Converted = result.Compared
	if err := tried(result, saved); err != nil || !fixed(result, saved) {
		t.Errorf("it is not fixed although the conversion lost nothing: %v", err)
	}
	result.Report.Findings, result.Converted = []judge.Finding{saved.Finding}, nil
	if err := tried(result, saved); err != nil || fixed(result, saved) {
		t.Errorf("the same finding, after a replay: %v", err)
	}
}
