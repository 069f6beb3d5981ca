package merge

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFile merges the top-level keys of a document and the items of its lists. It reports
// false if the difference between base and theirs has other parts too, or if a file is not
// a single mapping.
func yamlFile(base, ours, theirs []byte) ([]byte, bool) {
	b, t, o := parseYAML(base), parseYAML(theirs), parseYAML(ours)
	if b == nil || t == nil || o == nil {
		return nil, false
	}
	again, ok := merged(b, t, b)
	if !ok || !sameContent(again, theirs) {
		return nil, false
	}
	out, ok := merged(b, t, o)
	return out, ok
}

// A document is a YAML file that contains one mapping.
type document struct {
	lines []string
	root  *yaml.Node // the mapping; nil if the file is empty
}

func parseYAML(data []byte) *document {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var node, second yaml.Node
	if err := decoder.Decode(&node); err != nil {
		if len(bytes.TrimSpace(data)) == 0 {
			return &document{}
		}
		return nil
	}
	if decoder.Decode(&second) == nil || node.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return &document{split(data), node.Content[0]}
}

func sameContent(a, b []byte) bool {
	var x, y any
	return yaml.Unmarshal(a, &x) == nil && yaml.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// value returns the value of a top-level key and the line of the key, counted from 0.
func (d *document) value(key string) (*yaml.Node, int) {
	for i := 0; d.root != nil && i < len(d.root.Content); i += 2 {
		if d.root.Content[i].Value == key {
			return d.root.Content[i+1], d.root.Content[i].Line - 1
		}
	}
	return nil, 0
}

func (d *document) keys() []string {
	var keys []string
	for i := 0; d.root != nil && i < len(d.root.Content); i += 2 {
		keys = append(keys, d.root.Content[i].Value)
	}
	return keys
}

// merged returns ours with the difference between b and t. It reports false if a difference
// is neither in a list nor a new key.
func merged(b, t, ours *document) ([]byte, bool) {
	next := ours
	for _, key := range t.keys() {
		was, _ := b.value(key)
		is, _ := t.value(key)
		own, _ := ours.value(key)
		if was != nil && equalNodes(was, is) || own != nil && equalNodes(own, is) {
			continue
		}
		if is.Kind != yaml.SequenceNode || was != nil && was.Kind != yaml.SequenceNode && was.Tag != "!!null" {
			return nil, false
		}
		for _, item := range lacking(is, was) {
			if next = next.insert(key, item); next == nil {
				return nil, false
			}
		}
	}
	for _, key := range b.keys() {
		was, _ := b.value(key)
		is, _ := t.value(key)
		if was.Kind != yaml.SequenceNode {
			if is == nil {
				return nil, false
			}
			continue
		}
		for _, item := range lacking(was, is) {
			if next = next.delete(key, item); next == nil {
				return nil, false
			}
		}
	}
	return []byte(strings.Join(next.lines, "")), true
}

// lacking returns the items of list a that list b, which may be nil, does not contain.
func lacking(a, b *yaml.Node) []*yaml.Node {
	var items []*yaml.Node
	for _, item := range a.Content {
		if b == nil || !slices.ContainsFunc(b.Content, func(n *yaml.Node) bool { return equalNodes(n, item) }) {
			items = append(items, item)
		}
	}
	return items
}

func equalNodes(a, b *yaml.Node) bool {
	var x, y any
	return a.Decode(&x) == nil && b.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

// has reports whether a list contains an item. The list may be nil.
func has(list, item *yaml.Node) bool {
	return list != nil && list.Kind == yaml.SequenceNode &&
		slices.ContainsFunc(list.Content, func(n *yaml.Node) bool { return equalNodes(n, item) })
}

// insert returns the document with one more item at the end of a list. It returns nil if it does
// not support the layout of the file.
func (d *document) insert(key string, item *yaml.Node) *document {
	list, line := d.value(key)
	switch {
	case has(list, item):
		return d
	case list == nil:
		end := len(d.lines)
		return d.splice(end, end, key+":\n"+itemText(item, 0), key, item)
	case list.Kind == yaml.SequenceNode && list.Style&yaml.FlowStyle == 0:
		end := lastLine(list.Content[len(list.Content)-1])
		return d.splice(end, end, itemText(item, list.Column-1), key, item)
	case list.Tag == "!!null", list.Kind == yaml.SequenceNode && lastLine(list) == line+1:
		// The list is empty, or all of it is on the line of the key.
		text := key + ":\n"
		for _, n := range list.Content {
			text += itemText(n, 0)
		}
		return d.splice(line, line+1, text+itemText(item, 0), key, item)
	}
	return nil
}

// delete returns the document without an item of a list, and without the list if it is then
// empty. It returns nil if it does not support the layout of the file.
func (d *document) delete(key string, item *yaml.Node) *document {
	list, line := d.value(key)
	if !has(list, item) {
		return d
	}
	if list.Style&yaml.FlowStyle != 0 {
		return nil
	}
	n := list.Content[slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return equalNodes(n, item) })]
	start := n.Line - 1
	for n.HeadComment != "" && start > line+1 && strings.HasPrefix(strings.TrimSpace(d.lines[start-1]), "#") {
		start--
	}
	if len(list.Content) == 1 {
		start = line
	}
	return d.splice(start, lastLine(n), "", key, item)
}

// splice replaces the lines from start to end, counted from 0. This may change only whether the
// list contains the item. Otherwise it returns nil.
func (d *document) splice(start, end int, text, key string, item *yaml.Node) *document {
	before := strings.Join(whole(d.lines[:start]), "")
	next := parseYAML([]byte(before + text + strings.Join(d.lines[end:], "")))
	if next == nil {
		return nil
	}
	was, is := map[string]any{}, map[string]any{}
	if d.root != nil && d.root.Decode(&was) != nil || next.root != nil && next.root.Decode(&is) != nil {
		return nil
	}
	list, _ := next.value(key)
	delete(was, key)
	delete(is, key)
	old, _ := d.value(key)
	if !reflect.DeepEqual(was, is) || has(list, item) == has(old, item) {
		return nil
	}
	return next
}

// lastLine returns the number of the last line of a node, counted from 1.
func lastLine(n *yaml.Node) int {
	last := n.Line
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last += strings.Count(strings.TrimSuffix(n.Value, "\n"), "\n") + 1
	}
	for _, child := range n.Content {
		last = max(last, lastLine(child))
	}
	return last
}

// itemText returns the lines of a list item, indented by some spaces.
func itemText(item *yaml.Node, indent int) string {
	var buffer bytes.Buffer
	encoder := yaml.NewEncoder(&buffer)
	encoder.SetIndent(2)
	if err := encoder.Encode(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{withoutMarkers(item)}}); err != nil {
		return ""
	}
	text := strings.Repeat(" ", indent) + strings.ReplaceAll(strings.TrimSuffix(buffer.String(), "\n"), "\n", "\n"+strings.Repeat(" ", indent))
	return text + "\n"
}

// withoutMarkers returns a copy of the node without the comments that hold a scaffold
// marker. The parser attaches a marker to the item above or below it.
func withoutMarkers(n *yaml.Node) *yaml.Node {
	node := *n
	for _, comment := range []*string{&node.HeadComment, &node.FootComment, &node.LineComment} {
		if strings.Contains(*comment, "+kubebuilder:scaffold:") {
			*comment = ""
		}
	}
	node.Content = nil
	for _, child := range n.Content {
		node.Content = append(node.Content, withoutMarkers(child))
	}
	return &node
}
