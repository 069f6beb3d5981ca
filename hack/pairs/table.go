package main

import (
	"fmt"
	"io"
	"strings"
)

// report holds those fields of a JSON report of koboshi check that the table needs.
type report struct {
	Seconds  float64   `json:"seconds"`
	Findings []finding `json:"findings"`
	Remarks  []finding `json:"remarks"`
	Inputs   []struct {
		Outcome string `json:"outcome"`
	} `json:"inputs"`
}

type finding struct {
	Verdict     string `json:"verdict"`
	Sentence    string `json:"sentence"`
	Input       string `json:"input"`
	Frame       string `json:"frame"`
	Differences []struct {
		Object string `json:"object"`
		Path   string `json:"path"`
	} `json:"differences"`
}

// text returns the verdict of a finding and all that it names, in one line.
func (f *finding) text() string {
	text := f.Verdict + ": " + f.Sentence
	for _, more := range []string{f.Input, f.Frame} {
		if more != "" {
			text += "; " + more
		}
	}
	for _, d := range f.Differences {
		text += "; " + strings.TrimSpace(d.Object+" "+d.Path)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// result holds the reports of a pair, as far as they exist.
type result struct {
	pair    *pair
	reports [2]*report // in the order of sides
}

// names returns the finding or the remark of a report that names the bug, or nil.
func (r *result) names(side int) *finding {
	report := r.reports[side]
	if report == nil {
		return nil
	}
	for _, found := range [][]finding{report.Findings, report.Remarks} {
		for i := range found {
			if r.pair.named.MatchString(found[i].text()) {
				return &found[i]
			}
		}
	}
	return nil
}

// complete reports whether both sides were checked.
func (r *result) complete() bool { return r.reports[0] != nil && r.reports[1] != nil }

// toldApart reports whether the check names the bug only before its fix.
func (r *result) toldApart() bool { return r.complete() && r.names(0) != nil && r.names(1) == nil }

// side describes the report on a side in a cell of the table.
func (r *result) side(side int) string {
	report := r.reports[side]
	if report == nil {
		return "not run"
	}
	named := "not named"
	if f := r.names(side); f != nil {
		named = f.Verdict
	}
	others := len(report.Findings) + len(report.Remarks)
	if named != "not named" {
		others--
	}
	tried := 0
	for _, in := range report.Inputs {
		if in.Outcome != notTried {
			tried++
		}
	}
	return fmt.Sprintf("%s; %d others; %d of %d inputs; %.0f s", named, others, tried, len(report.Inputs), report.Seconds)
}

// notTried is the outcome of an input that the check did not try.
const notTried = "unknown"

// table prints the results as a Markdown table, and how many pairs are told apart.
func table(w io.Writer, results []result) error {
	var b strings.Builder
	b.WriteString("| pair | operator | bug | before the fix | after the fix | told apart |\n|---|---|---|---|---|---|\n")
	told, complete := 0, 0
	for i := range results {
		r := &results[i]
		verdict := "no"
		if r.complete() {
			complete++
		}
		if r.toldApart() {
			told++
			verdict = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.pair.ID, r.pair.Repository, r.pair.Bug, r.side(0), r.side(1), verdict)
	}
	fmt.Fprintf(&b, "\n%d of %d pairs are told apart; %d were checked on both sides.\n", told, len(results), complete)
	_, err := io.WriteString(w, b.String())
	return err
}
