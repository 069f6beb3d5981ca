package inspect

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// FieldChange is a field that differs between two versions of an object.
type FieldChange struct {
	// Path is the path of the field: spec.replicas, status.conditions[Ready].reason,
	// metadata.annotations[example.com/a].
	Path string `json:"path"`
	// Before and After are JSON. They are empty if the field did not exist.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Server reports whether the server maintains the field by itself, such as the
	// resourceVersion.
	Server bool `json:"server,omitempty"`

	steps []step
}

// step is one part of a path: a field, or an element of a list.
type step struct {
	field string
	// id is the value that identifies a list element; field is then the name of the identifying
	// field.
	id string
}

// serverFields are the fields that the server writes on each change.
var serverFields = []string{"metadata.resourceVersion", "metadata.managedFields", "metadata.generation", "metadata.uid", "metadata.creationTimestamp", "metadata.selfLink"}

// Compare returns the fields that differ between two versions, in the order of their paths.
// List elements are matched by their names, types or keys where they have some.
func Compare(before, after map[string]any) []FieldChange {
	c := &comparison{}
	c.maps("", before, after)
	return c.changes
}

// effective returns the changes that the server did not make by itself.
func effective(changes []FieldChange) []FieldChange {
	return slices.DeleteFunc(slices.Clone(changes), func(c FieldChange) bool { return c.Server })
}

func paths(changes []FieldChange) (all []string) {
	for _, c := range changes {
		all = append(all, c.Path)
	}
	return all
}

// comparison collects changes; steps is the path of the values that are being compared.
type comparison struct {
	changes []FieldChange
	steps   []step
}

func (c *comparison) note(path string, before, after any) {
	c.changes = append(c.changes, FieldChange{
		Path: path, Before: encode(before), After: encode(after), Server: isServerField(path), steps: slices.Clone(c.steps),
	})
}

// inside compares the values below a step.
func (c *comparison) inside(s step, path string, before, after any) {
	c.steps = append(c.steps, s)
	c.values(path, before, after)
	c.steps = c.steps[:len(c.steps)-1]
}

func isServerField(path string) bool {
	return slices.ContainsFunc(serverFields, func(f string) bool {
		rest, ok := strings.CutPrefix(path, f)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func encode(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

func (c *comparison) maps(path string, before, after map[string]any) {
	keys := make([]string, 0, len(before))
	for key := range before {
		keys = append(keys, key)
	}
	for key := range after {
		if _, both := before[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		c.inside(step{field: key}, join(path, key), before[key], after[key])
	}
}

func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[] "):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func (c *comparison) values(path string, before, after any) {
	if isServerField(path) {
		if !reflect.DeepEqual(before, after) {
			c.note(path, before, after)
		}
		return
	}
	wasMap, isMap := before.(map[string]any)
	nowMap, nowIsMap := after.(map[string]any)
	wasList, isList := before.([]any)
	nowList, nowIsList := after.([]any)
	switch {
	case (isMap || before == nil && len(nowMap) > 0) && (nowIsMap || after == nil && len(wasMap) > 0):
		c.maps(path, wasMap, nowMap)
	case isList && nowIsList:
		c.lists(path, wasList, nowList)
	case !equal(before, after):
		c.note(path, before, after)
	}
}

// equal treats numbers of different Go types as equal, because a body may have been decoded in
// two ways.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || isNumber(a) && isNumber(b) && string(encode(a)) == string(encode(b))
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

func (c *comparison) lists(path string, before, after []any) {
	key := identity(before, after)
	if key == "" {
		if len(before) == len(after) {
			for i := range before {
				c.inside(step{id: itoa(i)}, path+"["+itoa(i)+"]", before[i], after[i])
			}
			return
		}
		c.note(path, before, after)
		return
	}
	was, wasOrder := byKey(before, key)
	now, nowOrder := byKey(after, key)
	n := len(c.changes)
	for _, id := range union(wasOrder, nowOrder) {
		c.inside(step{field: key, id: id}, path+"["+id+"]", was[id], now[id])
	}
	if n == len(c.changes) && !slices.Equal(wasOrder, nowOrder) {
		c.note(path, before, after) // only the order
	}
}

func itoa(n int) string { return string(encode(n)) }

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, id := range b {
		if !slices.Contains(a, id) {
			all = append(all, id)
		}
	}
	return all
}

// identity returns the field by which the elements of both lists can be matched, or "".
func identity(lists ...[]any) string {
	for _, key := range []string{"name", "type", "key", "uid", "containerPort", "ip"} {
		if identifies(key, lists) {
			return key
		}
	}
	return ""
}

func identifies(key string, lists [][]any) bool {
	elements := 0
	for _, list := range lists {
		seen := map[string]bool{}
		for _, item := range list {
			id := idOf(item, key)
			if id == "" || seen[id] {
				return false
			}
			seen[id] = true
			elements++
		}
	}
	return elements > 0
}

func idOf(item any, key string) string {
	m, _ := item.(map[string]any)
	switch v := m[key].(type) {
	case string:
		return v
	case int64, float64:
		return string(encode(v))
	}
	return ""
}

func byKey(list []any, key string) (map[string]any, []string) {
	by := make(map[string]any, len(list))
	var order []string
	for _, item := range list {
		id := idOf(item, key)
		by[id] = item
		order = append(order, id)
	}
	return by, order
}
