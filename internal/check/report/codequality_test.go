package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

func readIssues(t *testing.T, r *Report, root string) []issue {
	t.Helper()
	var issues []issue
	data := written(t, func(b *bytes.Buffer) error { return r.WriteCodeQuality(b, SARIFOptions{Root: root}) })
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&issues); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return issues
}

// TestEveryIssueHasWhatGitLabRequires also compares the issues with the results in SARIF, because
// both formats must attach a finding to the same line.
func TestEveryIssueHasWhatGitLabRequires(t *testing.T) {
	r, root := sample(), t.TempDir()
	issues, results := readIssues(t, r, root), readSARIF(t, r, root).Runs[0].Results
	if len(issues) != len(results) || len(issues) == 0 {
		t.Fatalf("%d issues for %d results", len(issues), len(results))
	}
	prints := map[string]bool{}
	for i, issue := range issues {
		result := results[i]
		at := result.Locations[0].Physical
		if issue.Location.Path != at.Artifact.URI || issue.Location.Lines.Begin != at.Region.StartLine {
			t.Errorf("%s: %s:%d, and in SARIF %s:%d", issue.CheckName, issue.Location.Path, issue.Location.Lines.Begin, at.Artifact.URI, at.Region.StartLine)
		}
		if issue.CheckName != result.RuleID || issue.Description != result.Message.Text {
			t.Errorf("%s says %q, and in SARIF %s says %q", issue.CheckName, issue.Description, result.RuleID, result.Message.Text)
		}
		if !slices.Contains([]string{"info", "minor", "major", "critical", "blocker"}, issue.Severity) {
			t.Errorf("%s: GitLab does not know the severity %q", issue.CheckName, issue.Severity)
		}
		prints[issue.Fingerprint] = true
	}
	if len(prints) != len(issues) {
		t.Errorf("%d different fingerprints for %d issues", len(prints), len(issues))
	}
}

func TestAReportWithoutFindingsIsAnEmptyListOfIssues(t *testing.T) {
	if data := written(t, func(b *bytes.Buffer) error { return (&Report{}).WriteCodeQuality(b, SARIFOptions{}) }); string(data) != "[]\n" {
		t.Errorf("it is %q", data)
	}
}

// Unlike the addresses in SARIF, the paths of GitLab are not escaped.
func TestPathsOfIssuesAreThoseFromTheTopOfTheRepository(t *testing.T) {
	top := t.TempDir()
	project := filepath.Join(top, "operators", "my viewer")
	for _, dir := range []string{filepath.Join(top, ".git"), project} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"cmd/main.go": "operators/my viewer/cmd/main.go",
		"":            ".",
	} {
		r := &Report{Sources: Sources{Main: file}, Findings: []judge.Finding{{ID: "1", Verdict: judge.Leak}}}
		if got := readIssues(t, r, project)[0].Location; got.Path != want || got.Lines.Begin != 1 {
			t.Errorf("%q is at %+v, want line 1 of %q", file, got, want)
		}
	}
}
