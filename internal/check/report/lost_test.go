package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// counted returns a report on runs with these results.
func counted(clean, inconclusive int, limit float64) *Report {
	return &Report{
		Version: Version, Runs: 3 + clean + inconclusive, References: 3, MaxInconclusive: &limit,
		Tried: []Tried{{Scenario: "life", Kind: fault.KillLost, Planned: clean + inconclusive, Runs: clean + inconclusive, Clean: clean, Inconclusive: inconclusive}},
	}
}

func TestExitCodeIsTwoWhenTheCheckProvesNothing(t *testing.T) {
	shard := counted(8, 2, 0.1)
	shard.Shard = "1/4"
	stopped, idle, crashed := counted(10, 0, 0.1), counted(0, 0, 0.1), counted(0, 0, 0.1)
	stopped.Stopped = "interrupted after 10 of 20 faults"
	idle.Idle, idle.Findings = "it never became the leader", []judge.Finding{{Verdict: judge.RBACMissing}}
	crashed.Idle, crashed.Findings = "it wrote nothing", []judge.Finding{{Verdict: judge.Crashed}}
	unplanned := counted(0, 0, 0.1)
	unplanned.Tried[0].Planned = 5
	found := counted(2, 8, 0.1)
	found.Findings = []judge.Finding{{Verdict: judge.Diverged}}
	for name, test := range map[string]struct {
		report *Report
		want   int
	}{
		"all clean":                       {counted(10, 0, 0.1), 0},
		"a tenth":                         {counted(18, 2, 0.1), 0},
		"more than a tenth":               {counted(17, 2, 0.1), 2},
		"only one run":                    {counted(4, 1, 0.1), 0},
		"a limit of half":                 {counted(6, 5, 0.5), 0},
		"a limit of none":                 {counted(98, 2, 0), 2},
		"a shard":                         {shard, 0},
		"nothing conclusive":              {counted(0, 1, 1), 2},
		"nothing run of what was planned": {unplanned, 2},
		"interrupted":                     {stopped, 2},
		"idle for want of permissions":    {idle, 2},
		"idle because it crashed":         {crashed, 1},
		"a finding among doubtful runs":   {found, 1},
	} {
		if got := test.report.ExitCode(); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
		text := string(written(t, func(b *bytes.Buffer) error { return test.report.WriteText(b, TextOptions{}) }))
		if test.want == 2 && strings.HasPrefix(text, "clean") {
			t.Errorf("%s: the text begins %q", name, text)
		}
	}
}

// limited returns a report with everything that limits a result.
func limited() *Report {
	r := counted(17, 3, 0.1)
	r.Stopped = "interrupted after 20 of 30 faults"
	r.Idle = "it never became the leader"
	r.NotLearnt = []NotLearnt{{Scenario: "broken", Why: "step create: no such kind"}}
	r.Fixed = []Fixed{{ID: "1", Verdict: judge.Leak, Sentence: "a Secret is left over", File: ".koboshi/findings/fixed/1.json"}}
	r.Inconclusive = []NotRun{{Scenario: "life", Fault: fault.Fault{Kind: fault.KillLost}, Why: "it was found once", Suspicion: &judge.Finding{ID: "2", Sentence: "a ConfigMap is missing"}}}
	return r
}

func TestEveryFormSaysWhatLimitsTheResult(t *testing.T) {
	r := limited()
	for form, write := range map[string]func(*bytes.Buffer) error{
		"text":  func(b *bytes.Buffer) error { return r.WriteText(b, TextOptions{Width: 300}) },
		"junit": func(b *bytes.Buffer) error { return r.WriteJUnit(b) },
		"sarif": func(b *bytes.Buffer) error { return r.WriteSARIF(b, SARIFOptions{}) },
		"html":  func(b *bytes.Buffer) error { return r.WriteHTML(b, nil) },
		"json":  func(b *bytes.Buffer) error { return r.WriteJSON(b) },
	} {
		got := string(written(t, write))
		for _, part := range []string{"interrupted after 20 of 30 faults", "it never became the leader", "broken", "step create: no such kind"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s does not say %q:\n%s", form, part, got)
			}
		}
	}
	text := strings.Join(strings.Fields(string(written(t, func(b *bytes.Buffer) error { return r.WriteText(b, TextOptions{}) }))), " ")
	for _, part := range []string{"1 finding unconfirmed", "1 scenario left out", "unconfirmed: a ConfigMap is missing", "more than the 10 % that --max-inconclusive allows", "a Secret is left over; moved to"} {
		if !strings.Contains(text, part) {
			t.Errorf("the text does not say %q:\n%s", part, text)
		}
	}
}

func TestMergedReportKeepsTheLimitsOfItsShards(t *testing.T) {
	var parts []*Report
	for _, shard := range []string{"1/2", "2/2"} {
		r := limited()
		r.Shard = shard
		parts = append(parts, r)
	}
	merged, err := Merge(parts)
	if err != nil {
		t.Fatal(err)
	}
	if merged.Stopped != "shard 1/2 interrupted after 20 of 30 faults" || merged.Idle == "" || len(merged.NotLearnt) != 1 || len(merged.Fixed) != 1 || merged.MaxInconclusive == nil {
		t.Errorf("the merged report is %+v", merged)
	}
}

func TestFindingThatNoLongerOccursIsMovedWithItsTrace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "findings")
	f := judge.Finding{ID: "1a2b", Verdict: judge.Diverged, Scenario: "life", Attempts: 3, Fault: &fault.Fault{Kind: fault.KillLost}}
	life := saved().Scenario
	o := KeepOptions{Dir: dir, Scenarios: map[string]*scenario.Scenario{"life": &life}, Traces: map[string][]trace.Entry{"1a2b": sampleTrace()}}
	if err := KeepOne(&f, o); err != nil || f.File == "" || f.Replay == "" {
		t.Fatalf("%+v, %v", f, err)
	}
	found, err := LoadFindings(dir)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	r := &Report{}
	if err := r.MoveFixed(found[0]); err != nil {
		t.Fatal(err)
	}
	if left, err := LoadFindings(dir); err != nil || len(left) != 0 {
		t.Errorf("the next check would still try %v, %v", left, err)
	}
	moved, err := LoadFinding(r.Fixed[0].File)
	if err != nil || moved.Finding.ID != "1a2b" || len(moved.Trace) == 0 {
		t.Errorf("the moved finding is %+v, %v", moved, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left in the folder are %v", files)
	}
}
