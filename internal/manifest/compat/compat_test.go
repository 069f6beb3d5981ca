package compat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathOfTheServerIsUnderstood(t *testing.T) {
	for text, want := range map[string]path{
		"spec.crew[0].name": {"spec", "crew", anyItem, "name"},
		"spec.labels[a]":    {"spec", "labels", anyItem},
		"<nil>":             nil,
		"":                  nil,
	} {
		if diff := cmp.Diff(want, parsePath(text)); diff != "" {
			t.Errorf("%q, -want +got:\n%s", text, diff)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("spec.crew[0].name")
	f.Add("[]..[")
	f.Fuzz(func(t *testing.T, text string) {
		if p := parsePath(text); len(p) > 0 && !p.related(p) {
			t.Errorf("%q is not related to itself", p)
		}
	})
}

func TestRemovedCRDIsBreakingWithoutAServer(t *testing.T) {
	in := Input{Old: table[0].input(0).Old}
	report, err := Check(t.Context(), nil, in)
	if err != nil || report.Breaking() != 1 || report.Findings[0].Rule != "crd-removed" {
		t.Errorf("%v, %+v", err, report)
	}
}

func TestSameCRDsNeedNoServer(t *testing.T) {
	in := table[0].input(0)
	in.New = in.Old
	report, err := Check(t.Context(), nil, in)
	if err != nil || len(report.Findings) > 0 || report.CRDs > 0 {
		t.Errorf("%v, %+v", err, report)
	}
}

func TestFieldThatTheOldSchemaDoesNotHaveIsNoDifference(t *testing.T) {
	schema := schemaOf(`{a: {type: string}}`).OpenAPIV3Schema
	was := map[string]any{"spec": map[string]any{"a": "x"}}
	is := map[string]any{"spec": map[string]any{"a": "x", "b": "new"}}
	if all := difference(nil, schema, was, is); len(all) > 0 {
		t.Errorf("%v", all)
	}
	is = map[string]any{"spec": map[string]any{}}
	if all := difference(nil, schema, was, is); len(all) != 1 || all[0].kind != lost || !strings.Contains(all[0].message, "spec.a") {
		t.Errorf("%v", all)
	}
}
