package scenario

import (
	"maps"
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

// bareOf returns the trials of a boat that are made for Joint and change the boat.
func bareOf(t *testing.T, crd, spec string) (bare []*Trials) {
	t.Helper()
	return jointOf(t, crd, spec, false)
}

// jointOf returns the trials of a boat that are made for Joint, and either create another boat or change it.
func jointOf(t *testing.T, crd, spec string, fresh bool) (bare []*Trials) {
	t.Helper()
	_, made, _ := trialsOf(t, crd, spec)
	for _, one := range made {
		if one.Bare && one.isFresh() == fresh {
			bare = append(bare, one)
		}
	}
	return bare
}

// adding returns those of the trials that add an empty object.
func adding(bare []*Trials) []*Trials {
	return slices.DeleteFunc(slices.Clone(bare), func(one *Trials) bool {
		var value any = one.sample()
		for _, name := range strings.Split(one.Trials[0].Field, ".") {
			name, isItem := strings.CutSuffix(name, "[]")
			object, _ := value.(map[string]any)
			if value = object[name]; isItem {
				value = value.([]any)[0]
			}
		}
		return value != nil
	})
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
			for _, one := range adding(bareOf(t, of.crd, of.spec)) {
				got = append(got, fieldsOf(one))
			}
			if diff := cmp.Diff(of.want, got); diff != "" {
				t.Errorf("groups, -want +got:\n%s", diff)
			}
		})
	}
}

func TestFieldsThatAreLeftOutOrLeftEmptyAreGroupedAsWell(t *testing.T) {
	t.Parallel()
	var got [][]string
	for _, one := range bareOf(t, yard, `{"masts":2,"engine":{"horses":3},"cabin":{"doors":1,"galley":{"stoves":1},"berth":{"beds":1}},"holds":[{"hatch":{"width":1},"pump":{"power":1}}]}`) {
		verbs := map[string]bool{}
		for _, trial := range one.Trials {
			verbs[trial.Verb] = true
		}
		got = append(got, append(slices.Sorted(maps.Keys(verbs)), fieldsOf(one)...))
	}
	want := [][]string{
		{"empty", "spec.cabin", "spec.engine", "spec.holds[].hatch", "spec.holds[].pump"},
		{"empty", "spec.colors", "spec.oars", "spec.sail"},
		{"remove", "spec.cabin", "spec.engine", "spec.holds"},
		{"empty", "spec.cabin.berth", "spec.cabin.galley"},
		{"remove", "spec.cabin.berth", "spec.cabin.doors", "spec.cabin.galley", "spec.engine.horses", "spec.holds[].hatch", "spec.holds[].pump"},
		{"remove", "spec.cabin.berth.beds", "spec.cabin.galley.stoves", "spec.holds[].hatch.width", "spec.holds[].pump.power"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verbs and fields of the groups, -want +got:\n%s", diff)
	}
}

func TestSeveralFieldsOfAnItemOfAListAreLeftOutInOneStep(t *testing.T) {
	t.Parallel()
	for _, bare := range bareOf(t, yard, `{"masts":2,"holds":[{"name":"fore","hatch":{"width":1},"pump":{"power":1}},{"name":"aft"}]}`) {
		var selected []int
		for i, trial := range bare.Trials {
			if trial.Field == "spec.holds[].hatch" || trial.Field == "spec.holds[].pump" {
				selected = append(selected, i)
			}
		}
		if len(selected) < 2 {
			continue
		}
		want := map[string]string{
			"empty":  `{"spec":{"holds":[{"hatch":{},"name":"fore","pump":{}},{"name":"aft"}]}}`,
			"remove": `{"spec":{"holds":[{"name":"fore"},{"name":"aft"}]}}`,
		}[bare.Trials[selected[0]].Verb]
		steps := bare.Joint(selected).Scenario.Steps
		if got := string(steps[len(steps)-1].Patch.Merge); got != want {
			t.Errorf("the patch is\n%s, want\n%s", got, want)
		}
	}
}

func TestPartsOfPodsHaveGroupsOfTheirOwn(t *testing.T) {
	t.Parallel()
	crd := strings.Replace(yard, "cabin:\n", `securityContext: {type: object, properties: {runAsUser: {type: integer}}}
              resources: {type: object, properties: {limits: {type: object, additionalProperties: {type: string}}}}
              cabin:
`, 1)
	var got [][]string
	for _, one := range adding(bareOf(t, crd, `{"masts":2,"engine":{"horses":3},"holds":[],"cabin":{"doors":1,"galley":{"stoves":1},"berth":{"beds":1}}}`)) {
		got = append(got, fieldsOf(one))
	}
	want := [][]string{{"spec.colors", "spec.oars", "spec.sail"}, {"spec.resources", "spec.securityContext"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups, -want +got:\n%s", diff)
	}
}

func TestABoatIsAlsoCreatedWithEachGroupOfChanges(t *testing.T) {
	t.Parallel()
	const spec = `{"masts":2,"engine":{"horses":3},"holds":[{"name":"fore","hatch":{"width":1},"pump":{"power":1}},{"name":"aft"}]}`
	changed, created := bareOf(t, yard, spec), jointOf(t, yard, spec, true)
	if len(changed) != len(created) {
		t.Fatalf("%d groups of changes, and %d of creations", len(changed), len(created))
	}
	for n, fresh := range created {
		if diff := cmp.Diff(fieldsOf(changed[n]), fieldsOf(fresh)); diff != "" {
			t.Errorf("the fields, -changed +created:\n%s", diff)
		}
		if given := fresh.Trials[0].Given(); !strings.HasPrefix(given, "another object was created with") {
			t.Errorf("a trial is described as %q", given)
		}
	}
	all := created[slices.IndexFunc(created, func(t *Trials) bool {
		return slices.Contains(fieldsOf(t), "spec.holds[].pump") && t.Trials[0].Verb == "create-remove"
	})]
	var selected []int
	for i, trial := range all.Trials {
		if strings.HasPrefix(trial.Field, "spec.holds") || trial.Field == "spec.engine.horses" {
			selected = append(selected, i)
		}
	}
	steps := all.Joint(selected).Scenario.Steps
	last := steps[len(steps)-1].Apply[0].Object
	want := map[string]any{"masts": int64(2), "engine": map[string]any{}, "holds": []any{map[string]any{}, map[string]any{"name": "aft"}}}
	if diff := cmp.Diff(want, last["spec"]); diff != "" {
		t.Errorf("the boat, -want +got:\n%s", diff)
	}
	if name, _ := valueAt(last, []any{"metadata", "name"}); name != "ellen-joint" {
		t.Errorf("the boat is called %s", name)
	}
	var names []string
	for _, step := range all.Successive(selected[:2]).Scenario.Steps {
		names = append(names, step.Name)
	}
	first, second := all.Trials[selected[0]], all.Trials[selected[1]]
	if want := []string{CreateStep, "delete", first.Step, first.Undo, second.Step, second.Undo}; !slices.Equal(names, want) {
		t.Errorf("the steps are %q, want %q", names, want)
	}
}

func TestUnchangedTrialsOnlyMakeTheControllerReconcile(t *testing.T) {
	t.Parallel()
	_, made, _ := trialsOf(t, boat, `{"masts":2}`)
	alone := made[slices.IndexFunc(made, func(t *Trials) bool { return t.Alone() && !t.isFresh() })]
	changed, still := alone.Single(0), alone.Single(0).Unchanged()
	if len(changed.Scenario.Steps) != len(still.Scenario.Steps) {
		t.Fatalf("%d steps instead of %d", len(still.Scenario.Steps), len(changed.Scenario.Steps))
	}
	for i, step := range still.Scenario.Steps {
		switch is := changed.Scenario.Steps[i]; {
		case step.Name != is.Name || step.SameAs != is.SameAs:
			t.Errorf("step %s is %s", is.Name, step.Name)
		case step.Patch != nil && (strings.Contains(string(step.Patch.Merge), "spec") || !strings.Contains(string(step.Patch.Merge), touched)):
			t.Errorf("step %s changes %s", step.Name, step.Patch.Merge)
		}
	}
}

func TestJointTrialsAreMadeInOneStep(t *testing.T) {
	t.Parallel()
	all := bareOf(t, yard, `{"masts":2,"engine":{"horses":3},"holds":[{"name":"fore"},{"name":"aft"}],"sail":{"area":1},"oars":{"count":2},"cabin":{"doors":1}}`)
	bare := adding(all)[0]
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
	all := bareOf(t, yard, `{"masts":2,"engine":{"horses":3},"holds":[{"name":"fore"},{"name":"aft"}],"sail":{"area":1},"oars":{"count":2},"cabin":{"doors":1}}`)
	bare := adding(all)[0]
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

func TestEachChangeThatLeavesSomethingEmptyOrOutIsAlsoMadeAlone(t *testing.T) {
	t.Parallel()
	const spec = `{"masts":2,"engine":{"horses":3},"cabin":{"doors":1}}`
	_, made, _ := trialsOf(t, yard, spec)
	alone := map[string]bool{}
	for _, one := range made {
		for _, trial := range one.Trials {
			alone[trial.Verb+" "+trial.Field] = alone[trial.Verb+" "+trial.Field] || one.Alone()
		}
	}
	for _, one := range bareOf(t, yard, spec) {
		for _, trial := range one.Trials {
			if change := trial.Verb + " " + trial.Field; !alone[change] {
				t.Errorf("%s is not made alone", change)
			}
		}
	}
}
