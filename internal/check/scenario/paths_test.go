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
	"k8s.io/apimachinery/pkg/runtime"
)

// boatPaths returns the paths of boats, by name.
func boatPaths(t *testing.T, objects ...string) (map[string]*Scenario, []string) {
	t.Helper()
	return pathsOf(t, boat, objects...)
}

// pathsOf returns the paths of the kind that a CRD defines, by name.
func pathsOf(t *testing.T, crd string, objects ...string) (map[string]*Scenario, []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	sample := Sample{File: "boat.yaml"}
	for _, text := range objects {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		sample.Objects = append(sample.Objects, unstructured.Unstructured{Object: object})
	}
	made, notes, err := GeneratePaths([]Sample{sample}, readCRDs(t, file), GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Scenario{}
	for _, s := range made {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		all[s.Name] = s
	}
	return all, notes
}

// stepsOf describes the steps of a scenario, one per line.
func stepsOf(s *Scenario) (lines []string) {
	for _, st := range s.Steps {
		line := st.Name + ":"
		for _, m := range st.Apply {
			line += " apply " + refOf(m.Object).String()
		}
		if st.Patch != nil {
			line += " patch " + st.Patch.String() + " " + string(st.Patch.Merge)
		}
		if st.Delete != nil {
			line += " delete " + st.Delete.String()
		}
		if st.PodHealth != "" {
			line += " Pods " + st.PodHealth
		}
		if len(st.Spares) > 0 {
			line += " spares " + strings.Join(st.Spares, ", ")
		}
		if st.SameAs != "" {
			line += " same as " + st.SameAs
		}
		lines = append(lines, line)
	}
	return lines
}

const (
	small  = `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"dory"},"spec":{"masts":1}}`
	rich   = `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"ellen"},"spec":{"masts":2,"flag":"the flag of ellen","hull":"paint"}}`
	secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"paint"},"stringData":{"color":"red"}}`
)

func TestTwoResourcesExistSideBySide(t *testing.T) {
	t.Parallel()
	all, notes := boatPaths(t, small, secret, rich)
	if len(notes) > 0 {
		t.Errorf("the notes are %q", notes)
	}
	pair := func(a, b string) []string {
		return []string{
			"second-alone: apply Boat.sea.example.com " + b, "second-gone: delete Boat.sea.example.com " + b,
			"first-alone: apply Boat.sea.example.com " + a, "both: apply Boat.sea.example.com " + b + " spares first-alone, second-alone",
			"without-second: delete Boat.sea.example.com " + b + " spares first-alone",
			"both-again: apply Boat.sea.example.com " + b, "without-first: delete Boat.sea.example.com " + a + " spares second-alone",
		}
	}
	names := all["ellen-two-names"]
	if diff := cmp.Diff(pair("ellen", "ellen-b"), stepsOf(names)); diff != "" {
		t.Errorf("two names (-want +got):\n%s", diff)
	}
	second := names.Steps[0].Apply[0].Object["spec"]
	if diff := cmp.Diff(map[string]any{"masts": int64(2), "flag": "the flag of ellen-b", "hull": "paint"}, second); diff != "" {
		t.Errorf("the second boat (-want +got):\n%s", diff)
	}
	spaces := all["ellen-two-namespaces"]
	if diff := cmp.Diff(pair("ellen", "koboshi-other/ellen"), stepsOf(spaces)); diff != "" {
		t.Errorf("two namespaces (-want +got):\n%s", diff)
	}
	var given []string
	for _, m := range spaces.Given {
		given = append(given, refOf(m.Object).String())
	}
	if want := []string{"Secret paint", "Namespace koboshi-other", "Secret koboshi-other/paint"}; !slices.Equal(given, want) {
		t.Errorf("given are %q, want %q", given, want)
	}
}

func TestAChangedResourceIsComparedWithOneThatWasCreatedThatWay(t *testing.T) {
	t.Parallel()
	all, _ := boatPaths(t, rich)
	s := all["ellen-direct"]
	if s == nil {
		t.Fatal("there is no scenario ellen-direct")
	}
	created, _ := s.Steps[0].Apply[0].Object["spec"].(map[string]any)
	if hull, has := created["hull"]; has && hull != "paint" || created["masts"] == int64(2) {
		t.Errorf("the boat is created with %v, but only its hull cannot be changed to another one", created)
	}
	patched := runtime.DeepCopyJSON(s.Steps[2].Apply[0].Object)
	var merge map[string]any
	if err := json.Unmarshal(s.Steps[3].Patch.Merge, &merge); err != nil {
		t.Fatal(err)
	}
	apply(patched, merge)
	want, err := json.Marshal(s.Steps[0].Apply[0].Object)
	got, failed := json.Marshal(patched)
	if err != nil || failed != nil || string(want) != string(got) || s.Steps[3].SameAs != s.Steps[0].Name {
		t.Errorf("the change leads to %s instead of %s", got, want)
	}
}

// apply applies a merge patch.
func apply(object, merge map[string]any) {
	for key, value := range merge {
		inner, isMap := value.(map[string]any)
		old, wasMap := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isMap && wasMap:
			apply(old, inner)
		default:
			object[key] = value
		}
	}
}

func TestPodsAreUnhealthyAndThenCannotStart(t *testing.T) {
	t.Parallel()
	all, _ := boatPaths(t, rich)
	s := all["ellen-pods"]
	create, remove := "apply Boat.sea.example.com ellen", "delete Boat.sea.example.com ellen"
	want := []string{
		"create: " + create, "unready: Pods unready", "crashing: Pods crashing", "ready-again: Pods ready same as create", "delete: " + remove,
		"full: Pods pending", "create-pending: " + create, "started: Pods ready same as create", "delete-again: " + remove + " same as delete",
	}
	if diff := cmp.Diff(want, stepsOf(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if quiet := time.Duration(s.Steps[7].Quiet); quiet <= 2*time.Second {
		t.Errorf("the scheduler may pause for 2 s before it tries a Pod again, but the quiet time is %s", quiet)
	}
}

// lamp is a CRD with optional features: two booleans and an object.
const lamp = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.light.example.com}
spec:
  group: light.example.com
  scope: Namespaced
  names: {kind: Lamp, listKind: LampList, plural: lamps, singular: lamp}
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
            properties:
              lumen: {type: integer, maximum: 900}
              dimmed: {type: boolean}
              blinks: {type: boolean}
%s`

const timer = `              timer:
                type: object
                required: [minutes]
                properties: {minutes: {type: integer, minimum: 5}, enabled: {type: boolean}, zone: {type: string}}
`

func TestFeaturesAreSwitchedOnTogetherAndOffAgain(t *testing.T) {
	t.Parallel()
	all, _ := pathsOf(t, fmt.Sprintf(lamp, timer), `{"apiVersion":"light.example.com/v1","kind":"Lamp","metadata":{"name":"dora"},"spec":{"lumen":800,"blinks":false}}`)
	s := all["dora-features"]
	if s == nil {
		t.Fatal("there is no scenario dora-features")
	}
	object := runtime.DeepCopyJSON(s.Steps[0].Apply[0].Object)
	before := runtime.DeepCopyJSON(object)
	merge := func(step Step) {
		var patch map[string]any
		if err := json.Unmarshal(step.Patch.Merge, &patch); err != nil {
			t.Fatal(err)
		}
		apply(object, patch)
	}
	last := len(s.Steps) - 2
	for _, step := range s.Steps[1:last] {
		merge(step)
		if !s.IsDispensable(step.Name) {
			t.Errorf("without step %s, the others are not tried", step.Name)
		}
	}
	spec, _ := object["spec"].(map[string]any)
	section, _ := spec["timer"].(map[string]any)
	if spec["dimmed"] != true || spec["blinks"] != true || section["enabled"] != true || section["minutes"] == nil || section["zone"] != nil || spec["lumen"] != int64(800) {
		t.Errorf("with all features, the spec is %v", spec)
	}
	merge(s.Steps[last])
	if diff := cmp.Diff(before, object); diff != "" || s.Steps[last].SameAs != CreateStep || s.IsDispensable(CreateStep) || s.IsDispensable("off") {
		t.Errorf("without the features (-want +got):\n%s", diff)
	}
	partly := s.Without(s.Steps[1].Name)
	object = runtime.DeepCopyJSON(before)
	for _, step := range partly.Steps[1 : last-1] {
		merge(step)
	}
	if merge(partly.Steps[last-1]); len(partly.Steps) != len(s.Steps)-1 || !cmp.Equal(before, object) {
		t.Errorf("without the first feature, the object ends as %v", object)
	}
}

func TestAFeatureThatCannotBeSwitchedOffIsNoneOfThoseTriedTogether(t *testing.T) {
	t.Parallel()
	oneWay := strings.Replace(fmt.Sprintf(lamp, timer), "dimmed: {type: boolean}", `dimmed: {type: boolean}
              sealed: {type: boolean, default: false, x-kubernetes-validations: [{rule: "!oldSelf || self"}]}`, 1)
	all, _ := pathsOf(t, oneWay, `{"apiVersion":"light.example.com/v1","kind":"Lamp","metadata":{"name":"dora"},"spec":{"lumen":800}}`)
	s := all["dora-features"]
	if s == nil {
		t.Fatal("because of one such feature, the others are not tried")
	}
	if strings.Contains(s.Description, "sealed") || !strings.Contains(s.Description, "timer") {
		t.Errorf("%s", s.Description)
	}
}

func TestASingleFeatureIsLeftToTheInputs(t *testing.T) {
	t.Parallel()
	all, _ := pathsOf(t, fmt.Sprintf(lamp, ""), `{"apiVersion":"light.example.com/v1","kind":"Lamp","metadata":{"name":"dora"},"spec":{"dimmed":true}}`)
	if s := all["dora-features"]; s != nil {
		t.Errorf("only one feature can be switched on, but there is the path %q", stepsOf(s))
	}
}

func TestANamespaceIsDeletedWithTheResourceInIt(t *testing.T) {
	t.Parallel()
	all, _ := boatPaths(t, rich)
	want := []string{
		"create: apply Boat.sea.example.com koboshi-other/ellen", "delete: delete Boat.sea.example.com koboshi-other/ellen",
		"create-again: apply Boat.sea.example.com koboshi-other/ellen", "delete-namespace: delete Namespace koboshi-other",
	}
	if diff := cmp.Diff(want, stepsOf(all["ellen-namespace"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPathsOfOurOperatorsAreValid(t *testing.T) {
	t.Parallel()
	for _, operator := range []string{"markdownview", "storagebucket"} {
		all, _, err := GeneratePaths(readSamples(t, operator), operatorCRDs(t, operator), GenerateOptions{})
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d paths, %v", operator, len(all), err)
		}
		for _, s := range all {
			if err := s.Validate(); err != nil {
				t.Errorf("%s: %v", operator, err)
			}
		}
	}
}
