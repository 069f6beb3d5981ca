package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder converts the nodes of one YAML document to JSON values. It checks the values
// against Go types during the conversion, because a node has a line number, but a decoded
// value does not.
type decoder struct {
	lines      map[string]int
	complaints []complaint
	nodes      int
}

// Limits are necessary because aliases can expand a small file endlessly.
const (
	mostNodes = 200_000
	mostDepth = 200
)

func (d *decoder) complain(path, format string, args ...any) {
	d.complaints = append(d.complaints, complaint{path: path, message: fmt.Sprintf(format, args...)})
}

// enter resolves aliases and counts the nodes. It returns false if a limit is
// exceeded.
func (d *decoder) enter(n *yaml.Node, path string, depth int) (*yaml.Node, bool) {
	if _, known := d.lines[path]; !known {
		d.lines[path] = n.Line
	}
	for n.Kind == yaml.AliasNode && n.Alias != nil && depth < mostDepth {
		n = n.Alias
		depth++
	}
	d.nodes++
	switch {
	case d.nodes == mostNodes+1:
		d.complain(path, "the scenario is too large; move objects to files")
		return nil, false
	case d.nodes > mostNodes:
		return nil, false
	case depth >= mostDepth:
		d.nodes = mostNodes + 1
		d.complain(path, "is nested too deeply")
		return nil, false
	}
	return n, true
}

// typed returns the value of a node that must have the type t.
func (d *decoder) typed(n *yaml.Node, t reflect.Type, path string, depth int) any {
	n, ok := d.enter(n, path, depth)
	if !ok {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return d.free(n, path, depth)
	case reflect.TypeFor[Manifest]():
		return d.manifest(n, path, depth)
	case reflect.TypeFor[Duration]():
		return d.duration(n, path)
	}
	if isNull(n) {
		d.complain(path, "is empty; give it a value or omit it")
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.structure(n, t, path, depth)
	case reflect.Slice:
		return d.list(n, t, path, depth)
	}
	return d.scalar(n, t, path)
}

func (d *decoder) structure(n *yaml.Node, t reflect.Type, path string, depth int) any {
	if n.Kind != yaml.MappingNode {
		d.complain(path, "must be a mapping with %s", strings.Join(names(fields(t)), ", "))
		return nil
	}
	known := fields(t)
	out := map[string]any{}
	for key, value := range d.pairs(n, path) {
		at := below(path, key)
		i := slices.IndexFunc(known, func(f field) bool { return f.name == key })
		if i < 0 {
			d.complain(at, "%s", unknown("field", key, names(known)))
			continue
		}
		out[key] = d.typed(value, known[i].of, at, depth+1)
	}
	for _, f := range known {
		if _, given := out[f.name]; f.required && !given {
			d.complain(path, "%s is missing", f.name)
		}
	}
	return out
}

func (d *decoder) list(n *yaml.Node, t reflect.Type, path string, depth int) any {
	if n.Kind != yaml.SequenceNode {
		d.complain(path, "must be a list")
		return nil
	}
	out := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		out = append(out, d.typed(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i), depth+1))
	}
	return out
}

func (d *decoder) scalar(n *yaml.Node, t reflect.Type, path string) any {
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
		d.complain(path, "must be %s, not a mapping or a list", kindName(t))
	case t.Kind() == reflect.String && tag == "!!str":
		return n.Value
	case t.Kind() == reflect.String && (tag == "!!int" || tag == "!!float" || tag == "!!bool" || tag == "!!timestamp"):
		d.complain(path, "must be text; write %q, with the quotes", n.Value)
	case t.Kind() == reflect.Bool && tag == "!!bool":
		return strings.EqualFold(n.Value, "true")
	case t.Kind() == reflect.Int32 && tag == "!!int":
		var number int32
		if err := n.Decode(&number); err != nil {
			d.complain(path, "%s is too large", n.Value)
		}
		return number
	default:
		d.complain(path, "must be %s, not %q", kindName(t), n.Value)
	}
	return nil
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int32:
		return "a whole number"
	}
	return "text"
}

func (d *decoder) duration(n *yaml.Node, path string) any {
	if n.Kind != yaml.ScalarNode {
		d.complain(path, "must be a duration such as 1.5s")
		return nil
	}
	parsed, err := parseDuration(n.Value)
	if err != nil {
		d.complain(path, "%v", err)
		return nil
	}
	return parsed
}

func (d *decoder) manifest(n *yaml.Node, path string, depth int) any {
	if n.Kind != yaml.MappingNode {
		d.complain(path, "must be an object, or have the form {file: PATH}")
		return nil
	}
	object, _ := d.free(n, path, depth).(map[string]any)
	if !namesFile(object) {
		return object
	}
	if file, isText := object["file"].(string); !isText || file == "" {
		d.complain(path+".file", "must be a path")
		return nil
	}
	for key := range object {
		if key != "file" {
			d.complain(below(path, key), "cannot be combined with file; a manifest is either a file or an object")
			return nil
		}
	}
	return object
}

// free returns the value of a node of any type.
func (d *decoder) free(n *yaml.Node, path string, depth int) any {
	n, ok := d.enter(n, path, depth)
	if !ok {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for key, value := range d.pairs(n, path) {
			out[key] = d.free(value, below(path, key), depth+1)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			out = append(out, d.free(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return out
	}
	return d.freeScalar(n, path)
}

// freeScalar decodes a scalar like kubectl: dates are text, and yes, no, on, off, y and n
// are booleans, as in YAML 1.1.
func (d *decoder) freeScalar(n *yaml.Node, path string) any {
	if n.Style == 0 && n.ShortTag() == "!!str" {
		switch strings.ToLower(n.Value) {
		case "yes", "on", "y":
			return true
		case "no", "off", "n":
			return false
		}
	}
	if tag := n.ShortTag(); tag == "!!timestamp" || tag == "!!str" {
		return n.Value
	}
	var value any
	if err := n.Decode(&value); err != nil {
		d.complain(path, "cannot read %s: %v", n.Value, strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if f, isFloat := value.(float64); isFloat && (math.IsNaN(f) || math.IsInf(f, 0)) {
		d.complain(path, "%s is not a number in JSON", n.Value)
		return nil
	}
	return value
}

// pairs iterates over the keys and values of a mapping. It yields each key only once.
func (d *decoder) pairs(n *yaml.Node, path string) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			at := below(path, key.Value)
			switch {
			case key.Kind != yaml.ScalarNode:
				d.complain(path, "a key must be text")
				continue
			case key.ShortTag() == "!!merge":
				d.complain(at, "is not supported; write the fields out")
				continue
			case seen[key.Value]:
				d.complaints = append(d.complaints, complaint{at, "appears twice", key.Line})
				continue
			}
			seen[key.Value] = true
			d.lines[at] = key.Line
			if !yield(key.Value, value) {
				return
			}
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// field describes the JSON form of a field of a Go type.
type field struct {
	name     string
	required bool
	of       reflect.Type
}

// fields returns the fields of a struct, including those of embedded structs. A field is
// required if its tag has neither omitempty nor omitzero.
func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, fields(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, field{name: name, required: !strings.Contains(options, "omit"), of: f.Type})
	}
	return all
}

func names(all []field) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.name)
	}
	return out
}
