package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// reader reads the files of a suite.
type reader struct{ fsys fs.FS }

// document is a mapping in a file.
type document struct {
	file  string
	value map[string]any
	lines map[string]int
	path  string // the path of the mapping in the document of the file
}

// line returns the line of a path in the document.
func (d document) line(at string) int {
	if d.path != "" {
		at = strings.TrimSuffix(d.path+"."+at, ".")
	}
	return strictyaml.LineOf(d.lines, at)
}

func (d document) text(key string) string { return text(d.value, key) }

// left returns a part of the document that is left out.
func (d document) left(at, what, format string, args ...any) LeftOut {
	return LeftOut{File: d.file, Line: d.line(at), What: what, Why: fmt.Sprintf(format, args...)}
}

// child returns the mapping at a key, or an empty one.
func (d document) child(key string) document {
	below := document{file: d.file, lines: d.lines, path: strings.TrimPrefix(d.path+"."+key, ".")}
	below.value, _ = d.value[key].(map[string]any)
	return below
}

// children returns the mappings in the list at a key.
func (d document) children(key string) (all []document) {
	list, _ := d.value[key].([]any)
	for i, item := range list {
		below := document{file: d.file, lines: d.lines, path: strings.TrimPrefix(fmt.Sprintf("%s.%s[%d]", d.path, key, i), ".")}
		below.value, _ = item.(map[string]any)
		all = append(all, below)
	}
	return all
}

// keys returns the keys of the document in a stable order.
func (d document) keys() []string { return sortedKeys(d.value) }

// has reports whether the document has a value at the key.
func (d document) has(key string) bool { return d.value[key] != nil }

// texts returns the texts in the list at a key.
func (d document) texts(key string) (all []string) {
	list, _ := d.value[key].([]any)
	for _, item := range list {
		if t, isText := item.(string); isText {
			all = append(all, t)
		}
	}
	return all
}

// mostFile is the maximum size of a file, in bytes.
const mostFile = 4 << 20

// documents reads the documents of a file. It replaces each List with its items.
func (r *reader) documents(file string) ([]document, error) {
	info, err := fs.Stat(r.fsys, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem{why: "the file does not exist"}
	case err != nil:
		return nil, problem{why: err.Error()}
	case info.IsDir():
		return nil, problem{why: "is a folder"}
	case info.Size() > mostFile:
		return nil, problem{why: "the file is too large"}
	}
	data, err := fs.ReadFile(r.fsys, file)
	if err != nil {
		return nil, problem{why: err.Error()}
	}
	nodes, line, err := strictyaml.Documents(data)
	if err != nil {
		return nil, problem{line, "is not YAML: " + err.Error()}
	}
	var all []document
	for _, n := range nodes {
		decoder := strictyaml.New(n, nil)
		value := decoder.Free(n, "", 0)
		for _, c := range decoder.Complaints {
			if c.Line == 0 {
				c.Line = strictyaml.LineOf(decoder.Lines, c.Path)
			}
			return nil, problem{c.Line, strings.TrimSpace(c.Path + " " + c.Message)}
		}
		object, isObject := value.(map[string]any)
		if !isObject {
			return nil, problem{n.Line, "the document is not a mapping"}
		}
		whole := document{file: file, value: object, lines: decoder.Lines}
		if kind := whole.text("kind"); strings.HasSuffix(kind, "List") && object["items"] != nil {
			all = append(all, whole.children("items")...)
			continue
		}
		all = append(all, whole)
	}
	return all, nil
}

// problem is the reason why a file cannot be read.
type problem struct {
	line int
	why  string
}

func (p problem) Error() string { return p.why }

// named returns the files that a path in a suite names: a file, a pattern or a folder with YAML
// files. The path is relative to dir.
func (r *reader) named(dir, name string) ([]string, error) {
	switch {
	case name == "":
		return nil, problem{why: "no file is named"}
	case strings.Contains(name, "://"):
		return nil, problem{why: "nothing is downloaded; save the file next to the case"}
	case strings.ContainsAny(name, "$()"):
		return nil, problem{why: "the path contains a variable"}
	case path.IsAbs(name):
		return nil, problem{why: "the path is absolute"}
	}
	full := path.Join(dir, name)
	if !fs.ValidPath(full) {
		return nil, problem{why: "the file is outside of the repository"}
	}
	if strings.ContainsAny(full, "*?[") {
		files, err := fs.Glob(r.fsys, full)
		if err != nil || len(files) == 0 {
			return nil, problem{why: "no file matches"}
		}
		return files, nil
	}
	info, err := fs.Stat(r.fsys, full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem{why: "the file does not exist"}
	case err != nil:
		return nil, problem{why: err.Error()}
	case !info.IsDir():
		return []string{full}, nil
	}
	var files []string
	entries, err := fs.ReadDir(r.fsys, full)
	if err != nil {
		return nil, problem{why: err.Error()}
	}
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml"}, path.Ext(entry.Name())) {
			files = append(files, path.Join(full, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, problem{why: "the folder contains no YAML file"}
	}
	return files, nil
}
