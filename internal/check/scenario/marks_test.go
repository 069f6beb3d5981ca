package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// harbor is the CRD of boats with several maps of texts.
var harbor = strings.Replace(boat, "colors: {type: object", `selector: {type: object, properties: {matchLabels: {type: object, additionalProperties: {type: string}}}}
              pennants: {type: object, additionalProperties: {type: string}}
              limits: {type: object, properties: {labels: {type: object, additionalProperties: {type: integer}}}}
              deckLabels: {type: object, additionalProperties: {type: string}}
              deck:
                type: object
                properties:
                  annotations: {type: object, additionalProperties: {type: string}}
                  labels: {type: object, additionalProperties: {type: string}}
              bows:
                type: array
                items:
                  type: object
                  properties: {labels: {type: object, additionalProperties: {type: string}}}
              colors: {type: object`, 1)

// marksOf returns the trials of a boat that are made together.
func marksOf(t *testing.T, spec string) (marks, alone []*Trials) {
	t.Helper()
	_, made, _ := trialsOf(t, harbor, spec)
	for _, one := range made {
		if one.Marks() {
			marks = append(marks, one)
		} else {
			alone = append(alone, one)
		}
	}
	return marks, alone
}

func TestLabelsAndAnnotationsAreChangedInTheSameSteps(t *testing.T) {
	t.Parallel()
	marks, alone := marksOf(t, `{"masts":2,"deckLabels":{"wood":"oak"},"bows":[{}]}`)
	if len(marks) != 1 {
		t.Fatalf("there are %d scenarios, want one: too few fields lie in objects that the sample lacks", len(marks))
	}
	texts := map[string]bool{}
	for _, trial := range marks[0].Trials {
		texts[trial.Mark] = true
	}
	fields := fieldsOf(marks[0])
	if diff := cmp.Diff([]string{"metadata.labels", "spec.bows[].labels", "spec.deckLabels"}, fields); diff != "" {
		t.Errorf("fields, -want +got:\n%s", diff)
	}
	if len(texts) != len(fields) {
		t.Errorf("%d fields have the texts %v", len(fields), texts)
	}
	var patches []string
	for _, step := range marks[0].Scenario.Steps[1+controls:] {
		patches = append(patches, step.Name+" "+string(step.Patch.Merge))
	}
	for i, want := range []string{"mark ", "then-mark ", "undo-mark "} {
		if i >= len(patches) || !strings.HasPrefix(patches[i], want) {
			t.Fatalf("the steps are %q", patches)
		}
	}
	for i, letter := range []string{"-a", "-b"} {
		if n := strings.Count(patches[i], letter+`"`); n != len(fields) {
			t.Errorf("%d texts end with %s in %s", n, letter, patches[i])
		}
	}
	if strings.Contains(patches[2], "-b") || strings.Contains(patches[2], `"labels":null`) || strings.Contains(patches[2], "wood") {
		t.Errorf("the return removes more than the texts: %s", patches[2])
	}
	if !strings.Contains(patches[2], `"bows":[{}]`) || strings.Count(patches[2], ":null") != 2 {
		t.Errorf("the return does not remove all texts: %s", patches[2])
	}
	found := map[string]bool{}
	for _, one := range alone {
		for _, trial := range one.Trials {
			found[trial.Field+" "+trial.Verb] = true
		}
	}
	for _, want := range []string{"spec.deckLabels add-to", "spec.bows[].labels add", "spec.deck.labels add", "metadata.labels add-to"} {
		if !found[want] {
			t.Errorf("no trial makes only the change %s", want)
		}
	}
}

// fieldsOf returns the fields of trials.
func fieldsOf(t *Trials) (fields []string) {
	for _, trial := range t.Trials {
		fields = append(fields, trial.Field)
	}
	slices.Sort(fields)
	return fields
}

func TestLabelsAnnotationsAndMissingObjectsAreMarkedSeparately(t *testing.T) {
	t.Parallel()
	more := strings.Replace(harbor, "deckLabels:", "keelAnnotations: {type: object, additionalProperties: {type: string}}\n              deckLabels:", 1)
	more = strings.Replace(more, "annotations: {type: object", "hatchLabels: {type: object, additionalProperties: {type: string}}\n                  annotations: {type: object", 1)
	_, made, _ := trialsOf(t, more, `{"masts":2}`)
	var fields [][]string
	for _, one := range made {
		if one.Marks() {
			fields = append(fields, fieldsOf(one))
		}
	}
	want := [][]string{
		{"metadata.annotations", "spec.keelAnnotations"}, {"metadata.labels", "spec.deckLabels"},
		{"spec.deck.hatchLabels", "spec.deck.labels"},
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMarksOfSlowControllersWaitInEachStepOfAChange(t *testing.T) {
	t.Parallel()
	marks, _ := marksOf(t, `{"masts":2,"deckLabels":{},"bows":[{}]}`)
	const quiet = 7 * time.Second
	var waiting []string
	for _, step := range marks[0].Waiting(quiet).Scenario.Steps {
		if step.Quiet == Duration(quiet) {
			waiting = append(waiting, step.Name)
		}
	}
	if diff := cmp.Diff([]string{"mark", "then-mark", "undo-mark"}, waiting); diff != "" {
		t.Error(diff)
	}
	for _, step := range marks[0].Scenario.Steps {
		if step.Quiet != 0 {
			t.Errorf("the original waits in %s", step.Name)
		}
	}
}

func TestAfterAllTextsAreGoneTheStateIsAsBefore(t *testing.T) {
	t.Parallel()
	marks, _ := marksOf(t, `{"masts":2,"deckLabels":{},"bows":[{}]}`)
	steps, before := marks[0].Back().Scenario.Steps, marks[0].Scenario.Steps
	last := len(steps) - 1
	if last != len(before)-1 || steps[last].Name != "undo-mark" || steps[last].SameAs != CreateStep || before[last].SameAs != "" {
		t.Errorf("the last steps are %+v, and before, %+v", steps[last], before[last])
	}
	if err := marks[0].Back().Scenario.Validate(); err != nil {
		t.Error(err)
	}
}
