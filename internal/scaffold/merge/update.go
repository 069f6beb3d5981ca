package merge

import (
	"bytes"
	"path"

	"go.yaml.in/yaml/v3"
)

// Update applies the difference between two versions of the scaffold to ours. Any part of a
// file may differ, so Update is stricter than File: it replaces and removes only parts that
// are exactly as koboshi wrote them. If there are conflicts, the result lacks the parts that
// the conflicts name.
func Update(name string, base, ours, theirs []byte) ([]byte, []Conflict) {
	switch {
	case bytes.Equal(base, theirs), bytes.Equal(ours, theirs):
		return ours, nil
	case bytes.Equal(ours, base):
		return theirs, nil
	}
	switch name {
	case "go.mod":
		if merged, ok := modFile(base, ours, theirs); ok {
			return merged, nil
		}
	case "go.sum":
		return sumFile(base, ours, theirs), nil
	}
	merged, conflicts := lines(base, ours, theirs)
	if len(conflicts) == 0 {
		return merged, nil
	}
	// Neighboring changes, such as two new imports, conflict only in a merge by lines.
	exact, ok := []byte(nil), false
	switch path.Ext(name) {
	case ".go":
		exact, ok = exactGoFile(base, ours, theirs)
	case ".yaml", ".yml":
		exact, ok = exactYAMLFile(base, ours, theirs)
	}
	if ok {
		return exact, nil
	}
	return merged, conflicts
}

// exactGoFile merges like goFile, but reports false if a removed piece is not exactly as koboshi
// wrote it.
func exactGoFile(base, ours, theirs []byte) ([]byte, bool) {
	merged, conflicts, ok := goFile(base, ours, theirs)
	if !ok || len(conflicts) > 0 {
		return nil, false
	}
	o := parseGo(ours)
	for _, ch := range difference(parseGo(base), parseGo(theirs)).removed {
		if p := find(o.pieces(ch.in != ""), ch.in, ch.code); p == nil || p.in != ch.in || p.text != ch.text {
			return nil, false
		}
	}
	return merged, true
}

// exactYAMLFile merges like yamlFile, but reports false if the person has changed a removed item,
// or if the difference has comments, which yamlFile ignores.
func exactYAMLFile(base, ours, theirs []byte) ([]byte, bool) {
	again, ok := yamlFile(base, base, theirs)
	if !ok || !bytes.Equal(again, theirs) {
		return nil, false
	}
	b, t, o := parseYAML(base), parseYAML(theirs), parseYAML(ours)
	for _, key := range b.keys() {
		was, _ := b.value(key)
		if was.Kind != yaml.SequenceNode {
			continue
		}
		is, _ := t.value(key)
		for _, item := range lacking(was, is) {
			if own, _ := o.value(key); !has(own, item) {
				return nil, false
			}
		}
	}
	return yamlFile(base, ours, theirs)
}
