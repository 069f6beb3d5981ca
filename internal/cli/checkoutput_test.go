package cli

import (
	"strings"
	"testing"
)

func TestACommentTellsWhereTheWholeReportIs(t *testing.T) {
	for given, want := range map[string]string{
		"markdown=check.md":                 "in the log of the check",
		"markdown":                          "-o html=FILE",
		"markdown=check.md json=check.json": "in check.json",
		"markdown=check.md json=check.json html=page.html":     "in page.html",
		"json markdown=check.md":                               "-o html=FILE",
		"sarif=check.sarif text=check.txt markdown=comment.md": "in check.txt",
	} {
		t.Run(given, func(t *testing.T) {
			t.Chdir(t.TempDir())
			all, err := parseOutputs(strings.Fields(given))
			if err != nil {
				t.Fatal(err)
			}
			if got := all.whole(); !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
