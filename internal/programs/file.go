package programs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fields lists the fields of an entry.
var fields = []string{"image", "path", "args", "workingDir", "env", "user"}

// Load reads the programs in the list "run" of a YAML file. Paths in the file are
// relative to its folder. Errors name the line.
func Load(file string) (Set, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the programs: %w; correct the path", err)
	}
	defer func() { _ = f.Close() }()
	var document yaml.Node
	decoder := yaml.NewDecoder(f)
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", file, plain(err))
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file contains more than one YAML document; put all programs into one list", file)
	}
	list, err := runList(&document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var set Set
	for _, entry := range list {
		p, err := program(entry, filepath.Dir(file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if set, err = set.Add(p); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, entry.Line, err)
		}
	}
	return set, nil
}

// runList returns the entries in a file.
func runList(document *yaml.Node) ([]*yaml.Node, error) {
	const form = `write "run:" and a list of entries, each with image and path`
	if len(document.Content) == 0 {
		return nil, errors.New("the file is empty; " + form)
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: this is not a mapping; %s", top.Line, form)
	}
	if err := known(top, []string{"run"}); err != nil {
		return nil, err
	}
	if len(top.Content) == 0 || top.Content[1].Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: there is no list of programs; %s", top.Line, form)
	}
	return top.Content[1].Content, nil
}

// program reads an entry. Errors name the line.
func program(entry *yaml.Node, dir string) (p Program, err error) {
	if entry.Kind == yaml.AliasNode {
		entry = entry.Alias
	}
	if entry.Kind != yaml.MappingNode {
		return p, fmt.Errorf("line %d: this is not a mapping; write image and path", entry.Line)
	}
	if err := known(entry, fields); err != nil {
		return p, err
	}
	if err := entry.Decode(&p); err != nil {
		return p, errors.New(plain(err))
	}
	if p, err = p.resolved(dir); err != nil {
		return p, fmt.Errorf("line %d: %w", entry.Line, err)
	}
	return p, nil
}

// known checks the keys of a mapping.
func known(mapping *yaml.Node, names []string) error {
	var seen []string
	for i := 0; i < len(mapping.Content); i += 2 {
		switch key := mapping.Content[i]; {
		case !slices.Contains(names, key.Value):
			return fmt.Errorf("line %d: unknown field %q; use one of %s", key.Line, key.Value, strings.Join(names, ", "))
		case slices.Contains(seen, key.Value):
			return fmt.Errorf("line %d: field %q appears twice; remove one", key.Line, key.Value)
		default:
			seen = append(seen, key.Value)
		}
	}
	return nil
}

// goType matches the end of the YAML library's error messages about values.
var goType = regexp.MustCompile(` into (\S+)$`)

// plain returns an error of the YAML library on one line, without the names of the
// library and of Go types.
func plain(err error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "yaml: ") + "; correct the YAML"
	}
	kinds := map[string]string{"string": "a string", "int64": "a number", "[]string": "a list of strings", "map[string]string": "a mapping of strings"}
	var told []string
	for _, e := range wrong.Errors {
		told = append(told, goType.ReplaceAllStringFunc(e, func(s string) string {
			if kind, ok := kinds[strings.TrimPrefix(s, " into ")]; ok {
				return "; it must be " + kind
			}
			return s
		}))
	}
	return strings.Join(told, "; ")
}
