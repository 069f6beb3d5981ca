package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

func TestEachFormatTellsWhenTheStateWasRight(t *testing.T) {
	for _, tt := range []struct {
		finding judge.Finding
		want    string
	}{
		{judge.Finding{Verdict: judge.Diverged, UnrecoveredSeconds: 44.2}, "not within 44 s after the end of the fault"},
		{judge.Finding{Verdict: judge.DivergedUntilRestart, RecoveredAfterSeconds: 12.5}, "with help, 12 s after the end of the fault"},
		{judge.Finding{Verdict: judge.RecoveredLate, RecoveredAfterSeconds: 71}, "1 min 11 s after the end of the fault"},
	} {
		r := &Report{Runs: 1}
		r.Add(tt.finding)
		var text, markdown, sarif bytes.Buffer
		if err := r.WriteText(&text, TextOptions{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), tt.want) {
			t.Errorf("%s: the text lacks %q:\n%s", tt.finding.Verdict, tt.want, text.String())
		}
		if tt.finding.Verdict.IsRemark() {
			continue // the other formats only count remarks, or list them without facts
		}
		if err := r.WriteMarkdown(&markdown, MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := r.WriteSARIF(&sarif, SARIFOptions{}); err != nil {
			t.Fatal(err)
		}
		for form, out := range map[string]string{"markdown": markdown.String(), "SARIF": sarif.String(), "HTML": htmlOf(t, r, nil)} {
			if !strings.Contains(out, tt.want) {
				t.Errorf("%s: %s lacks %q", tt.finding.Verdict, form, tt.want)
			}
		}
	}
	if got := recovery(judge.Finding{Verdict: judge.HotLoop}); got != "" {
		t.Errorf("a finding without such a time has %q", got)
	}
}
