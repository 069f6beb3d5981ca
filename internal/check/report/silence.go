package report

import (
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// settings names the settings that came from a file, or returns "".
func (r *Report) settings() string {
	if len(r.Settings) == 0 {
		return ""
	}
	return inline("settings from " + r.SettingsFile + ": " + strings.Join(r.Settings, "; "))
}

// silence shows how the project can accept a finding. The lines for koboshi.yaml are not
// wrapped, so that they can be copied.
func (t *text) silence(s *judge.Silence) {
	if s == nil {
		return
	}
	t.labelled("to accept", "add to koboshi.yaml:")
	for line := range strings.Lines(silenceLines(s)) {
		t.line(none, strings.Repeat(" ", len(indent)+15)+strings.TrimRight(line, "\n")) // with its indentation
	}
	t.para(dim, strings.Repeat(" ", len(indent)+13), inline(s.Wrong))
}

// silenceLines returns the lines for koboshi.yaml.
func silenceLines(s *judge.Silence) string { return strings.TrimRight(plain(s.Add), "\n") }

// remarkSilence shows how the project can accept a remark.
func (t *text) remarkSilence(s *judge.Silence) {
	if s == nil {
		return
	}
	t.para(dim, "    ", "to accept this, add to koboshi.yaml:")
	for line := range strings.Lines(silenceLines(s)) {
		t.line(dim, "      "+strings.TrimRight(line, "\n"))
	}
}
