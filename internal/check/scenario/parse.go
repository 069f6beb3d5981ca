package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads the scenarios in a file.
func Load(file string) ([]*Scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading scenarios: %w", err)
	}
	return Parse(file, data)
}

// LoadAll reads the scenarios in several files and inlines the files that they name. It
// also returns the file of each scenario, by name. Names must be unique.
func LoadAll(files []string) (all []*Scenario, from map[string]string, err error) {
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

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// split reads the documents that are not empty.
func split(name string, data []byte) ([]*yaml.Node, error) {
	var all []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p := &Problem{File: name, Message: yamlLine.ReplaceAllString(err.Error(), "")}
			if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
				p.Line, _ = strconv.Atoi(found[1])
			}
			return nil, p
		}
		if n.Kind == yaml.DocumentNode && len(n.Content) == 1 && !isNull(n.Content[0]) {
			all = append(all, n.Content[0])
		}
	}
	if len(all) == 0 {
		return nil, &Problem{File: name, Message: fmt.Sprintf("contains no scenario; a scenario begins with apiVersion: %s and kind: %s", APIVersion, Kind)}
	}
	return all, nil
}

// parseOne reads one document. The scenario is nil if there are problems.
func parseOne(file string, n *yaml.Node) (*Scenario, map[string]int, []*Problem) {
	d := &decoder{lines: map[string]int{"": n.Line}}
	if n.Kind != yaml.MappingNode {
		return nil, nil, []*Problem{{File: file, Line: n.Line, Message: "must be a mapping with " + strings.Join(names(fields(reflect.TypeFor[Scenario]())), ", ")}}
	}
	if wrong := d.otherKind(n); wrong != "" {
		return nil, nil, []*Problem{{File: file, Line: n.Line, Message: wrong}}
	}
	value := d.typed(n, reflect.TypeFor[Scenario](), "", 0)
	steps := stepNames(value)
	if len(d.complaints) > 0 {
		return nil, nil, place(d.complaints, file, d.lines, steps)
	}
	s, err := fromValue(value)
	if err != nil {
		return nil, nil, []*Problem{{File: file, Line: n.Line, Message: err.Error()}}
	}
	s.resolve(filepath.Dir(file))
	if found := s.complaints(); len(found) > 0 {
		return nil, nil, place(found, file, d.lines, steps)
	}
	return s, d.lines, nil
}

// otherKind returns an error message if the document is not a scenario at all, because a
// list of unknown fields would not help in that case.
func (d *decoder) otherKind(n *yaml.Node) string {
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
