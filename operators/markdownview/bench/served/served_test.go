package main

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/operators/markdownview/bench/internal/figures"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
)

func TestTableFitsATerminalAndJudges(t *testing.T) {
	for missed, r := range map[int]*Report{
		0: {ServedRatio: 1.5, EditedRatio: 0.2, Readers: readers.Report{Requests: 1_000_000, Returned: 3}},
		3: {ServedRatio: 1.51, EditedRatio: 2, Readers: readers.Report{Failed: 1}},
		1: {Readers: readers.Report{Mixed: 1}},
	} {
		r.Conditions, r.Edits = figures.Now(), 10
		var out strings.Builder
		r.table(&out)
		for line := range strings.Lines(out.String()) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("wider than 80 columns: %s", line)
			}
		}
		if got := strings.Count(out.String(), "MISSED"); got != missed {
			t.Errorf("%d missed, want %d:\n%s", got, missed, out.String())
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range []string{"-rounds 0", "-replicas 6", "-pages 1", "-edits 0", "more"} {
		if err := command(t.Context(), strings.Fields(args), nil); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}
