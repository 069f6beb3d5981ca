// Package makefile reads Makefiles to find out which commands a target runs. It understands
// the part of make's language that projects with kubebuilder's layout use. It runs no command
// of a Makefile.
package makefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// names lists the files that make looks for, in its order.
var names = []string{"GNUmakefile", "makefile", "Makefile"}

// maxFiles limits the number of included files, because a file may include itself.
const maxFiles = 100

// A Position is a line of a Makefile.
type Position struct {
	Path string // relative to the folder of the main Makefile
	Line int
}

func (p Position) String() string { return fmt.Sprintf("%s:%d", p.Path, p.Line) }

// A Line is a line of a recipe as it was written. A line that ends with a backslash contains
// the following lines.
type Line struct {
	Position

	Text string
}

// A Rule connects targets with a recipe.
type Rule struct {
	Targets       []string
	Prerequisites []string
	Recipe        []Line

	// vars holds the variables that are set only for these targets.
	vars map[string]variable
}

// File is a Makefile with the files that it includes.
type File struct {
	// Dir is the folder in which make runs.
	Dir   string
	Rules []*Rule
	// Missing lists the included files that do not exist or whose names cannot be expanded.
	Missing []Position

	vars      map[string]variable
	env       map[string]string
	functions map[string]function
	paths     []string // of the files that were read, relative to Dir
}

// Read reads the Makefile of a folder. It returns nil if there is none. The environment has
// the format of os.Environ.
func Read(dir string, environment []string) (*File, error) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := newFile(dir, environment)
		return f, f.parse(name, string(data))
	}
	return nil, nil
}

func newFile(dir string, environment []string) *File {
	f := &File{Dir: dir, vars: map[string]variable{}, env: map[string]string{}, functions: allFunctions()}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		f.env[name] = value
	}
	return f
}

// Paths returns the paths of the files that were read, relative to Dir.
func (f *File) Paths() []string { return f.paths }

// Reached returns the rules of the targets and of their prerequisites, in the order in which
// make runs them.
func (f *File) Reached(targets ...string) []*Rule {
	r := reach{file: f, seen: map[string]bool{}}
	for _, target := range targets {
		r.visit(target)
	}
	return r.rules
}

// reach collects rules.
type reach struct {
	file  *File
	seen  map[string]bool
	rules []*Rule
}

func (r *reach) visit(target string) {
	if r.seen[target] {
		return
	}
	r.seen[target] = true
	for _, rule := range r.file.Rules {
		if !slices.Contains(rule.Targets, target) {
			continue
		}
		for _, name := range rule.Prerequisites {
			r.visit(name)
		}
		if !slices.Contains(r.rules, rule) {
			r.rules = append(r.rules, rule)
		}
	}
}

// Has reports whether there is a rule for the target.
func (f *File) Has(target string) bool {
	return slices.ContainsFunc(f.Rules, func(rule *Rule) bool { return slices.Contains(rule.Targets, target) })
}
