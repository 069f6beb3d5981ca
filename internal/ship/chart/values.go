package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

// A rule is the JSON schema of a value.
type rule map[string]any

func boolean() rule                { return rule{"type": "boolean"} }
func anyText() rule                { return rule{"type": "string"} }
func required() rule               { return rule{"type": "string", "minLength": 1} }
func matching(pattern string) rule { return rule{"type": "string", "pattern": pattern} }
func oneOf(values ...any) rule     { return rule{"enum": values} }
func integerFrom(least int) rule   { return rule{"type": "integer", "minimum": least} }
func listOf(of rule) rule          { return rule{"type": "array", "items": of} }
func anyObject() rule              { return rule{"type": "object"} }
func objectOfTexts() rule          { return rule{"type": "object", "additionalProperties": anyText()} }

// empty returns the empty list or the empty object that a rule describes.
func (r rule) empty() any {
	if r["type"] == "array" {
		return []any{}
	}
	return map[string]any{}
}

// A value is one setting of a chart. Its path has dots between its fields.
type value struct {
	path, comment string
	content       any
	rule          rule
}

type values []value

func (v *values) add(path, comment string, content any, r rule) {
	*v = append(*v, value{path, comment, content, r})
}

// yaml returns values.yaml.
func (v values) yaml(header string) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, value := range v {
		at := root
		names := strings.Split(value.path, ".")
		for _, name := range names[:len(names)-1] {
			at = child(at, name)
		}
		content := &yaml.Node{}
		if err := content.Encode(value.content); err != nil {
			return nil, fmt.Errorf("writing the value %s: %w", value.path, err)
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: names[len(names)-1]}
		key.HeadComment = commented(value.comment, 80-2*len(names))
		at.Content = append(at.Content, key, content)
	}
	text, err := encoded(root)
	return append([]byte(header), text...), err
}

// child returns the object under a name, and adds it if it is missing.
func child(object *yaml.Node, name string) *yaml.Node {
	if at := position(object, name); at >= 0 {
		return object.Content[at+1]
	}
	inner := &yaml.Node{Kind: yaml.MappingNode}
	object.Content = append(object.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, inner)
	return inner
}

// position returns the index of a name among the names and values of an object; -1 if it is missing.
func position(object *yaml.Node, name string) int {
	for i := 0; i+1 < len(object.Content); i += 2 {
		if object.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// commented returns a text as a comment.
func commented(text string, columns int) string {
	return "# " + strings.Join(textwidth.Wrap(text, columns-2), "\n# ")
}

func encoded(node *yaml.Node) ([]byte, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(node)
	return text.Bytes(), err
}

// spaced adds an empty line before each value at the top level, and its comment.
func spaced(text []byte) []byte {
	var out bytes.Buffer
	before := "#"
	for line := range strings.Lines(string(text)) {
		if begins := !strings.HasPrefix(line, " ") && line != "\n"; begins && !strings.HasPrefix(before, "#") && before != "\n" {
			out.WriteByte('\n')
		}
		out.WriteString(line)
		before = line
	}
	return out.Bytes()
}

// schema returns values.schema.json, by which Helm refuses a value that the chart does not have.
func (v values) schema(title string) map[string]any {
	// Helm passes the values of a parent chart for all charts as global.
	root := closed(map[string]any{"global": map[string]any(anyObject())})
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = title
	for _, value := range v {
		at := root
		names := strings.Split(value.path, ".")
		for _, name := range names[:len(names)-1] {
			properties := fields(at, "properties")
			if properties[name] == nil {
				properties[name] = closed(map[string]any{})
			}
			at = fields(properties, name)
		}
		described := map[string]any{"description": value.comment}
		for name, content := range value.rule {
			described[name] = content
		}
		fields(at, "properties")[names[len(names)-1]] = described
	}
	return root
}

// closed describes an object that has only certain properties.
func closed(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func indentedJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return text.Bytes(), err
}
