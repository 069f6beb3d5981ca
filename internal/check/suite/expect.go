package suite

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// matcher turns an object that must match as a subset into conditions, one for each leaf.
type matcher struct {
	ref         scenario.ObjectRef
	object      map[string]any
	expressions bool // chainsaw's, which cannot be imported

	found []scenario.Condition
	left  []leftLeaf
}

// leftLeaf is a part of an expected object that no condition can express. path is the path as in
// strictyaml.
type leftLeaf struct{ path, why string }

// subset returns the conditions for an object, and the parts that no condition expresses. Without a
// field to compare, the only condition is that the object exists.
func subset(ref scenario.ObjectRef, object map[string]any, expressions bool) ([]scenario.Condition, []leftLeaf) {
	m := &matcher{ref: ref, object: object, expressions: expressions}
	m.fields(change(object), "", "")
	if len(m.found) == 0 {
		m.found = []scenario.Condition{{ObjectRef: ref}}
	}
	return m.found, m.left
}

func (m *matcher) leave(at, format string, args ...any) {
	m.left = append(m.left, leftLeaf{at, fmt.Sprintf(format, args...)})
}

// value adds the conditions for the value at a path. field is the path as JSONPath, and at is the
// path in the file.
func (m *matcher) value(value any, field, at string) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			m.add(scenario.Condition{Field: field}, v, at)
			return
		}
		m.fields(v, field, at)
	case []any:
		m.list(v, field, at)
	case nil:
		m.leave(at, "a condition cannot require null")
	default:
		m.equal(field, v, v, at)
	}
}

func (m *matcher) fields(object map[string]any, field, at string) {
	for _, key := range sortedKeys(object) {
		below := strings.TrimPrefix(at+"."+key, ".")
		if m.expressions && expressionKey.MatchString(key) {
			m.leave(below, "%s: expressions are not supported", key)
			continue
		}
		m.value(object[key], strings.TrimPrefix(field+"."+escaped(key), "."), below)
	}
}

// escaped returns a key as it is written in JSONPath.
func escaped(key string) string {
	var out strings.Builder
	for _, r := range key {
		if strings.ContainsRune(`.,[]$@ \`, r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// list adds the conditions for a list. Both formats compare lists item by item. If all items share
// a field with a plain value, the values of this field are compared as one list, which also
// determines the number of items.
func (m *matcher) list(items []any, field, at string) {
	switch {
	case !slices.ContainsFunc(items, func(item any) bool { return !plain(item) }):
		m.equal(field, items, items, at)
		return
	case field == "status.conditions" && m.conditions(items, at):
		return
	}
	shared := slices.DeleteFunc(sharedFields(items), func(key string) bool { return m.expressions && expressionKey.MatchString(key) })
	for _, key := range shared {
		var values []any
		for _, item := range items {
			values = append(values, item.(map[string]any)[key])
		}
		m.equal(field+"[*]."+escaped(key), values, values, fmt.Sprintf("%s[0].%s", at, key))
	}
	for i, item := range items {
		here, there := fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%s[%d]", at, i)
		object, isObject := item.(map[string]any)
		switch {
		case isObject && len(object) > 0:
			m.fields(without(object, shared), here, there)
		default:
			m.value(item, here, there)
		}
	}
}

// conditions adds the conditions of a status, which are found by their type, because the order
// has no meaning. It returns false if a condition has no type.
func (m *matcher) conditions(items []any, at string) bool {
	for _, item := range items {
		object, _ := item.(map[string]any)
		if kind := text(object, "type"); kind == "" || strings.ContainsAny(kind, "\"'\\=(){}[] \t\r\n") {
			return false
		}
	}
	for i, item := range items {
		object, there := item.(map[string]any), fmt.Sprintf("%s[%d]", at, i)
		kind, rest := text(object, "type"), without(object, []string{"type"})
		if status := text(object, "status"); slices.Contains([]string{"True", "False", "Unknown"}, status) {
			m.found = append(m.found, scenario.Condition{ObjectRef: m.ref, Status: kind + "=" + status})
			delete(rest, "status")
		} else if len(rest) == 0 {
			m.add(scenario.Condition{Field: fmt.Sprintf(`status.conditions[?(@.type=="%s")]`, kind)}, object, there)
		}
		m.fields(rest, fmt.Sprintf(`status.conditions[?(@.type=="%s")]`, kind), there)
	}
	return true
}

// equal adds the condition that the field has the value. selected is the value that the path
// selects in the expected object.
func (m *matcher) equal(field string, value, selected any, at string) {
	if _, why := unsupported(value, m.expressions); why != "" {
		m.leave(at, "%s", why)
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		m.leave(at, "%v", err)
		return
	}
	m.add(scenario.Condition{Field: field, Equals: data}, selected, at)
}

// add adds a condition if its path selects the value in the expected object itself. Otherwise, the
// path contains a key that JSONPath cannot express.
func (m *matcher) add(c scenario.Condition, want any, at string) {
	if !selects(c.Field, m.object, want) {
		m.leave(at, "JSONPath cannot express this path")
		return
	}
	c.ObjectRef = m.ref
	m.found = append(m.found, c)
}

// selects reports whether a path selects the value in the object.
func selects(field string, object map[string]any, want any) bool {
	if !isPath(field) {
		return false
	}
	p := jsonpath.New("field").AllowMissingKeys(true)
	if err := p.Parse("{." + field + "}"); err != nil {
		return false
	}
	results, err := p.FindResults(object)
	if err != nil {
		return false
	}
	var found []any
	for _, group := range results {
		for _, value := range group {
			if !value.CanInterface() {
				return false
			}
			found = append(found, value.Interface())
		}
	}
	return len(found) == 1 && reflect.DeepEqual(found[0], want) || reflect.DeepEqual(any(found), want)
}

// isPath reports whether a scenario can contain the path, which has no leading dot.
func isPath(field string) bool {
	return field != "" && !strings.ContainsAny(field, "{}") && jsonpath.New("field").Parse("{."+field+"}") == nil
}

// plain reports whether a value is neither a list, nor a mapping, nor null.
func plain(value any) bool {
	switch value.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// sharedFields returns the keys that have plain values in all items.
func sharedFields(items []any) (all []string) {
	first, _ := items[0].(map[string]any)
	for _, key := range sortedKeys(first) {
		if !slices.ContainsFunc(items, func(item any) bool {
			object, _ := item.(map[string]any)
			return !plain(object[key])
		}) {
			all = append(all, key)
		}
	}
	return all
}

// without returns a copy of a mapping without some keys.
func without(object map[string]any, keys []string) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		if !slices.Contains(keys, key) {
			out[key] = value
		}
	}
	return out
}
