package report

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// fieldsOf returns the names in JSON of the fields of a struct, and of those that are always written.
func fieldsOf(of reflect.Type) (all, always []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			inner, required := fieldsOf(f.Type)
			all, always = append(all, inner...), append(always, required...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, name)
		if !strings.Contains(options, "omit") {
			always = append(always, name)
		}
	}
	slices.Sort(all)
	slices.Sort(always)
	return all, always
}

// described is the part of a schema that the test checks.
type described struct {
	Description string               `json:"description"`
	Required    []string             `json:"required"`
	Properties  map[string]described `json:"properties"`
	Definitions map[string]described `json:"definitions"`
	Const       any                  `json:"const"`
}

func TestTheSchemaDescribesEveryFieldOfTheReport(t *testing.T) {
	var root described
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	types := map[string]reflect.Type{
		"": reflect.TypeFor[Report](), "finding": reflect.TypeFor[judge.Finding](), "difference": reflect.TypeFor[state.Difference](),
		"permission": reflect.TypeFor[judge.Permission](), "silence": reflect.TypeFor[judge.Silence](), "fault": reflect.TypeFor[fault.Fault](),
		"point": reflect.TypeFor[fault.Point](), "scenario": reflect.TypeFor[Scenario](), "tried": reflect.TypeFor[Tried](),
		"notRun": reflect.TypeFor[NotRun](), "notLearnt": reflect.TypeFor[NotLearnt](), "fixed": reflect.TypeFor[Fixed](), "input": reflect.TypeFor[Input](),
		"unused": reflect.TypeFor[judge.Unused](), "sources": reflect.TypeFor[Sources](),
	}
	for name, of := range types {
		s := root
		if name != "" {
			s = root.Definitions[name]
		}
		all, always := fieldsOf(of)
		if diff := cmp.Diff(all, slices.Sorted(maps.Keys(s.Properties))); diff != "" {
			t.Errorf("%s: fields of the type, and of the schema:\n%s", of.Name(), diff)
		}
		required := slices.Sorted(slices.Values(s.Required))
		if diff := cmp.Diff(append([]string{}, always...), append([]string{}, required...)); diff != "" {
			t.Errorf("%s: always written, and required by the schema:\n%s", of.Name(), diff)
		}
		for field, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s is not described", of.Name(), field)
			}
		}
	}
	if len(root.Definitions) != len(types)-1 {
		t.Errorf("the schema has %d definitions for %d types", len(root.Definitions), len(types)-1)
	}
	if root.Properties["version"].Const != float64(Version) {
		t.Errorf("the schema is for version %v, but reports have version %d", root.Properties["version"].Const, Version)
	}
}
