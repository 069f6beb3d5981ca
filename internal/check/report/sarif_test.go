package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func readSARIF(t *testing.T, r *Report, root string) sarifLog {
	t.Helper()
	var l sarifLog
	data := written(t, func(b *bytes.Buffer) error { return r.WriteSARIF(b, SARIFOptions{Root: root}) })
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return l
}

func TestSARIFIsAsInTheGoldenFile(t *testing.T) {
	golden(t, "sarif.json", written(t, func(b *bytes.Buffer) error { return sample().WriteSARIF(b, SARIFOptions{Root: t.TempDir()}) }))
}

// TestEveryResultHasARuleALevelALocationAndAFingerprint checks the requirements of GitHub's
// code scanning that are not in the schema.
func TestEveryResultHasARuleALevelALocationAndAFingerprint(t *testing.T) {
	r := sample()
	r.Findings = append(r.Findings, judge.Finding{ID: "t", Verdict: "OF TOMORROW", Sentence: "It is new."})
	run := readSARIF(t, r, t.TempDir()).Runs[0]
	all := slices.Concat(r.Findings, r.remarks())
	if len(run.Results) != len(all) {
		t.Fatalf("%d results of %d findings and remarks", len(run.Results), len(all))
	}
	prints := map[string]bool{}
	for i, result := range run.Results {
		rule := run.Tool.Driver.Rules[result.RuleIndex]
		if rule.ID != result.RuleID || rule.Help.Text == "" || rule.Name == "" {
			t.Errorf("the rule of %s is %+v", result.RuleID, rule)
		}
		if !slices.Contains([]gravity{"error", "warning", "note"}, result.Level) {
			t.Errorf("the level of %s is %q", result.RuleID, result.Level)
		}
		if !strings.Contains(result.Message.Text, all[i].Sentence) {
			t.Errorf("the message is %q", result.Message.Text)
		}
		if len(result.Locations) != 1 || result.Locations[0].Physical.Region.StartLine < 1 || result.Locations[0].Physical.Artifact.URI == "" {
			t.Errorf("%s: locations %+v", result.RuleID, result.Locations)
		}
		prints[result.Fingerprints["primaryLocationLineHash"]] = true
	}
	if len(prints) != len(r.Findings)+len(r.remarks()) {
		t.Errorf("the findings do not have one fingerprint each: %v", prints)
	}
}

func TestRulesOfSARIFAreAllVerdictsAndNoneTwice(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range readSARIF(t, &Report{}, "").Runs[0].Tool.Driver.Rules {
		if seen[rule.ID] || !regexp.MustCompile(`^koboshi/[a-z]+(-[a-z]+)*$`).MatchString(rule.ID) {
			t.Errorf("rule %q", rule.ID)
		}
		seen[rule.ID] = true
	}
	if len(seen) != len(verdicts) {
		t.Errorf("%d rules, want one for each of the %d verdicts", len(seen), len(verdicts))
	}
}

// TestTheIDsOfTheRulesAreStable lists the IDs, because a team that closed the alerts of a rule, or
// filters JSON reports by rule, relies on them.
func TestTheIDsOfTheRulesAreStable(t *testing.T) {
	want := []string{
		"koboshi/diverged", "koboshi/split-brain", "koboshi/destructive-blip", "koboshi/taken-over", "koboshi/collision", "koboshi/secret-leaked", "koboshi/invariant", "koboshi/crashed",
		"koboshi/stuck-terminating", "koboshi/leak", "koboshi/diverged-until-restart", "koboshi/path-dependent", "koboshi/hot-loop", "koboshi/rbac-missing", "koboshi/api-removed",
		"koboshi/data-lost", "koboshi/conversion-lossy", "koboshi/wedged", "koboshi/stored-versions-stuck", "koboshi/upgrade-churn", "koboshi/differs-from-a-fresh-install", "koboshi/downgrade-broken",
		"koboshi/recovered-late", "koboshi/suite-failed", "koboshi/not-restored", "koboshi/gave-up", "koboshi/rbac-unused", "koboshi/refused-late", "koboshi/blast-radius", "koboshi/never-ready", "koboshi/creation-only", "koboshi/inert-field", "koboshi/more-requests", "koboshi/unbounded-lists", "koboshi/event-storm",
	}
	var got []string
	for _, rule := range readSARIF(t, &Report{}, "").Runs[0].Tool.Driver.Rules {
		got = append(got, rule.ID)
		if !strings.Contains(rule.Help.Text, "Fixed when ") || !strings.Contains(rule.Help.Markdown, "Fixed when ") {
			t.Errorf("the help of %s does not say when a finding is fixed: %q", rule.ID, rule.Help.Text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rules are %q, want %q", got, want)
	}
}

// GitHub would close the alerts of the check when the upgrade is uploaded.
func TestAnUpgradeHasAnotherCategoryThanACheck(t *testing.T) {
	for want, args := range map[string][]string{
		"koboshi-check/viewer/":         {"--seed=1", "--", "manager", "--upgrade-from=v1"},
		"koboshi-check/viewer/upgrade/": {"--seed=1", "--upgrade-from=v1.0.0"},
	} {
		r := &Report{Subject: "viewer", Args: args}
		if got := readSARIF(t, r, t.TempDir()).Runs[0].Automation.ID; got != want {
			t.Errorf("the category with %q is %q, want %q", args, got, want)
		}
	}
}

func TestAFindingIsPinnedToTheKindThenTheScenarioThenTheMainFile(t *testing.T) {
	r := sample()
	tests := map[string]struct {
		finding judge.Finding
		want    string
		line    int
	}{
		"kind of the scenario": {judge.Finding{Verdict: judge.Leak, Scenario: "life"}, "api/v1/viewer_types.go", 58},
		"kind of a difference": {judge.Finding{Verdict: judge.Leak, Scenario: "scale",
			Differences: []state.Difference{{Object: "Viewer.apps.example.com default/a"}}}, "api/v1/viewer_types.go", 58},
		"file of the scenario": {judge.Finding{Verdict: judge.Leak, Scenario: "scale"}, "check/scale.yaml", 1},
		"nothing known":        {judge.Finding{Verdict: judge.Leak}, "cmd/main.go", 35},
		"role":                 {judge.Finding{Verdict: judge.RBACMissing, Scenario: "life"}, "config/rbac/role.yaml", 1},
	}
	for name, test := range tests {
		r.Findings = []judge.Finding{test.finding}
		at := readSARIF(t, r, t.TempDir()).Runs[0].Results[0].Locations[0].Physical
		if at.Artifact.URI != test.want || at.Region.StartLine != test.line {
			t.Errorf("%s: %s:%d, want %s:%d", name, at.Artifact.URI, at.Region.StartLine, test.want, test.line)
		}
	}
}

func TestPathsInSARIFAreThoseFromTheTopOfTheRepository(t *testing.T) {
	top := t.TempDir()
	project := filepath.Join(top, "operators", "my viewer")
	for _, dir := range []string{filepath.Join(top, ".git"), project} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]string{
		"cmd/main.go":                            "operators/my%20viewer/cmd/main.go",
		filepath.Join(project, "cmd", "x.go"):    "operators/my%20viewer/cmd/x.go",
		filepath.Join(top, "shared", "crd.yaml"): "shared/crd.yaml",
		filepath.Join(filepath.Dir(top), "x.go"): "x.go", // the folders of the machine stay hidden
	}
	for file, want := range tests {
		r := &Report{Sources: Sources{Main: file}, Findings: []judge.Finding{{ID: "1", Verdict: judge.Leak}}}
		if got := readSARIF(t, r, project).Runs[0].Results[0].Locations[0].Physical.Artifact.URI; got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}
