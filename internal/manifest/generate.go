// Package manifest generates a project's CRDs, RBAC roles, webhook configurations, policies and Go
// code from the markers in its Go files. The generators come from controller-tools and, for
// clients, from k8s.io/code-generator, and write the same files as the original programs, byte for
// byte. They run in this process and share one load of the project's packages, and only files that
// differ are written.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/controller-tools/pkg/schemapatcher"
)

// ToolsVersion is the version of controller-tools whose generators are used.
const ToolsVersion = "v0.23.0"

// Options describe what to generate.
type Options struct {
	// Dir is a folder in the project. If it contains neither PROJECT nor go.mod, the nearest
	// parent folder that does is the project's folder.
	Dir string
	// Args are controller-gen's arguments. If there are any, Dir is not searched for a
	// project, and nothing else is generated.
	Args []string
	// Check means that nothing is written.
	Check bool
	// Lenient means that wrong markers are ignored, as controller-gen ignores them.
	Lenient bool
	// Cache is the folder in which fingerprints are kept. Without it, everything is generated
	// every time.
	Cache string
}

// An Action describes what happens to a generated file.
type Action string

// The actions.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
)

// File is a generated file.
type File struct {
	Path   string `json:"path"` // relative to the project's folder, with slashes
	Action Action `json:"action"`
	// Diff is the difference between the file and what would be written.
	Diff string `json:"diff,omitempty"`
}

// Result is the result of Generate.
type Result struct {
	// Dir is the project's folder.
	Dir string
	// Files lists the generated files in alphabetical order.
	Files []File
	// Problems lists the mistakes in the project. If there are any, nothing is written.
	Problems []Problem
	// Notes lists what the user should know, in whole sentences without a period.
	Notes []string
	// Stdout holds what the generators write to the standard output.
	Stdout []byte
	// Cached means that the fingerprint shows that nothing has changed.
	Cached bool

	// contents holds the content of the files by path. A file that contents lacks is up to date on
	// disk.
	contents map[string][]byte
}

// Changed returns the number of files that were or would be written.
func (r *Result) Changed() (n int) {
	for _, f := range r.Files {
		if f.Action != Unchanged {
			n++
		}
	}
	return n
}

// Content returns what a file in the result contains, or would contain without Options.Check.
func (r *Result) Content(f File) ([]byte, error) {
	if data, ok := r.contents[f.Path]; ok {
		return data, nil
	}
	return os.ReadFile(inDir(r.Dir, filepath.FromSlash(f.Path)))
}

// generation is one call of Generate.
type generation struct {
	options Options
	dir     string // the project's folder
	calls   []Call
	store   *store
	result  *Result
}

// Generate generates the files of a project. A mistake in the project is returned as a problem
// in the result, and not as an error.
func Generate(ctx context.Context, options Options) (*Result, error) {
	g := &generation{options: options, store: newStore(), result: &Result{}}
	if err := g.plan(); err != nil || len(g.result.Problems) > 0 {
		return g.result, err
	}
	cache := g.newCache()
	if files, ok := cache.lookup(); ok {
		g.result.Cached = true
		for _, path := range files {
			g.result.Files = append(g.result.Files, File{Path: g.relative(path), Action: Unchanged})
		}
		return g.result, nil
	}
	loads, err := g.generate(ctx)
	if err != nil || len(g.result.Problems) > 0 {
		return g.result, err
	}
	if err := g.finish(); err != nil {
		return g.result, err
	}
	if !options.Check || g.result.Changed() == 0 {
		cache.save(loads, g.store)
	}
	return g.result, nil
}

// plan finds out what to generate.
func (g *generation) plan() error {
	dir, err := filepath.Abs(g.options.Dir)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if len(g.options.Args) > 0 {
		g.dir, g.result.Dir = dir, dir
		g.calls = []Call{{Args: g.options.Args, Dir: dir}}
		return nil
	}
	if g.dir, err = projectRoot(dir); err != nil {
		return err
	}
	g.result.Dir = g.dir
	calls, notes, err := projectCalls(g.dir)
	g.calls, g.result.Notes = calls, notes
	return g.takeProblem(err)
}

// projectRoot returns the nearest folder, from dir upwards, that contains PROJECT or go.mod.
func projectRoot(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		for _, mark := range []string{"PROJECT", "go.mod"} {
			if info, err := os.Stat(filepath.Join(at, mark)); err == nil && info.Mode().IsRegular() {
				return at, nil
			}
		}
		if at == filepath.Dir(at) {
			return "", &NoProjectError{dir}
		}
	}
}

// NoProjectError means that a folder is not in a project.
type NoProjectError struct{ Dir string }

func (e *NoProjectError) Error() string {
	return fmt.Sprintf("found no PROJECT or go.mod in %s or its parent folders; change to your project's folder, or use --dir", e.Dir)
}

// A callError is a mistake in a call of controller-gen.
type callError struct {
	call Call
	err  error
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// IsCallError reports whether the error is a mistake in the arguments for controller-gen.
func IsCallError(err error) bool {
	var mistake *callError
	return errors.As(err, &mistake)
}

func atCall(call Call, err error) error {
	if err == nil {
		return nil
	}
	return &callError{call, err}
}

// takeProblem turns a mistake in the Makefile into a problem. Other errors are returned.
func (g *generation) takeProblem(err error) error {
	var mistake *callError
	if !errors.As(err, &mistake) || mistake.call.At.File == "" {
		return err
	}
	g.result.Problems = append(g.result.Problems, Problem{Position: mistake.call.At, Message: mistake.Error()})
	return nil
}

// generate runs all generators and checks all markers.
func (g *generation) generate(ctx context.Context) ([]*load, error) {
	options, err := optionRegistry()
	if err != nil {
		return nil, err
	}
	var runs []*run
	var clientRuns []*clientRun
	for _, call := range g.calls {
		if call.Program == "" {
			r, err := parseCall(options, call)
			if err := g.takeProblem(atCall(call, err)); err != nil {
				return nil, err
			}
			runs = append(runs, r)
			continue
		}
		r, err := parseClientCall(call)
		if err := g.takeProblem(r.failed(err)); err != nil {
			return nil, err
		}
		clientRuns = append(clientRuns, r)
	}
	if len(g.result.Problems) > 0 {
		return nil, nil
	}
	loads, of, roots, err := loadPackages(ctx, runs)
	if err != nil {
		return nil, g.takeProblem(err)
	}
	for i, r := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(roots[i]) == 0 {
			g.result.Notes = append(g.result.Notes, fmt.Sprintf("paths=%s contains no Go package (%s)", r.paths[0], r.call.where()))
		}
		g.execute(r, of[i], roots[i])
	}
	if err := g.clients(ctx, clientRuns); err != nil {
		return nil, err
	}
	g.checkMarkers(loads)
	for _, l := range loads {
		g.result.Problems = append(g.result.Problems, slices.DeleteFunc(g.packageErrors(l.roots), g.solves)...)
	}
	if len(g.result.Problems) == 0 { // or else CRDs may be missing
		err = g.policies(loads)
	}
	g.result.Problems = withoutConsequences(sortProblems(g.result.Problems))
	return loads, err
}

// where returns the position of a call for a note.
func (c Call) where() string {
	if c.At.File == "" {
		return "kubebuilder's default"
	}
	return fmt.Sprintf("%s:%d", c.At.File, c.At.Line)
}

// withoutConsequences removes the generators' complaints about lines for which there is a
// better message.
func withoutConsequences(problems []Problem) []Problem {
	explained := map[Position]bool{}
	for _, p := range problems {
		explained[p.Position] = explained[p.Position] || p.Marker != ""
	}
	return slices.DeleteFunc(problems, func(p Problem) bool { return p.Marker == "" && p.Line > 0 && explained[p.Position] })
}

// execute runs the generators of one call, as controller-gen does.
func (g *generation) execute(r *run, l *load, roots []*loader.Package) {
	l.prepareTypes(r)
	var all genall.Generators
	for i := range r.generators {
		all = append(all, &r.generators[i].generator)
	}
	registry := &markers.Registry{}
	if err := all.RegisterMarkers(registry); err != nil {
		g.fail(r, err)
		return
	}
	base := genall.GenerationContext{
		Collector: &markers.Collector{Registry: registry},
		Roots:     roots,
		Checker:   &loader.TypeChecker{NodeFilters: all.CheckFilters()},
		InputRule: inputRule{g.store, r.call.Dir},
	}
	for i, named := range r.generators {
		generation := base
		generation.OutputRule = outputRule{g.store, r.call.Dir, r.rule(named.name)}
		if !named.needsTypes() {
			generation.Checker = nil
		}
		if named.name == "object" && !slices.ContainsFunc(r.generators[i+1:], namedGenerator.needsTypes) {
			generation.Roots = upToLastCopied(base.Collector, roots)
		}
		if err := g.runGenerator(r, named, &generation); err != nil {
			g.fail(r, fmt.Errorf("%s: %w", named.name, err))
		}
	}
}

// fail records an error of a generator that has no position in the code.
func (g *generation) fail(r *run, err error) {
	g.result.Problems = append(g.result.Problems, Problem{Position: r.call.At, Message: oneLine(err.Error())})
}

func (g *generation) runGenerator(r *run, named namedGenerator, generation *genall.GenerationContext) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("controller-tools %s failed at an unexpected type (%v); check that the code compiles", ToolsVersion, reason)
		}
	}()
	before := maps.Clone(g.store.files)
	switch generator := named.generator.(type) {
	case schemapatcher.Generator:
		generator.ManifestsPath = inDir(r.call.Dir, generator.ManifestsPath)
		return generator.Generate(generation)
	case crd.Generator:
		err := generator.Generate(generation)
		if generator.OmitToolVersion == nil || !*generator.OmitToolVersion {
			for path, o := range g.store.files {
				if before[path] != o {
					o.data = setVersion(o.data)
				}
			}
		}
		return err
	}
	if named.name == "applyconfiguration" {
		return g.applyConfigurations(r, named.generator, generation)
	}
	return named.generator.Generate(generation)
}

// finish compares the generated files with those on disk, and writes those that differ.
func (g *generation) finish() error {
	if err := g.store.compare(); err != nil {
		return err
	}
	g.result.Stdout, g.result.contents = g.store.stdout.Bytes(), map[string][]byte{}
	for _, path := range sortedKeys(g.store.files) {
		o := g.store.files[path]
		file := File{Path: g.relative(path), Action: Unchanged}
		switch {
		case o.new:
			file.Action = Created
		case o.changed():
			file.Action = Updated
		}
		if g.options.Check && o.changed() {
			file.Diff = unified(file.Path, o)
		}
		g.result.Files = append(g.result.Files, file)
		g.result.contents[file.Path] = o.data
	}
	if g.options.Check {
		return nil
	}
	return g.store.write()
}
