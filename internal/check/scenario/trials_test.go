package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(boat), 0o600); err != nil {
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
		`add-to spec.colors {"deck":"white","koboshi":"koboshi"}`,
		`append spec.crew ["ann","ann-b"]`,
		`change spec.colors.deck "white-b"`, `change spec.flag "red-b"`, `change spec.masts 3`,
		`empty spec.colors {}`, `empty spec.crew []`, `empty spec.engine {}`, `empty spec.flag ""`,
		`highest spec.masts 9`,
		`remove spec`, `remove spec.colors`, `remove spec.crew`, `remove spec.flag`, `remove spec.hull`,
		`shorten spec.colors {}`, `shorten spec.crew []`,
		`zero spec.masts 0`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	steps := made[0].Scenario.Steps
	if len(steps) != 1+controls+2*len(want) || steps[0].Name != "create" || len(made[0].Controls) != controls {
		t.Fatalf("there are %d steps", len(steps))
	}
	for i, trial := range made[0].Trials {
		if steps[1+controls+2*i].Name != trial.Step || steps[2+controls+2*i].Name != trial.Undo {
			t.Errorf("trial %d is made by %s and %s", i, steps[1+2*i].Name, steps[2+2*i].Name)
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

func TestTrialsAreDividedAndContinued(t *testing.T) {
	t.Parallel()
	_, made, _ := boatTrials(t, `{"masts":2,"flag":"red","crew":["ann"],"colors":{"deck":"white"}}`)
	all := made[0]
	rest := all.From(2)
	if len(rest.Trials) != len(all.Trials)-2 || len(rest.Scenario.Steps) != len(all.Scenario.Steps)-4 || rest.Scenario.Steps[0].Name != "create" || rest.Scenario.Steps[1+controls].Name != all.Trials[2].Step {
		t.Errorf("what is left has the steps %v", rest.Scenario.Steps)
	}
	if all.From(len(all.Trials)) != nil {
		t.Error("there is something left after the last trial")
	}
	only := all.Only(3)
	if err := only.Validate(); err != nil {
		t.Error(err)
	}
	if len(only.Steps) != 3 || only.Steps[1].Name != all.Trials[3].Step || !strings.HasPrefix(only.Name, "ellen-input-") {
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
