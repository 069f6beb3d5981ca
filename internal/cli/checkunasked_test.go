package cli

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestACheckOfAllFieldsNamesTheQuestionsThatItLeavesOut(t *testing.T) {
	inputs := &check.Options{Trials: []*scenario.Trials{{}}}
	if notes := (&checkFlags{}).unasked(inputs); len(notes) != 1 || !strings.Contains(notes[0], "--paths") || !strings.Contains(notes[0], "--upgrade-from") {
		t.Errorf("the notes are %q", notes)
	}
	if notes := (&checkFlags{paths: true}).unasked(inputs); len(notes) != 1 || strings.Contains(notes[0], "--paths") || !strings.Contains(notes[0], "--upgrade-from") {
		t.Errorf("with --paths, the notes are %q", notes)
	}
	if notes := (&checkFlags{}).unasked(&check.Options{}); notes != nil {
		t.Errorf("without inputs, the notes are %q", notes)
	}
}
