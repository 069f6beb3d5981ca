package main

import (
	"errors"
	"fmt"
	"io"
)

// table prints the results as they arrive, in at most 80 columns.
type table struct{ out io.Writer }

func newTable(out io.Writer) *table { return &table{out} }

const columns = "%-2s %-22s %-22s %4s %6s %4s  %s\n"

func (t *table) header(seed uint64) {
	fmt.Fprintf(t.out, "Seed %d\n\n", seed)
	fmt.Fprintf(t.out, columns, "", "bug", "verdict", "runs", "s", "", "repaired twin")
}

func (t *table) row(r row) {
	verdict, runs, seconds, reproduced := "missed", "-", "-", "-"
	if r.Clean {
		verdict = "(no bug)"
	}
	if r.Verdict != "" {
		verdict, runs = r.Verdict, fmt.Sprint(r.Runs)
		seconds, reproduced = fmt.Sprintf("%.1f", r.Seconds), fmt.Sprintf("%d/%d", r.Reproduced, r.Attempts)
	}
	fmt.Fprintf(t.out, columns, r.Class, r.Name, verdict, runs, seconds, reproduced, r.twin())
	for _, text := range r.Wrong {
		fmt.Fprintf(t.out, "   ✗ %s\n", text)
	}
	for _, text := range r.Remarks {
		fmt.Fprintf(t.out, "   ! %s\n", text)
	}
}

// twin summarizes the result of the twin.
func (r *row) twin() string {
	switch {
	case r.TwinBlamed > 0:
		return fmt.Sprintf("blamed %d×", r.TwinBlamed)
	case r.TwinRuns == 0:
		return "not checked"
	}
	return fmt.Sprintf("%d clean", r.TwinRuns)
}

// footer prints the totals. footer returns an error if anything is wrong.
func (t *table) footer(rows []row) error {
	bugs, found, clean, runs, wrong := 0, 0, 0, 0, 0
	for _, r := range rows {
		if !r.Clean {
			bugs++
		}
		if r.Found {
			found++
		}
		if r.TwinRuns > 0 && r.TwinBlamed == 0 {
			clean++
		}
		if len(r.Wrong) > 0 {
			wrong++
		}
		runs += r.TwinRuns
	}
	fmt.Fprintf(t.out, "\n%d of %d bugs were found; %d of %d correct controllers had no findings in %d runs\n", found, bugs, clean, len(rows), runs)
	if wrong > 0 {
		return fmt.Errorf("%d of %d rows are wrong; for details, run a bug again with -only ID -v", wrong, len(rows))
	}
	if len(rows) == 0 {
		return errors.New("no bug was checked")
	}
	return nil
}
