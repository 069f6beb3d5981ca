package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report/anchor"
)

// lineOf returns the line to which a finding is attached, the first of these that is known:
//
//	the function of the project that panicked
//	the RBAC marker or the file of the role, for a finding about a permission
//	the field, or the object that is missing or superfluous, in the scenario's file
//	the field of the type in Go, and then the type of the scenario or of the object
//	the object in the scenario's file, the file itself, the controller's main file
func (r *Report) lineOf(f judge.Finding, project *anchor.Project) anchor.Line {
	scenario := r.scenarioOf(f)
	object, path := f.Place()
	inScenario := func(path string) anchor.Line {
		if object == "" || scenario.File == "" {
			return anchor.Line{}
		}
		return project.Manifest(scenario.File, object, path)
	}
	for _, find := range []func() anchor.Line{
		func() anchor.Line { return project.Function(f.Frame) },
		func() anchor.Line { return r.permissionLine(f, project) },
		func() anchor.Line { return inScenario(path) },
		func() anchor.Line { return project.Field(object, path) },
		func() anchor.Line { return r.kindLine(f, scenario, project) },
		func() anchor.Line { return inScenario("") },
	} {
		if at := find(); at.Number > 0 {
			return at
		}
	}
	for _, file := range []string{scenario.File, r.Sources.Main, f.File} {
		if file != "" {
			return splitLine(file)
		}
	}
	return anchor.Line{}
}

func (r *Report) scenarioOf(f judge.Finding) Scenario {
	if i := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.Name == f.Scenario }); i >= 0 {
		return r.Scenarios[i]
	}
	return Scenario{}
}

// permissionLine returns the line of the marker that a finding about permissions is about, or else
// the file of the role.
func (r *Report) permissionLine(f judge.Finding, project *anchor.Project) anchor.Line {
	if f.Verdict != judge.RBACMissing && f.Verdict != judge.RBACUnused {
		return anchor.Line{}
	}
	for _, p := range slices.Concat(f.Missing, f.Unneeded) {
		if at := project.Marker(p.Verb, p.Group, p.Resource); at.Number > 0 {
			return at
		}
	}
	return splitLine(r.Sources.RBAC)
}

// kindLine returns the line that declares the main kind of the scenario, or the kind of an object
// that differs.
func (r *Report) kindLine(f judge.Finding, scenario Scenario, project *anchor.Project) anchor.Line {
	kinds := []string{scenario.Kind}
	for _, d := range f.Differences {
		kind, _, _ := strings.Cut(d.Object, " ")
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		if file := r.Sources.Kinds[kind]; file != "" {
			return splitLine(file)
		}
	}
	for _, kind := range kinds {
		if at := project.Kind(kind); at.Number > 0 {
			return at
		}
	}
	return anchor.Line{}
}

// splitLine splits a text such as "file.go:12" into a path and a line; the default is line 1.
func splitLine(file string) anchor.Line {
	if file == "" {
		return anchor.Line{}
	}
	if i := strings.LastIndexByte(file, ':'); i > 0 {
		if n, err := strconv.Atoi(file[i+1:]); err == nil && n > 0 {
			return anchor.Line{File: file[:i], Number: n}
		}
	}
	return anchor.Line{File: file, Number: 1}
}
