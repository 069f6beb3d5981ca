package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Load reads the scenarios in a file.
func Load(file string) ([]*Scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading scenarios: %w", err)
	}
	return Parse(file, data)
}

// LoadAll reads the scenarios in several files and folders, and inlines the files that they
// name. It also returns the file of each scenario, by name. Names must be unique.
func LoadAll(paths []string) (all []*Scenario, from map[string]string, err error) {
	files, err := filesIn(paths)
	if err != nil {
		return nil, nil, err
	}
	from = map[string]string{}
	for _, file := range files {
		scenarios, err := Load(file)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range scenarios {
			if other, twice := from[s.Name]; twice {
				return nil, nil, fmt.Errorf("%s: %s also has a scenario named %s; rename one of the two", file, other, s.Name)
			}
			inlined, err := s.Inline()
			if err != nil {
				return nil, nil, err
			}
			all, from[s.Name] = append(all, inlined), file
		}
	}
	return all, from, nil
}

// filesIn replaces each folder with the YAML files in it.
func filesIn(paths []string) (files []string, err error) {
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path) // reading the file reports the error
			continue
		}
		before := len(files)
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("reading scenarios: %w", err)
		}
		for _, entry := range entries {
			if ext := filepath.Ext(entry.Name()); !entry.IsDir() && (ext == ".yaml" || ext == ".yml") {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("reading scenarios: the folder %s has no YAML files; name a file or another folder", path)
		}
	}
	return files, nil
}

// Parse reads scenarios from YAML, one per document. The parameter name is the path of the
// file, as it appears in errors; paths in the file are relative to its folder. The error
// joins a *Problem for each mistake. If name is relative to the working directory, so are
// the paths in the returned scenarios.
func Parse(name string, data []byte) ([]*Scenario, error) {
	documents, err := split(name, data)
	if err != nil {
		return nil, err
	}
	var (
		all      []*Scenario
		problems []*Problem
		seen     = map[string]int{}
	)
	for _, n := range documents {
		s, lines, more := parseOne(name, n)
		problems = append(problems, more...)
		if s == nil {
			continue
		}
		if line, twice := seen[s.Name]; twice {
			problems = append(problems, &Problem{File: name, Line: lines["name"], Field: "name",
				Message: fmt.Sprintf("%s is already the name of the scenario in line %d", s.Name, line)})
		}
		seen[s.Name] = lines["name"]
		all = append(all, s)
	}
	if len(problems) > 0 {
		return nil, join(problems[:min(len(problems), mostProblems)])
	}
	return all, nil
}

// mostProblems is the maximum number of mistakes that are reported together.
const mostProblems = 20

// split reads the documents that are not empty.
func split(name string, data []byte) ([]*yaml.Node, error) {
	all, line, err := strictyaml.Documents(data)
	if err != nil {
		return nil, &Problem{File: name, Line: line, Message: err.Error()}
	}
	if len(all) == 0 {
		return nil, &Problem{File: name, Message: fmt.Sprintf("contains no scenario; a scenario begins with apiVersion: %s and kind: %s", APIVersion, Kind)}
	}
	return all, nil
}

// parseOne reads one document. The scenario is nil if there are problems.
func parseOne(file string, n *yaml.Node) (*Scenario, map[string]int, []*Problem) {
	d := strictyaml.New(n, Special)
	if n.Kind != yaml.MappingNode {
		return nil, nil, []*Problem{{File: file, Line: n.Line, Message: "must be a mapping with " + strings.Join(strictyaml.Names(strictyaml.Fields(reflect.TypeFor[Scenario]())), ", ")}}
	}
	if wrong := otherKind(n); wrong != "" {
		return nil, nil, []*Problem{{File: file, Line: n.Line, Message: wrong}}
	}
	value := d.Typed(n, reflect.TypeFor[Scenario](), "", 0)
	steps := stepNames(value)
	if len(d.Complaints) > 0 {
		return nil, nil, place(d.Complaints, file, d.Lines, steps)
	}
	s, err := fromValue(value)
	if err != nil {
		return nil, nil, []*Problem{{File: file, Line: n.Line, Message: err.Error()}}
	}
	s.resolve(filepath.Dir(file))
	if found := s.complaints(); len(found) > 0 {
		return nil, nil, place(found, file, d.Lines, steps)
	}
	return s, d.Lines, nil
}

// otherKind returns an error message if the document is not a scenario at all, because a
// list of unknown fields would not help in that case.
func otherKind(n *yaml.Node) string {
	var version, kind string
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case "apiVersion":
			version = n.Content[i+1].Value
		case "kind":
			kind = n.Content[i+1].Value
		}
	}
	switch {
	case kind != "" && kind != Kind:
		return fmt.Sprintf("this is a %s, not a %s; put objects into given, into a step's apply, or into a file named there", kind, Kind)
	case version != "" && version != APIVersion:
		return fmt.Sprintf("apiVersion is %s, but this program only supports %s", version, APIVersion)
	}
	return ""
}

func fromValue(value any) (*Scenario, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	s := &Scenario{}
	return s, json.Unmarshal(data, s)
}

// stepNames returns the names of the steps by index, with "" for unnamed steps.
func stepNames(value any) []string {
	document, _ := value.(map[string]any)
	steps, _ := document["steps"].([]any)
	all := make([]string, len(steps))
	for i, s := range steps {
		step, _ := s.(map[string]any)
		all[i], _ = step["name"].(string)
	}
	return all
}
