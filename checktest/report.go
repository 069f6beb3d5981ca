package checktest

import (
	"fmt"
	"strings"
)

// report holds the fields of koboshi's JSON report that a test prints.
type report struct {
	Findings     []finding `json:"findings"`
	Seed         uint64    `json:"seed"`
	Runs         int       `json:"runs"`
	Inconclusive []struct {
		Scenario string `json:"scenario"`
		Why      string `json:"why"`
	} `json:"inconclusive"`
	Notes []string `json:"notes"`

	dir string // the folder of the subject, from which paths in the report start
}

type finding struct {
	Verdict  string `json:"verdict"`
	Scenario string `json:"scenario"`
	Step     string `json:"step"`
	// Fault is nil if the controller needs no fault to fail.
	Fault *struct {
		Kind string `json:"kind"`
	} `json:"fault"`
	Sentence    string `json:"sentence"`
	Differences []struct {
		Object string `json:"object"`
		Path   string `json:"path"`
		Want   string `json:"want"`
		Got    string `json:"got"`
	} `json:"differences"`
	Detail     string `json:"detail"`
	Reproduced int    `json:"reproduced"`
	Attempts   int    `json:"attempts"`
	Replay     string `json:"replay"`
}

// name returns the name of a subtest: the verdict, the first object that differs, and the
// fault. A slash would begin a subtest of the subtest.
func (f finding) name() string {
	parts := []string{f.Verdict}
	if len(f.Differences) > 0 {
		parts = append(parts, f.Differences[0].Object)
	}
	fault := "no fault"
	if f.Fault != nil {
		fault = f.Fault.Kind
	}
	return strings.ReplaceAll(strings.Join(append(parts, fault), " "), "/", ":")
}

// message describes finding number i of the report.
func (f finding) message(i int, r report) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "finding %d of %d: %s, scenario %s, step %s, reproduced %d of %d\n%s\n",
		i+1, len(r.Findings), f.Verdict, f.Scenario, f.Step, f.Reproduced, f.Attempts, f.Sentence)
	for _, d := range f.Differences {
		_, _ = fmt.Fprintf(&b, "  %s %s\n    want %s\n    got  %s\n", d.Object, d.Path, orNothing(d.Want), orNothing(d.Got))
	}
	if f.Detail != "" {
		_, _ = fmt.Fprintf(&b, "%s\n", f.Detail)
	}
	if f.Replay != "" {
		where := ""
		if r.dir != "." {
			where = " (in the folder " + r.dir + ")"
		}
		_, _ = fmt.Fprintf(&b, "replay%s: %s\n", where, f.Replay)
	}
	_, _ = fmt.Fprintf(&b, "seed: %d", r.Seed)
	return b.String()
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// summary describes a check without findings. summary includes the notes, because the notes list
// what was not checked.
func (r report) summary() string {
	text := fmt.Sprintf("no findings in %d runs (seed %d)", r.Runs, r.Seed)
	for _, note := range r.Notes {
		text += "\n" + note
	}
	return text
}

// reasons lists why runs have no result, each reason once.
func (r report) reasons() string {
	var lines []string
	seen := map[string]bool{}
	for _, n := range r.Inconclusive {
		if line := "scenario " + n.Scenario + ": " + n.Why; !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
