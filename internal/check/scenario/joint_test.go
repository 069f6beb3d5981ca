package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// yard is the CRD of boats with several optional objects, two of which exclude each other.
var yard = strings.Replace(boat, "engine:\n", `sail: {type: object, properties: {area: {type: integer}}}
              oars: {type: object, properties: {count: {type: integer}}}
              cabin:
                type: object
                properties:
                  doors: {type: integer}
                  galley: {type: object, properties: {stoves: {type: integer}}}
                  berth: {type: object, properties: {beds: {type: integer}}}
              holds:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string}
                    hatch: {type: object, properties: {width: {type: integer}}}
                    pump: {type: object, properties: {power: {type: integer}}}
              engine:
`, 1)

var exclusive = strings.Replace(yard, "required: [masts]", `required: [masts]
            x-kubernetes-validations: [{rule: '!(has(self.sail) && has(self.oars))', message: sail or row}]`, 1)

// bareOf returns the trials of a boat that are made for Joint.
func bareOf(t *testing.T, crd, spec string) (bare []*Trials) {
	t.Helper()
	_, made, _ := trialsOf(t, crd, spec)
	for _, one := range made {
		if one.Bare {
			bare = append(bare, one)
		}
	}
	return bare
}

func TestEmptyObjectsThatASampleLacksAreGroupedSoThatNoneLiesInAnother(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		crd, spec string
		want      [][]string
	}{
		"by depth": {yard, `{"masts":2,"engine":{"horses":3}}`, [][]string{
			{"spec.cabin", "spec.colors", "spec.oars", "spec.sail"}, {"spec.cabin.berth", "spec.cabin.galley"},
		}},
		"in an item of a list": {yard, `{"masts":2,"engine":{"horses":3},"holds":[{"name":"fore"}],"sail":{"area":1},"oars":{"count":2},"cabin":{"doors":1}}`, [][]string{
			{"spec.cabin.berth", "spec.cabin.galley", "spec.colors", "spec.holds[].hatch", "spec.holds[].pump"},
		}},
		"what excludes each other is not together": {exclusive, `{"masts":2,"engine":{"horses":3},"cabin":{"doors":1,"galley":{"stoves":1},"berth":{"beds":1}},"colors":{"hull":"red"}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got [][]string
			for _, one := range bareOf(t, of.crd, of.spec) {
				got = append(got, fieldsOf(one))
			}
			if diff := cmp.Diff(of.want, got); diff != "" {
				t.Errorf("groups, -want +got:\n%s", diff)
			}
		})
	}
}

func TestJointTrialsAreMadeInOneStep(t *testing.T) {
	t.Parallel()
	bare := bareOf(t, yard, `{"masts":2,"engine":{"horses":3},"holds":[{"name":"fore"},{"name":"aft"}],"sail":{"area":1},"oars":{"count":2},"cabin":{"doors":1}}`)[0]
	var selected []int
	for i, trial := range bare.Trials {
		if trial.Field != "spec.colors" {
			selected = append(selected, i)
		}
	}
	joint := bare.Joint(selected)
	steps := joint.Scenario.Steps[1+controls:]
	if len(steps) != 1 {
		t.Fatalf("there are %d steps after the control steps, want one", len(steps))
	}
	want := `{"spec":{"cabin":{"berth":{},"galley":{}},"holds":[{"hatch":{},"name":"fore","pump":{}},{"name":"aft"}]}}`
	if got := string(steps[0].Patch.Merge); got != want {
		t.Errorf("the patch is\n%s, want\n%s", got, want)
	}
	for _, trial := range joint.Trials {
		if !trial.Has(steps[0].Name) {
			t.Errorf("the step of %s is %s", trial.Field, trial.Step)
		}
	}
	if slices.Contains(fieldsOf(joint), "spec.colors") || len(bare.Trials) != len(selected)+1 {
		t.Errorf("the trials are %q of %q", fieldsOf(joint), fieldsOf(bare))
	}
}

func TestSuccessiveTrialsKeepWhatTheStepsBeforeThemHaveAdded(t *testing.T) {
	t.Parallel()
	bare := bareOf(t, yard, `{"masts":2,"engine":{"horses":3},"holds":[{"name":"fore"},{"name":"aft"}],"sail":{"area":1},"oars":{"count":2},"cabin":{"doors":1}}`)[0]
	var selected []int
	for i, trial := range bare.Trials {
		if strings.HasPrefix(trial.Field, "spec.holds") {
			selected = append(selected, i)
		}
	}
	successive := bare.Successive(selected)
	var got []string
	for _, step := range successive.Scenario.Steps[1+controls:] {
		got = append(got, string(step.Patch.Merge))
	}
	want := []string{
		`{"spec":{"holds":[{"name":"fore","pump":{}},{"name":"aft"}]}}`,
		`{"spec":{"holds":[{"hatch":{},"name":"fore","pump":{}},{"name":"aft"}]}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches, -want +got:\n%s", diff)
	}
	for i, trial := range successive.Trials {
		if step := successive.Scenario.Steps[1+controls+i].Name; trial.Step != step || trial.Undo != "" {
			t.Errorf("the steps of %s are %q and %q, want only %q", trial.Field, trial.Step, trial.Undo, step)
		}
	}
}

func TestEachEmptyObjectIsAlsoTriedAlone(t *testing.T) {
	t.Parallel()
	_, made, _ := trialsOf(t, yard, `{"masts":2}`)
	alone := map[string]bool{}
	for _, one := range made {
		for _, trial := range one.Trials {
			if one.Alone() && trial.Verb == "empty" {
				alone[trial.Field] = true
			}
		}
	}
	for _, one := range bareOf(t, yard, `{"masts":2}`) {
		for _, field := range fieldsOf(one) {
			if !alone[field] {
				t.Errorf("%s is not tried alone", field)
			}
		}
	}
}
