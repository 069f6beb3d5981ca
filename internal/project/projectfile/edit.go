package projectfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bytes returns the content for the file. If nothing has changed since the file was read, the
// result is the original content, byte for byte. Otherwise, it differs only in the changed fields
// and in the formatting.
func (f *File) Bytes() ([]byte, error) {
	var was, now yaml.Node
	if err := was.Encode(f.read); err != nil {
		return nil, err
	}
	if err := now.Encode(f); err != nil {
		return nil, err
	}
	if equal(&was, &now) {
		return f.data, nil
	}
	document, err := f.document()
	if err != nil {
		return nil, err
	}
	if document == nil {
		encoded, err := encode(&now)
		return append(f.comments(), encoded...), err
	}
	change(document.Content[0], &was, &now)
	return encode(document)
}

// document returns the YAML document that was read, or nil if it was empty.
func (f *File) document() (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(f.data))
	var document, next yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w; correct the YAML", Name, err)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is more than one YAML document; remove all but the first", Name)
	}
	if line := alias(&document); line > 0 {
		return nil, fmt.Errorf("%s: line %d has a YAML alias, which an edit might break; replace it with the value", Name, line)
	}
	if document.Content[0].Kind != yaml.MappingNode {
		return nil, nil // null, which is the only other value that Parse accepts
	}
	return &document, nil
}

// comments returns the lines of the file that are comments.
func (f *File) comments() (lines []byte) {
	for line := range bytes.Lines(f.data) {
		if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("#")) {
			lines = append(append(lines, line...), '\n')
		}
	}
	return lines
}

// alias returns the line of the first alias, or 0.
func alias(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		return node.Line
	}
	for _, child := range node.Content {
		if line := alias(child); line > 0 {
			return line
		}
	}
	return 0
}

// encode formats YAML as kubebuilder does.
func encode(node *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return out.Bytes(), err
}

// change applies the differences between was and now to the mapping that was read. Keys
// that are in neither was nor now are kept.
func change(mapping, was, now *yaml.Node) {
	for i := 0; i < len(was.Content); i += 2 {
		if key := was.Content[i].Value; value(now, key) == nil {
			remove(mapping, key)
		}
	}
	for i := 0; i < len(now.Content); i += 2 {
		key := now.Content[i].Value
		before, after, here := value(was, key), now.Content[i+1], value(mapping, key)
		switch {
		case before != nil && equal(before, after):
		case here == nil:
			insert(mapping, now.Content[i], after)
		case before != nil && here.Kind == yaml.MappingNode && after.Kind == yaml.MappingNode:
			change(here, before, after)
		case before != nil && here.Kind == yaml.SequenceNode && after.Kind == yaml.SequenceNode:
			changeList(here, before, after)
		default:
			after.HeadComment, after.LineComment, after.FootComment = here.HeadComment, here.LineComment, here.FootComment
			*here = *after
		}
	}
}

// changeList applies the differences between was and now to the list that was read. The entries of
// the list correspond to the entries of was.
func changeList(list, was, now *yaml.Node) {
	// Parse skips entries that are null, so was has none.
	read := slices.DeleteFunc(list.Content, func(entry *yaml.Node) bool { return entry.Tag == "!!null" })
	used := make([]bool, len(was.Content))
	list.Content = nil
	for n, after := range now.Content {
		i := slices.IndexFunc(was.Content, func(before *yaml.Node) bool { return identity(before) == identity(after) })
		if i < 0 {
			i = renamed(was, now, n)
		}
		if i < 0 || used[i] {
			list.Content = append(list.Content, after)
			continue
		}
		used[i] = true
		if after.Kind == yaml.MappingNode {
			change(read[i], was.Content[i], after)
		}
		list.Content = append(list.Content, read[i])
	}
}

// renamed returns n if the entry with the number n has only been renamed, and -1 otherwise.
func renamed(was, now *yaml.Node, n int) int {
	if len(was.Content) != len(now.Content) || was.Content[n].Kind != yaml.MappingNode {
		return -1
	}
	before := identity(was.Content[n])
	if slices.ContainsFunc(now.Content, func(after *yaml.Node) bool { return identity(after) == before }) {
		return -1
	}
	return n
}

// identity returns what identifies an entry of a list: the value of a scalar, the names of a
// resource, or the name of a controller.
func identity(entry *yaml.Node) (id [6]string) {
	id[0] = entry.Value
	for i, key := range []string{"group", "domain", "version", "kind", "name"} {
		if v := value(entry, key); v != nil {
			id[i+1] = v.Value
		}
	}
	return id
}

// value returns the value of a key in a mapping, or nil.
func value(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func remove(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			if i == 0 && len(mapping.Content) > 2 { // the comment may be the header of the file
				next := mapping.Content[2]
				next.HeadComment = strings.Trim(mapping.Content[0].HeadComment+"\n"+next.HeadComment, "\n")
			}
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
			return
		}
	}
}

// insert adds a key before the first key that follows it in alphabetical order, because
// kubebuilder writes the keys in that order.
func insert(mapping, key, value *yaml.Node) {
	at := len(mapping.Content)
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value > key.Value {
			at = i
			break
		}
	}
	if at == 0 && len(mapping.Content) > 0 { // the comment may be the header of the file
		key.HeadComment, mapping.Content[0].HeadComment = mapping.Content[0].HeadComment, ""
	}
	mapping.Content = slices.Insert(mapping.Content, at, key, value)
}

func equal(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, equal)
}
