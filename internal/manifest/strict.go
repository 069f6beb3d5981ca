package manifest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/koboshi-dev/koboshi/internal/manifest/policy"
)

// A catalogue holds the markers of all generators.
type catalogue struct {
	registry *markers.Registry
	// kinds lists what each marker can describe.
	kinds map[string][]markers.TargetType
	// definitions holds one definition of each marker.
	definitions map[string]*markers.Definition
}

func newCatalogue() (*catalogue, error) {
	c := &catalogue{registry: &markers.Registry{}, kinds: map[string][]markers.TargetType{}, definitions: map[string]*markers.Definition{}}
	for _, name := range sortedKeys(generators) {
		if err := generators[name].RegisterMarkers(c.registry); err != nil {
			return nil, err
		}
	}
	if err := policy.Register(c.registry); err != nil {
		return nil, err
	}
	for _, definition := range c.registry.AllDefinitions() {
		c.kinds[definition.Name] = append(c.kinds[definition.Name], definition.Target)
		c.definitions[definition.Name] = definition
	}
	return c, nil
}

// checkMarkers reports the wrong markers in all packages of the project that the generators
// have read. Packages of other modules are not checked, because they cannot be edited here.
func (g *generation) checkMarkers(loads []*load) {
	if g.options.Lenient {
		return
	}
	c, err := newCatalogue()
	if err != nil {
		g.result.Problems = append(g.result.Problems, Problem{Message: err.Error()})
		return
	}
	seen := map[string]bool{}
	for _, l := range loads {
		for _, pkg := range everyPackage(l.roots) {
			if pkg.Syntax == nil || !isOwn(pkg.Package) || seen[pkg.ID+l.tags] {
				continue
			}
			seen[pkg.ID+l.tags] = true
			for _, m := range c.wrong(pkg) {
				at := l.fset.Position(m.comment.Slash)
				m.problem.File, m.problem.Line, m.problem.Column = g.relative(at.Filename), at.Line, at.Column
				g.result.Problems = append(g.result.Problems, m.problem)
			}
		}
	}
}

// everyPackage returns the packages and everything that they import.
func everyPackage(roots []*loader.Package) (all []*loader.Package) {
	seen := map[*loader.Package]bool{}
	var visit func(pkg *loader.Package)
	visit = func(pkg *loader.Package) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		all = append(all, pkg)
		for _, imported := range pkg.Imports() {
			visit(imported)
		}
	}
	for _, root := range roots {
		visit(root)
	}
	return all
}

// isOwn reports whether the package can be edited: it belongs to the main module, to a
// workspace, or to a folder that go.mod names in a replace directive.
func isOwn(pkg *packages.Package) bool {
	m := pkg.Module
	return m != nil && (m.Main || m.Replace != nil && m.Replace.Version == "")
}

// A marked is a comment that contains a marker.
type marked struct {
	comment *ast.Comment
	text    string // from the plus sign
	problem Problem
}

// wrong returns the wrong markers of a package.
func (c *catalogue) wrong(pkg *loader.Package) (wrong []marked) {
	all := markersOf(pkg.Syntax)
	at := c.places(pkg, all, c.applicable)
	var misplaced []int
	for i := range all {
		m := &all[i]
		definitionAt, placed := at[i]
		switch {
		case placed:
			m.problem = c.checkArguments(m.text, definitionAt)
		case len(c.applicable(m.text)) == 0:
			m.problem = c.unknown(m.text)
		case !toleratedAnywhere(m.text):
			misplaced = append(misplaced, i)
			continue
		}
		if m.problem.Message != "" {
			wrong = append(wrong, *m)
		}
	}
	if len(misplaced) == 0 {
		return wrong
	}
	everywhere := c.places(pkg, all, func(string) []markers.TargetType { return allTargets })
	for _, i := range misplaced {
		place, somewhere := everywhere[i]
		if all[i].problem = c.misplaced(all[i].text, place, somewhere); all[i].problem.Message != "" {
			wrong = append(wrong, all[i])
		}
	}
	return wrong
}

// markersOf returns the comments that contain markers, as controller-tools defines them, in
// files that were written by hand.
func markersOf(files []*ast.File) (all []marked) {
	for _, file := range files {
		if ast.IsGenerated(file) {
			continue
		}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
				if strings.HasPrefix(comment.Text, "//") && strings.HasPrefix(text, "+") {
					all = append(all, marked{comment: comment, text: text})
				}
			}
		}
	}
	return all
}

var allTargets = []markers.TargetType{markers.DescribesType, markers.DescribesField, markers.DescribesPackage}

// applicable returns what the marker can describe.
func (c *catalogue) applicable(text string) (targets []markers.TargetType) {
	for _, target := range allTargets {
		if c.registry.Lookup(text, target) != nil {
			targets = append(targets, target)
		}
	}
	return targets
}

// places returns, for each marker, whether it describes a package, a type or a field.
func (c *catalogue) places(pkg *loader.Package, all []marked, targets func(text string) []markers.TargetType) map[int]markers.TargetType {
	places := map[int]markers.TargetType{}
	for i, node := range c.nodes(pkg, all, targets) {
		places[i] = targetOf(node)
	}
	return places
}

// nodes returns the node that each marker describes according to controller-tools, if the marker
// can describe the given targets. It uses controller-tools' own collector, which knows neither
// positions nor unknown markers: each marker is temporarily replaced by a marker with a number as
// its name.
func (c *catalogue) nodes(pkg *loader.Package, all []marked, targets func(text string) []markers.TargetType) map[int]ast.Node {
	numbered := &markers.Registry{}
	numbers := map[string]int{}
	for i, m := range all {
		name := fmt.Sprintf("number%d", i)
		numbers[name] = i
		for _, target := range targets(m.text) {
			_ = numbered.Define(name, target, struct{}{}) // cannot fail for an empty struct
		}
		original := m.comment.Text
		m.comment.Text = "//+" + name
		defer func() { m.comment.Text = original }()
	}
	found, err := (&markers.Collector{Registry: numbered}).MarkersInPackage(pkg)
	if err != nil {
		return nil // cannot fail, because no marker has arguments
	}
	nodes := map[int]ast.Node{}
	for node, values := range found {
		for name := range values {
			if i, ok := numbers[name]; ok {
				nodes[i] = node
			}
		}
	}
	return nodes
}

func targetOf(node ast.Node) markers.TargetType {
	switch node.(type) {
	case *ast.File:
		return markers.DescribesPackage
	case *ast.Field:
		return markers.DescribesField
	}
	return markers.DescribesType
}

// checkArguments parses the arguments of a marker.
func (c *catalogue) checkArguments(text string, target markers.TargetType) Problem {
	definition := c.registry.Lookup(text, target)
	_, err := definition.Parse(text)
	if err == nil {
		return Problem{}
	}
	message := plainError(err)
	p := Problem{Marker: "+" + definition.Name, Message: fmt.Sprintf("marker +%s: %s", definition.Name, message)}
	if match := unknownArgument.FindStringSubmatch(message); match != nil {
		p.Message = fmt.Sprintf("marker +%s has no argument %s", definition.Name, match[1])
		p.Suggestion = nearest(match[1], sortedKeys(definition.Fields))
	}
	return p
}

var unknownArgument = regexp.MustCompile(`unknown argument "(\w+)"`)

// nameOf returns the marker without its arguments, and the marker without its last part, which
// may be the name of an argument.
func nameOf(text string) (full, short string) {
	full, _, _ = strings.Cut(strings.TrimPrefix(text, "+"), "=")
	full = strings.TrimSuffix(full, ":")
	short = full
	if i := strings.LastIndexByte(full, ':'); i > 0 {
		short = full[:i]
	}
	return full, short
}

// misplaced returns the problem of a marker that controller-tools ignores because of its place.
func (c *catalogue) misplaced(text string, at markers.TargetType, somewhere bool) Problem {
	full, short := nameOf(text)
	name := full
	if c.kinds[full] == nil {
		name = short
	}
	where := "has no effect here"
	if somewhere {
		where = "has no effect on " + article(at)
	}
	var kinds []string
	for _, target := range c.applicable(text) {
		kinds = append(kinds, article(target))
	}
	message := fmt.Sprintf("marker +%s %s, because it describes %s; %s", name, where, strings.Join(kinds, " or "), placement(c.applicable(text)))
	return Problem{Marker: "+" + name, Message: message}
}

func article(target markers.TargetType) string {
	if target == markers.DescribesPackage {
		return "the package"
	}
	return "a " + target.String()
}

// placement returns advice on where to put a marker.
func placement(targets []markers.TargetType) string {
	var nodes, places []string
	for _, target := range targets {
		if target == markers.DescribesPackage {
			places = append(places, "outside of declarations and their comments, with an empty line after it")
			continue
		}
		nodes = append(nodes, article(target))
	}
	if len(nodes) > 0 {
		places = append([]string{"directly above " + strings.Join(nodes, " or ")}, places...)
	}
	return "put it " + strings.Join(places, ", or ")
}
