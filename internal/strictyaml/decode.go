// Package strictyaml decodes YAML that people write. Unknown fields, fields that appear twice
// and values of another type are mistakes. Each mistake has a line and, where a name is
// misspelled, a suggestion.
//
//	file ──Documents──▶ nodes ──Decoder.Typed──▶ JSON values
//	                                └──▶ Complaints, Lines
package strictyaml

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decoder converts the nodes of one YAML document to JSON values. It checks the values
// against Go types during the conversion, because a node has a line number, but a decoded
// value does not.
type Decoder struct {
	// Lines holds the line of each path, such as steps[2].patch.kind.
	Lines      map[string]int
	Complaints []Complaint

	special map[reflect.Type]Special
	nodes   int
}

// Complaint describes a mistake at a path.
type Complaint struct {
	Path    string
	Message string
	Line    int // set only if it differs from the line of the path
}

// Special returns the value of a node whose type has another form in YAML than in Go.
type Special func(d *Decoder, n *yaml.Node, path string, depth int) any

// New returns a decoder for the document that begins with the node. special may be nil.
func New(n *yaml.Node, special map[reflect.Type]Special) *Decoder {
	return &Decoder{Lines: map[string]int{"": n.Line}, special: special}
}

// Limits are necessary because aliases can expand a small file endlessly.
const (
	mostNodes = 200_000
	mostDepth = 200
)

// Complain adds a mistake.
func (d *Decoder) Complain(path, format string, args ...any) {
	d.Complaints = append(d.Complaints, Complaint{Path: path, Message: fmt.Sprintf(format, args...)})
}

// enter resolves aliases and counts the nodes. It returns false if a limit is
// exceeded.
func (d *Decoder) enter(n *yaml.Node, path string, depth int) (*yaml.Node, bool) {
	if _, known := d.Lines[path]; !known {
		d.Lines[path] = n.Line
	}
	for n.Kind == yaml.AliasNode && n.Alias != nil && depth < mostDepth {
		n = n.Alias
		depth++
	}
	d.nodes++
	switch {
	case d.nodes == mostNodes+1:
		d.Complain(path, "the document is too large; move a part of it to another file")
		return nil, false
	case d.nodes > mostNodes:
		return nil, false
	case depth >= mostDepth:
		d.nodes = mostNodes + 1
		d.Complain(path, "is nested too deeply")
		return nil, false
	}
	return n, true
}

// Typed returns the value of a node that must have the type t.
func (d *Decoder) Typed(n *yaml.Node, t reflect.Type, path string, depth int) any {
	n, ok := d.enter(n, path, depth)
	if !ok {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if special, ok := d.special[t]; ok {
		return special(d, n, path, depth)
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return d.Free(n, path, depth)
	}
	if IsNull(n) {
		d.Complain(path, "is empty; give it a value or omit it")
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.structure(n, t, path, depth)
	case reflect.Slice:
		return d.list(n, t, path, depth)
	case reflect.Map:
		return d.mapping(n, t, path, depth)
	}
	return d.scalar(n, t, path)
}

// mapping returns a mapping whose keys are names that people choose.
func (d *Decoder) mapping(n *yaml.Node, t reflect.Type, path string, depth int) any {
	if n.Kind != yaml.MappingNode {
		d.Complain(path, "must be a mapping")
		return nil
	}
	out := map[string]any{}
	for key, value := range d.pairs(n, path) {
		out[key] = d.Typed(value, t.Elem(), Below(path, key), depth+1)
	}
	return out
}

func (d *Decoder) structure(n *yaml.Node, t reflect.Type, path string, depth int) any {
	if n.Kind != yaml.MappingNode {
		d.Complain(path, "must be a mapping with %s", strings.Join(Names(Fields(t)), ", "))
		return nil
	}
	known := Fields(t)
	out := map[string]any{}
	for key, value := range d.pairs(n, path) {
		at := Below(path, key)
		i := slices.IndexFunc(known, func(f Field) bool { return f.Name == key })
		if i < 0 {
			d.Complain(at, "%s", Unknown("field", key, Names(known)))
			continue
		}
		out[key] = d.Typed(value, known[i].Of, at, depth+1)
	}
	for _, f := range known {
		if _, given := out[f.Name]; f.Required && !given {
			d.Complain(path, "%s is missing", f.Name)
		}
	}
	return out
}

func (d *Decoder) list(n *yaml.Node, t reflect.Type, path string, depth int) any {
	if n.Kind != yaml.SequenceNode {
		d.Complain(path, "must be a list")
		return nil
	}
	out := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		out = append(out, d.Typed(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i), depth+1))
	}
	return out
}

func (d *Decoder) scalar(n *yaml.Node, t reflect.Type, path string) any {
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
		d.Complain(path, "must be %s, not a mapping or a list", kindName(t))
	case t.Kind() == reflect.String && tag == "!!str":
		return n.Value
	case t.Kind() == reflect.String && (tag == "!!int" || tag == "!!float" || tag == "!!bool" || tag == "!!timestamp"):
		d.Complain(path, "must be text; write %q, with the quotes", n.Value)
	case t.Kind() == reflect.Bool && tag == "!!bool":
		return strings.EqualFold(n.Value, "true")
	case t.Kind() == reflect.Int32 && tag == "!!int":
		var number int32
		if err := n.Decode(&number); err != nil {
			d.Complain(path, "%s is too large", n.Value)
		}
		return number
	default:
		d.Complain(path, "must be %s, not %q", kindName(t), n.Value)
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

// Free returns the value of a node of any type.
func (d *Decoder) Free(n *yaml.Node, path string, depth int) any {
	n, ok := d.enter(n, path, depth)
	if !ok {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for key, value := range d.pairs(n, path) {
			out[key] = d.Free(value, Below(path, key), depth+1)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			out = append(out, d.Free(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return out
	}
	return d.freeScalar(n, path)
}

// freeScalar decodes a scalar like kubectl: dates are text, and yes, no, on, off, y and n
// are booleans, as in YAML 1.1.
func (d *Decoder) freeScalar(n *yaml.Node, path string) any {
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
		d.Complain(path, "cannot read %s: %v", n.Value, strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if f, isFloat := value.(float64); isFloat && (math.IsNaN(f) || math.IsInf(f, 0)) {
		d.Complain(path, "%s is not a number in JSON", n.Value)
		return nil
	}
	return value
}

// pairs iterates over the keys and values of a mapping. It yields each key only once.
func (d *Decoder) pairs(n *yaml.Node, path string) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			at := Below(path, key.Value)
			switch {
			case key.Kind != yaml.ScalarNode:
				d.Complain(path, "a key must be text")
				continue
			case key.ShortTag() == "!!merge":
				d.Complain(at, "is not supported; write the fields out")
				continue
			case seen[key.Value]:
				d.Complaints = append(d.Complaints, Complaint{at, "appears twice", key.Line})
				continue
			}
			seen[key.Value] = true
			d.Lines[at] = key.Line
			if !yield(key.Value, value) {
				return
			}
		}
	}
}

// IsNull reports whether a node is empty.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// Below returns the path of a key.
func Below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Field describes the JSON form of a field of a Go type.
type Field struct {
	Name     string
	Required bool
	Of       reflect.Type
}

// Fields returns the fields of a struct, including those of embedded structs. A field is
// required if its tag has neither omitempty nor omitzero.
func Fields(t reflect.Type) []Field {
	var all []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, Fields(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		all = append(all, Field{Name: name, Required: !strings.Contains(options, "omit"), Of: f.Type})
	}
	return all
}

// Names returns the names of the fields.
func Names(all []Field) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.Name)
	}
	return out
}
