// Package anchor finds the line in a project that a finding is about, so that a code review can show
// the finding there:
//
//	Function   the line of a panic, in a function of the project
//	Manifest   an object, or one of its fields, in a sample or a scenario
//	Field      the field of a type in Go
//	Marker     the RBAC marker for a permission
//
// Each of them returns no line rather than a doubtful one. All names in a finding come from the
// controller or from the cluster; the package only compares them with the files of the project.
package anchor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Line is a line of a file. The zero Line means that no line was found.
type Line struct {
	// File is the path of the file, below the folder of the project.
	File string
	// Number counts from 1.
	Number int
}

// These constants limit the files that are read.
const (
	mostFiles = 5000
	mostBytes = 1 << 20
)

// Project is a folder with a Go module. Files are read when they are needed.
type Project struct {
	root   string
	files  []string             // Go files, or nil before the folder has been searched
	parsed map[string]*ast.File // nil for a file that cannot be parsed
	set    *token.FileSet
}

// Open returns the project in a folder.
func Open(root string) *Project {
	return &Project{root: root, parsed: map[string]*ast.File{}, set: token.NewFileSet()}
}

// goFiles returns the project's Go files, without tests, generated files and libraries.
func (p *Project) goFiles() []string {
	if p.files != nil {
		return p.files
	}
	p.files = []string{}
	// A folder that cannot be read has no lines to show.
	_ = filepath.WalkDir(p.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != p.root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"vendor", "testdata", "node_modules"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated") {
			p.files = append(p.files, path)
		}
		if len(p.files) == mostFiles {
			return fs.SkipAll
		}
		return nil
	})
	return p.files
}

// syntax returns the syntax of a Go file, or nil.
func (p *Project) syntax(path string) *ast.File {
	file, known := p.parsed[path]
	if !known {
		if data := read(path); data != nil {
			file, _ = parser.ParseFile(p.set, path, data, parser.SkipObjectResolution)
		}
		p.parsed[path] = file
	}
	return file
}

// read returns a file, or nil if it cannot be read or is too large to be written by hand.
func read(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostBytes {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// line returns the line of a position.
func (p *Project) line(pos token.Pos) Line {
	at := p.set.PositionFor(pos, false)
	return Line{at.Filename, at.Line}
}

// single returns the only line of a list, or the zero Line.
func single(lines []Line) Line {
	if len(lines) != 1 {
		return Line{}
	}
	return lines[0]
}
