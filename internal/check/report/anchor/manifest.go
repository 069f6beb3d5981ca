package anchor

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostNodes limits the nodes of a file that are searched. Aliases could make a small file endless,
// so they are not followed.
const mostNodes = 100_000

// Manifest returns the line of an object, or of one of its fields, in a sample or a scenario. The
// object is named as in a finding. An object may also be in a file that the scenario names.
func (p *Project) Manifest(file, name, path string) Line {
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.root, file)
	}
	at, named := search(file, name, path)
	for _, other := range named {
		if at.Number > 0 {
			break
		}
		at, _ = search(filepath.Join(filepath.Dir(file), filepath.FromSlash(other)), name, path)
	}
	return at
}

// search returns the line of a field in one file, and the files that this file names.
func search(file, name, path string) (Line, []string) {
	s := searched{path: parts(path)}
	s.kind, s.group, s.namespace, s.name = object(name)
	decoder := yaml.NewDecoder(bytes.NewReader(read(file)))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil { // the end, or a file that is not YAML
			break
		}
		s.visit(&document)
	}
	return Line{file, s.line}.known(), s.files
}

// known returns the zero Line if the number of the line is unknown.
func (l Line) known() Line {
	if l.Number == 0 {
		return Line{}
	}
	return l
}

// searched is the search for a field of an object.
type searched struct {
	kind, group, namespace, name string
	path                         []string
	line                         int
	files                        []string
	nodes                        int
}

// visit searches a node and everything below it.
func (s *searched) visit(n *yaml.Node) {
	if s.nodes++; s.line > 0 || s.nodes > mostNodes {
		return
	}
	if n.Kind == yaml.MappingNode {
		if s.matches(n) {
			s.line = lineOf(n, s.path)
			return
		}
		if file := value(n, "file"); file != nil && len(n.Content) == 2 && file.Kind == yaml.ScalarNode {
			s.files = append(s.files, file.Value)
		}
	}
	for _, child := range n.Content {
		s.visit(child)
	}
}

// matches reports whether a node is the object.
func (s *searched) matches(n *yaml.Node) bool {
	group, _, found := strings.Cut(scalar(n, "apiVersion"), "/")
	if !found {
		group = "" // the version of the core group
	}
	metadata := value(n, "metadata")
	if s.name == "" || metadata == nil || scalar(n, "kind") != s.kind || group != s.group || scalar(metadata, "name") != s.name {
		return false
	}
	space := scalar(metadata, "namespace")
	return space == "" || space == s.namespace
}

// lineOf returns the line of a field below a node, or 0.
func lineOf(n *yaml.Node, path []string) int {
	line := n.Line
	for _, part := range path {
		key, next := step(n, part)
		if next == nil {
			return 0
		}
		n, line = next, key.Line
	}
	return line
}

// step returns the node below a node, and the node whose line shows it.
func step(n *yaml.Node, part string) (key, next *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
		if i := slices.IndexFunc(n.Content, func(e *yaml.Node) bool { return scalar(e, "name") == part || scalar(e, "type") == part }); i >= 0 {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

func value(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	_, next := step(n, key)
	return next
}

// scalar returns the text of a field of a mapping, or "".
func scalar(n *yaml.Node, key string) string {
	if v := value(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}
