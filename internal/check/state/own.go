package state

import (
	"reflect"
	"slices"
	"strings"
)

// Own holds the objects of kinds that the cluster itself maintains, but that the controller writes
// as well, such as Nodes that it labels. The objects are keyed by canonical name. A list of paths
// limits the comparison to the fields that the controller set, because the cluster writes the other
// fields; an empty list means that the controller created the object, so that all of it is
// compared.
type Own map[string][][]string

// Bookkeeping reports whether the cluster itself maintains an object. Such an object is compared
// only if it is listed in Own.
func Bookkeeping(ref Ref, object Object) bool { return isBookkeeping(ref, object) }

// owns reports whether an object is compared although the cluster maintains its kind.
func (m *Mask) owns(key string) bool {
	if m == nil {
		return false
	}
	_, own := m.Own[key]
	return own
}

// part returns those parts of the canonical content of an object that are compared.
func (m *Mask) part(key string, content any) any {
	if m == nil || len(m.Own[key]) == 0 || content == nil {
		return content
	}
	whole, _ := content.(map[string]any)
	part := map[string]any{}
	for _, path := range m.Own[key] {
		parent := parentOf(part, path)
		if v, found := at(whole, path); found {
			parent[path[len(path)-1]] = v
		}
	}
	return part
}

// absent adds to a world the objects that the snapshot omits because they are unchanged since the
// baseline. absent adds only objects that are compared in part.
func (m *Mask) absent(w World) {
	if m == nil {
		return
	}
	for key, paths := range m.Own {
		if _, there := w.Objects[key]; !there && len(paths) > 0 {
			w.Objects[key] = []any{m.part(key, map[string]any{})}
		}
	}
}

func at(object map[string]any, path []string) (v any, found bool) {
	for i, part := range path {
		if v, found = object[part]; !found || i+1 == len(path) {
			return v, found
		}
		object, _ = v.(map[string]any)
	}
	return nil, false
}

// parentOf returns the map that holds the last part of a path, and creates it if necessary.
// This way, a missing field shows as a difference in the field itself, not in its parent.
func parentOf(object map[string]any, path []string) map[string]any {
	for _, part := range path[:len(path)-1] {
		inner, _ := object[part].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			object[part] = inner
		}
		object = inner
	}
	return object
}

// Changed returns the paths of the fields that a change set, changed or removed, except the
// metadata that the server maintains. If a list changed, its path stands for the whole list.
func (c Change) Changed() [][]string {
	var paths [][]string
	var walk func(path []string, before, after map[string]any)
	walk = func(path []string, before, after map[string]any) {
		for _, key := range sortedKeys(union(before, after)) {
			if len(path) == 1 && path[0] == "metadata" && slices.Contains(bookkeeping, key) || strings.HasPrefix(key, Mark) {
				continue
			}
			here := append(slices.Clone(path), key)
			was, wasMap := before[key].(map[string]any)
			is, isMap := after[key].(map[string]any)
			switch {
			case (wasMap || before[key] == nil) && (isMap || after[key] == nil) && (wasMap || isMap):
				walk(here, was, is)
			case !reflect.DeepEqual(before[key], after[key]):
				paths = append(paths, here)
			}
		}
	}
	walk(nil, c.Before, c.After)
	return paths
}
