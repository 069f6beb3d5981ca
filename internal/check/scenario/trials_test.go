package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const boat = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [masts]
            properties:
              masts: {type: integer, minimum: 0, maximum: 9}
              flag: {type: string}
              hull: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: a hull is for ever}]}
              crew: {type: array, items: {type: string}}
              engine:
                type: object
                properties: {horses: {type: integer, default: 0}}
              colors: {type: object, additionalProperties: {type: string}}
              rig: {type: string, enum: [sloop, ketch]}
`

// boatTrials returns the trials of one boat as "verb field value".
func boatTrials(t *testing.T, spec string) (all []string, made []*Trials, notes []string) {
	t.Helper()
	return trialsOf(t, boat, spec)
}

// trialsOf does the same for another CRD of boats.
func trialsOf(t *testing.T, crd, spec string) (all []string, made []*Trials, notes []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	text := `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"ellen","namespace":"default"},"spec":` + spec + `}`
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	sample := Sample{File: "boat.yaml", Objects: []unstructured.Unstructured{{Object: object}}}
	made, notes, err := GenerateTrials([]Sample{sample}, readCRDs(t, file), GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, some := range made {
		if err := some.Scenario.Validate(); err != nil {
			t.Error(err)
		}
		for _, trial := range some.Trials {
			if some.Bare {
				break // they are also made alone
			}
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", trial.Verb, trial.Field, trial.Value)))
		}
	}
	slices.Sort(all)
	return all, made, notes
}

func TestEachFieldIsChangedAloneAndAtItsEdges(t *testing.T) {
	t.Parallel()
	got, made, notes := boatTrials(t, `{"masts":2,"flag":"red","hull":"oak","crew":["ann"],"colors":{"deck":"white"}}`)
	want := []string{
		`add spec.engine.horses 1`, `add spec.rig "sloop"`,
		`add-to metadata.annotations {"koboshi.example.com/tried":"koboshi"}`,
		`add-to metadata.labels {"koboshi.example.com/tried":"koboshi"}`,
		`add-to spec.colors {"deck":"white","koboshi":"koboshi"}`,
		`append spec.crew ["ann","ann-b"]`,
		`change spec.colors.deck "white-b"`, `change spec.flag "red-b"`, `change spec.masts 3`,
		`create metadata.name "1-ellen"`, `create metadata.name "ellen.b"`,
		`create metadata.name "` + padded("ellen", 253) + `"`, `create metadata.name "` + padded("ellen", 63) + `"`,
		`empty spec.colors {}`, `empty spec.crew []`, `empty spec.engine {}`, `empty spec.flag ""`,
		`fill spec.crew ["ann","koboshi","koboshi-b","koboshi-b-b"]`,
		`highest spec.masts 9`,
		`remove spec`, `remove spec.colors`, `remove spec.crew`, `remove spec.flag`, `remove spec.hull`,
		`shorten spec.colors {}`, `shorten spec.crew []`,
		`zero spec.masts 0`,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const named, second = 4, 2 // odd names, and fields that get two values
	steps := made[0].Scenario.Steps
	if len(steps) != 1+controls+2*(len(want)-named)+second || steps[0].Name != "create" || len(made[0].Controls) != controls {
		t.Fatalf("there are %d steps", len(steps))
	}
	next := 1 + controls
	for i, trial := range made[0].Trials {
		for _, want := range []string{trial.Step, trial.Then, trial.Undo} {
			if want != "" && steps[next].Name != want {
				t.Errorf("trial %d: step %s, want %s", i, steps[next].Name, want)
			}
			if want != "" {
				next++
			}
		}
		if (trial.Verb == "add") != (trial.Then != "") {
			t.Errorf("%s %s has the second step %q", trial.Verb, trial.Field, trial.Then)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "changes of fields are left out, because the API server would refuse") {
		t.Errorf("the notes are %q", notes)
	}
	again, _, _ := boatTrials(t, `{"masts":2,"flag":"red","hull":"oak","crew":["ann"],"colors":{"deck":"white"}}`)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("the trials differ from run to run:\n%s", diff)
	}
}

func TestAListThatTheSampleLacksGetsSeveralItemsAsItsSecondValueIfItMayHaveThem(t *testing.T) {
	t.Parallel()
	for crew, want := range map[string]string{
		"{type: array, items: {type: string}}":              `{"spec":{"crew":["koboshi-b","koboshi-b-b","koboshi-b-b-b"]}}`,
		"{type: array, items: {type: string}, maxItems: 2}": `{"spec":{"crew":["koboshi-b"]}}`,
	} {
		_, made, _ := trialsOf(t, strings.Replace(boat, "{type: array, items: {type: string}}", crew, 1), `{"masts":2}`)
		trials := made[0].Trials
		at := slices.IndexFunc(trials, func(one Trial) bool { return one.Field == "spec.crew" && one.Verb == "add" })
		if at < 0 || trials[at].Then == "" {
			t.Fatalf("%s: the trials are %+v", crew, trials)
		}
		if got := string(made[0].step(trials[at].Then).Patch.Merge); got != want {
			t.Errorf("%s: the second value is %s, want %s", crew, got, want)
		}
	}
}

func trialSteps(trials []Trial) (names []string) {
	for _, one := range trials {
		for _, name := range []string{one.Step, one.Then, one.Undo} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func TestTrialsAreDividedAndContinued(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2,"flag":"red","crew":["ann"],"colors":{"deck":"white"}}`)
	all := made[0]
	rest := all.From(2)
	if len(rest.Trials) != len(all.Trials)-2 || len(rest.Scenario.Steps) != len(all.Scenario.Steps)-len(trialSteps(all.Trials[:2])) || rest.Scenario.Steps[0].Name != "create" || rest.Scenario.Steps[1+controls].Name != all.Trials[2].Step {
		t.Errorf("what is left has the steps %v", rest.Scenario.Steps)
	}
	if all.From(len(all.Trials)) != nil {
		t.Error("there is something left after the last trial")
	}
	only := all.Only(3)
	if err := only.Validate(); err != nil {
		t.Error(err)
	}
	if len(only.Steps) != 1+len(trialSteps(all.Trials[3:4])) || only.Steps[len(only.Steps)-1].SameAs != CreateStep || only.Steps[1].Name != all.Trials[3].Step || !strings.HasPrefix(only.Name, "ellen-input-") {
		t.Errorf("the scenario %s with one trial has %d steps", only.Name, len(only.Steps))
	}
}

func TestTrialsOfTheOperatorsAreAcceptedByTheirSchemas(t *testing.T) {
	t.Parallel()
	for operator, least := range map[string]int{"storagebucket": 60, "markdownview": 60} {
		made, _, err := GenerateTrials(readSamples(t, operator), operatorCRDs(t, operator), GenerateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, some := range made {
			n += len(some.Trials)
			if len(some.Trials) > mostTogether {
				t.Errorf("%s has %d trials", some.Scenario.Name, len(some.Trials))
			}
			if err := some.Scenario.Validate(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("%s: %d trials in %d scenarios", operator, n, len(made))
		if n < least {
			t.Errorf("%s has only %d trials", operator, n)
		}
	}
}

const union = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Buoy, plural: buoys}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            oneOf: [{required: [anchor]}, {required: [chain]}]
            properties:
              anchor: {type: object, properties: {weight: {type: integer}}}
              chain: {type: object, required: [links], properties: {links: {type: integer}}}
              bell:
                type: object
                properties:
                  enabled: {type: boolean}
                  tone: {type: string}
                  echo:
                    type: object
                    properties:
                      enabled: {type: boolean}
                      delay: {type: integer}
`

// buoyTrials returns the trials of one buoy.
func buoyTrials(t *testing.T) []*Trials {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(union), 0o600); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Buoy", "metadata": map[string]any{"name": "north", "namespace": "default"},
		"spec": map[string]any{"anchor": map[string]any{"weight": int64(2)}, "bell": map[string]any{"tone": "deep", "echo": map[string]any{"delay": int64(1)}}},
	}
	made, _, err := GenerateTrials([]Sample{{File: "buoy.yaml", Objects: []unstructured.Unstructured{{Object: object}}}}, readCRDs(t, file), GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// cargo is a boat whose sample has nothing to do with its deep parts.
var cargo = strings.Replace(boat, "              flag: {type: string}\n", `              flag: {type: string}
              hold:
                type: object
                properties:
                  source:
                    type: object
                    properties:
                      crane:
                        type: object
                        properties:
                          enabled: {type: boolean}
                          reach: {type: integer}
                          winch: {type: object, properties: {enabled: {type: boolean}}}
`, 1)

func TestSwitchesBelowWhatTheSampleLacksAreTurnedOnEarly(t *testing.T) {
	t.Parallel()
	_, made, _ := trialsOf(t, cargo, `{"masts":2}`)
	var first []string // the trials of the first scenario
	patches := map[string]string{}
	for _, trial := range made[0].Trials {
		first = append(first, trial.Verb+" "+trial.Field)
		patches[trial.Field] = string(made[0].step(trial.Step).Patch.Merge)
	}
	late := slices.Index(first, "empty spec.hold.source")
	for field, want := range map[string]string{
		"spec.hold.source.crane.enabled":       `{"spec":{"hold":{"source":{"crane":{"enabled":true}}}}}`,
		"spec.hold.source.crane.winch.enabled": `{"spec":{"hold":{"source":{"crane":{"winch":{"enabled":true}}}}}}`,
	} {
		if at := slices.Index(first, "add "+field); at < 0 || at > late || patches[field] != want {
			t.Errorf("%s is number %d of %q, with the patch %s", field, at, first, patches[field])
		}
	}
	if slices.Contains(first, "add spec.hold.source.crane.reach") {
		t.Error("a field that is no switch was tried, although the sample lacks three levels above it")
	}
}

func TestANullThatTheServerDropsDoesNotKeepASampleFromBeingChanged(t *testing.T) {
	t.Parallel()
	all, _, notes := boatTrials(t, `{"masts":2,"engine":null,"colors":null}`)
	if !slices.Contains(all, `add spec.engine.horses 1`) || !slices.Contains(all, `change spec.masts 3`) {
		t.Errorf("the trials are %q, and the notes %q", all, notes)
	}
}

func TestADeletedTrialDeletesTheObjectUnchangedAndThenChanged(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2,"flag":"red"}`)
	at := func(some *Trials) (steps []string) {
		i := slices.IndexFunc(some.Trials, func(one Trial) bool { return one.Verb == "remove" && one.Field == "spec.flag" || one.Creates() })
		deleted := some.Deleted(i, 3*time.Second)
		for _, step := range deleted.Scenario.Steps {
			name := step.Name
			if step.Delete != nil {
				name += fmt.Sprintf(" %t %s", step.Delete.Keep, time.Duration(step.Quiet))
			}
			steps = append(steps, name)
		}
		return steps
	}
	names := slices.IndexFunc(made, func(some *Trials) bool { return some.Trials[0].Creates() })
	for what, c := range map[string]struct{ got, want []string }{
		"a field": {at(made[0]), []string{"create", "delete false 0s", "create-again", "remove-flag", "delete-changed true 3s"}},
		"a name":  {at(made[names]), []string{"create", "delete true 0s", "name-1", "undo-name-1 true 3s"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("the steps for %s, -want +got:\n%s", what, diff)
		}
	}
}

func TestAUnionIsSwitchedToItsOtherMember(t *testing.T) {
	t.Parallel()
	for _, some := range buoyTrials(t) {
		for _, trial := range some.Trials {
			if trial.Verb == "switch" && trial.Field == "spec" && strings.Contains(string(trial.Value), `"chain":{"links":1}`) && !strings.Contains(string(trial.Value), "anchor") {
				return
			}
		}
	}
	t.Error("no trial replaces the anchor by a chain")
}

func TestFieldsBehindASwitchAreTriedAgainWithTheSwitchOn(t *testing.T) {
	t.Parallel()
	on := map[string]string{} // the created objects of the repetitions, by field
	for _, some := range buoyTrials(t) {
		for _, trial := range some.Trials {
			if some.Again {
				on[trial.Field] += string(mustJSON(some.Scenario.Steps[0].Apply[0].Object["spec"]))
			}
		}
	}
	for field, want := range map[string]string{
		"spec.bell.tone":       `"enabled":true,"tone":"deep"`,
		"spec.bell.echo.delay": `"echo":{"delay":1,"enabled":true},"enabled":true`,
	} {
		if !strings.Contains(on[field], want) {
			t.Errorf("%s is tried again with %s, want %s", field, on[field], want)
		}
	}
}

func TestTheKnownChangeOfAProofBeginsBeforeTheFirstOneEnds(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2,"flag":"red","crew":["ann"],"colors":{"deck":"white"}}`)
	all := made[0]
	find := func(verb, field string) int {
		i := slices.IndexFunc(all.Trials, func(one Trial) bool { return one.Verb == verb && one.Field == field })
		if i < 0 {
			t.Fatalf("there is no trial %s %s", verb, field)
		}
		return i
	}
	first, known := find("add", "spec.rig"), find("change", "spec.masts")
	proof := all.Proof(first, known)
	if err := proof.Scenario.Validate(); err != nil {
		t.Error(err)
	}
	var names []string
	for _, step := range proof.Scenario.Steps[1+controls:] {
		names = append(names, step.Name)
	}
	a, b := all.Trials[first], all.Trials[known]
	if want := []string{a.Step, a.Then, b.Step, a.Undo, b.Undo}; !slices.Equal(names, want) {
		t.Errorf("the steps are %q, want %q", names, want)
	}
	if all.Proof(find("change", "spec.colors.deck"), find("add-to", "spec.colors")) != nil {
		t.Error("a field proves something about a field in it")
	}
}

func TestAJointProofChangesItsFieldsInOneStepAndBackInOne(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2,"flag":"red","crew":["ann"],"colors":{"deck":"white"}}`)
	all := made[0]
	find := func(verb, field string) int {
		return slices.IndexFunc(all.Trials, func(one Trial) bool { return one.Verb == verb && one.Field == field })
	}
	rig, flag, known := find("add", "spec.rig"), find("remove", "spec.flag"), find("change", "spec.masts")
	proof := all.JointProof([]int{rig, flag}, known)
	if err := proof.Scenario.Validate(); err != nil {
		t.Error(err)
	}
	last := all.Trials[known]
	var names []string
	for _, step := range proof.Scenario.Steps[1+controls:] {
		names = append(names, step.Name)
	}
	if want := []string{"joint", "then-joint", last.Step, "undo-joint", last.Undo}; !slices.Equal(names, want) {
		t.Fatalf("the steps are %q, want %q", names, want)
	}
	change := string(proof.Scenario.Steps[1+controls].Patch.Merge)
	if !strings.Contains(change, `"rig":`) || !strings.Contains(change, `"flag":null`) {
		t.Errorf("the joint step is %s", change)
	}
	if len(proof.Trials) != 3 || !proof.Trials[1].Has("joint") || !proof.Trials[1].Has("undo-joint") || proof.Trials[2].Step != last.Step {
		t.Errorf("the trials are %+v", proof.Trials)
	}
	if all.JointProof([]int{rig, find("change", "spec.colors.deck"), find("add-to", "spec.colors")}, known) != nil {
		t.Error("a field is changed together with a field in it")
	}
}

func TestFieldsNearTheTopAreTriedFirstAndPartsOfPodsLast(t *testing.T) {
	t.Parallel()
	at := func(verb string, rank int, path ...any) move { return move{verb: verb, path: path, rank: rank} }
	want := []move{
		{verb: "change", path: []any{"spec", "redis", "exporter", "enabled"}, values: []any{true}, rank: rankPresent},
		at("add", rankAbsent+2, "spec", "paused"),
		at("remove", rankPresent, "spec", "size"),
		at("empty", rankPresent+2, "spec", "size"),
		at("change", rankSevers, "spec", "url"),
		{verb: "empty", path: []any{"spec", "redis"}, values: []any{map[string]any{}}, rank: rankPresent + 2},
		{verb: "empty", path: []any{"spec"}, values: []any{map[string]any{}}, rank: rankPresent + 2}, // not before other fields, although it is the top
		at("add", rankAbsent+3, "spec", "redis", "annotations"),
		at("add", rankAbsent+4, "spec", "nodes", 0, "labels"), // a number is not a level
		at("change", rankPresent, "spec", "redis", "image"),
		at("change", rankPresent, "spec", "tolerations", 0, "key"),
		at("add", rankAbsent+4, "spec", "affinity", "nodeAffinity", "weight"),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, func(a, b move) int { return a.thoroughRank() - b.thoroughRank() })
	for i := range want {
		if got[i].String() != want[i].String() && got[i].thoroughRank() != want[i].thoroughRank() {
			t.Errorf("number %d is %s, want %s", i+1, got[i], want[i])
		}
	}
}

func TestUnusualNamesAreTriedEarly(t *testing.T) {
	t.Parallel()
	fields := make([]string, 0, 2*mostTogether)
	for i := range cap(fields) {
		fields = append(fields, fmt.Sprintf("f%d: {type: string}", i))
	}
	_, made, _ := trialsOf(t, strings.Replace(boat, "masts: {type: integer, minimum: 0, maximum: 9}", "masts: {type: integer}\n              "+strings.Join(fields, "\n              "), 1), `{"masts":2}`)
	if len(made) < 4 || !made[1].Trials[0].Creates() || made[0].Trials[0].Creates() {
		t.Errorf("of %d scenarios, the second one has no names", len(made))
	}
}

func TestATwinIsChangedTwiceBeforeAndOnceWhileTheObjectIsChanged(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2,"flag":"red"}`)
	trials := made[0]
	at := func(field, verb string) int {
		return slices.IndexFunc(trials.Trials, func(one Trial) bool { return one.Field == field && one.Verb == verb })
	}
	masts, flag := at("spec.masts", "change"), at("spec.flag", "change")
	beside := trials.Beside(flag, masts, time.Minute)
	if err := beside.Scenario.Validate(); err != nil {
		t.Fatal(err)
	}
	change, effect := trials.Trials[flag], trials.Trials[masts]
	var names []string
	for _, step := range beside.Scenario.Steps {
		names = append(names, step.Name)
		if step.Patch == nil {
			continue
		}
		want := "ellen-b"
		if step.Name == change.Step || step.Name == change.Undo {
			want = "ellen"
		}
		if step.Patch.Name != want {
			t.Errorf("step %s patches %s, want %s", step.Name, step.Patch.Name, want)
		}
	}
	want := []string{CreateStep, "create-beside", "beside-1", "undo-beside-1", "beside-2", "undo-beside-2", change.Step, "beside-3", change.Undo, "undo-beside-3"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the steps, -want +got:\n%s", diff)
	}
	if beside.Object.Name != "ellen-b" || len(beside.Trials) != 3 || time.Duration(beside.step("beside-3").Quiet) != time.Minute || string(beside.step("beside-1").Patch.Merge) != string(trials.step(effect.Step).Patch.Merge) {
		t.Errorf("the trials are %+v", beside)
	}
	if trials.step(effect.Step).Patch.Name != "ellen" || trials.Object.Name != "ellen" {
		t.Error("the trials themselves have changed")
	}
	names1 := made[1]
	if !names1.Trials[0].Creates() || names1.Beside(0, 0, time.Minute) != nil {
		t.Error("another name has something beside it")
	}
}

func TestAPatientTrialWaitsAfterItsLastValueOnly(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2}`)
	for i, one := range made[0].Trials {
		patient, last := made[0].Patiently(i, time.Minute), one.Step
		if one.Then != "" {
			last = one.Then
		}
		for _, step := range patient.Scenario.Steps {
			if (time.Duration(step.Quiet) == time.Minute) != (step.Name == last) {
				t.Errorf("%s of %s: step %s waits %s", one.Verb, one.Field, step.Name, time.Duration(step.Quiet))
			}
		}
		if made[0].step(one.Step).Quiet != 0 {
			t.Fatal("the trials themselves have changed")
		}
	}
}
