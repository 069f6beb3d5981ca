package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// ReadFile reads a report written by WriteJSON.
func ReadFile(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	if err := readable(path, data, "report", Version); err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s is damaged or is not a koboshi check report: %w; run the check again", path, err)
	}
	for _, findings := range [][]judge.Finding{r.Findings, r.Remarks} {
		for i := range findings { // these follow from the rest, perhaps differently in this version
			findings[i].Rule, findings[i].Remedy, findings[i].FixedWhen = "", "", ""
		}
	}
	return &r, nil
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	whole := *r
	if whole.Version == 0 {
		whole.Version = Version
	}
	// Write empty lists as [], because readers in other languages expect that.
	whole.Findings = orEmpty(advised(whole.Findings))
	whole.Remarks = advised(whole.Remarks)
	whole.Scenarios = orEmpty(whole.Scenarios)
	whole.Tried = orEmpty(whole.Tried)
	data, err := encoded(whole)
	if err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return nil
}

// advised returns the findings with their rule, remedy and the condition under which they are fixed.
func advised(findings []judge.Finding) []judge.Finding {
	all := slices.Clone(findings)
	for i := range all {
		f := &all[i]
		f.Rule, f.Remedy, f.FixedWhen = ruleID(f.Verdict), remedy(*f), fixedWhen(*f)
	}
	return all
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// encoded returns v as JSON that is readable and harmless to a terminal.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // commands with && and < stay readable
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return calm(b.Bytes()), nil
}

// readable checks the version of a file before the rest of it is decoded, because a later
// version may have different types. The error suggests the user's next action.
func readable(path string, data []byte, what string, known int) error {
	var head struct {
		Version *int `json:"version"`
	}
	err := json.Unmarshal(data, &head)
	switch {
	case err != nil:
		return fmt.Errorf("%s is damaged or is not a koboshi check %s: %w; delete the file, or restore it from a backup", path, what, err)
	case head.Version == nil:
		return fmt.Errorf("%s is not a koboshi check %s: the file has no version field; specify a different file", path, what)
	case *head.Version > known:
		return fmt.Errorf("%s is a %s of version %d, but this koboshi reads only version %d; use the koboshi that wrote the file, or a newer one",
			path, what, *head.Version, known)
	case *head.Version != known:
		return fmt.Errorf("%s is a %s of version %d, but this koboshi reads only version %d; run the check again",
			path, what, *head.Version, known)
	}
	return nil
}

// better compares two findings with the same ID and returns the one that was reproduced
// more often.
func better(a, b judge.Finding) judge.Finding {
	// Compare a.Reproduced/a.Attempts with b.Reproduced/b.Attempts, without dividing by
	// zero.
	left, right := a.Reproduced*b.Attempts, b.Reproduced*a.Attempts
	if left < right || left == right && a.Reproduced < b.Reproduced {
		return b
	}
	return a
}
