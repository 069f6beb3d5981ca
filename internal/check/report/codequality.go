package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/report/anchor"
)

// issue is an entry of a report that GitLab shows in a merge request, with the fields that GitLab
// requires; see docs.gitlab.com/ci/testing/code_quality.
type issue struct {
	Description string        `json:"description"`
	CheckName   string        `json:"check_name"`
	Fingerprint string        `json:"fingerprint"`
	Severity    string        `json:"severity"`
	Location    issueLocation `json:"location"`
}

type issueLocation struct {
	Path  string     `json:"path"`
	Lines issueLines `json:"lines"`
}

type issueLines struct {
	Begin int `json:"begin"`
}

// severities maps how serious a verdict is to GitLab's words.
var severities = map[gravity]string{grave: "critical", middle: "major", slight: "info"}

// WriteCodeQuality writes the findings for GitLab's code quality. It attaches them to the same lines
// as WriteSARIF.
func (r *Report) WriteCodeQuality(w io.Writer, o SARIFOptions) error {
	paths, err := pathsFrom(o.Root)
	if err != nil {
		return fmt.Errorf("writing the report for code quality: %w", err)
	}
	project := anchor.Open(paths.root)
	issues := []issue{}
	for _, f := range slices.Concat(r.Findings, r.remarks()) {
		at := r.lineOf(f, project)
		path := "."
		if at.File != "" {
			path = paths.fromTop(at.File)
		}
		issues = append(issues, issue{
			Description: message(f), CheckName: ruleID(f.Verdict), Fingerprint: inline(f.ID),
			Severity: severities[about(f.Verdict).gravity], Location: issueLocation{path, issueLines{max(at.Number, 1)}},
		})
	}
	data, err := encoded(issues)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("writing the report for code quality: %w", err)
	}
	return nil
}
