package anchor

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	// frame matches a function on a stack, such as "main.(*Reconciler).Reconcile (main.go:57)".
	frame = regexp.MustCompile(`^([^.\s]+)\.(\S+) \(([^()\s/]+\.go):(\d+)\)$`)
	// inner matches what Go appends to the name of a function inside a function.
	inner = regexp.MustCompile(`(?:\.func\d+|\.gowrap\d+|\.\d+|\[\.\.\.\]|-range\d+)+$`)
)

// Function returns the line of a frame of a stack, if exactly one function of the project has the
// frame's package, name, file and line.
func (p *Project) Function(text string) Line {
	m := frame.FindStringSubmatch(text)
	if m == nil {
		return Line{}
	}
	pkg, file := m[1], m[3]
	number, err := strconv.Atoi(m[4])
	if err != nil {
		return Line{}
	}
	name := inner.ReplaceAllString(m[2], "")
	name = name[strings.LastIndexByte(name, '.')+1:]
	var found []Line
	for _, path := range p.goFiles() {
		if filepath.Base(path) != file {
			continue
		}
		syntax := p.syntax(path)
		if syntax == nil || syntax.Name.Name != pkg && filepath.Base(filepath.Dir(path)) != pkg {
			continue
		}
		if p.contains(syntax, name, number) {
			found = append(found, Line{path, number})
		}
	}
	return single(found)
}

// contains reports whether a line is in a function of this name.
func (p *Project) contains(file *ast.File, name string, number int) bool {
	for _, decl := range file.Decls {
		f, isFunction := decl.(*ast.FuncDecl)
		if isFunction && f.Name.Name == name && p.line(f.Pos()).Number <= number && number <= p.line(f.End()).Number {
			return true
		}
	}
	return false
}
