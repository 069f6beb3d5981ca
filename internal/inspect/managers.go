package inspect

import (
	"encoding/json"
	"slices"
	"strings"
)

// Manager is a field manager of an object, from its managedFields.
type Manager struct {
	Name        string `json:"name"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	// Time is the time of the last change, as the server recorded it.
	Time string `json:"time,omitempty"`
	// Fields holds the paths of the fields that the manager owns.
	Fields []string `json:"fields"`
}

// Managers returns the field managers of the last version of an object.
func (s *Session) Managers(ref Ref) []Manager {
	managers := []Manager{}
	o := s.objects[ref]
	if o == nil {
		return managers
	}
	v, found := o.latest()
	if found && v.deleted {
		v, found = o.before(v.rv)
	}
	if !found {
		return managers
	}
	for _, entry := range managedFields(s.content(v)) {
		text := func(key string) string { t, _ := entry[key].(string); return t }
		m := Manager{text("manager"), text("operation"), text("subresource"), text("time"), []string{}}
		fields, _ := entry["fieldsV1"].(map[string]any)
		owned("", fields, &m.Fields)
		slices.Sort(m.Fields)
		managers = append(managers, m)
	}
	return managers
}

func managedFields(content map[string]any) (entries []map[string]any) {
	m, _ := content["metadata"].(map[string]any)
	list, _ := m["managedFields"].([]any)
	for _, item := range list {
		if entry, isMap := item.(map[string]any); isMap {
			entries = append(entries, entry)
		}
	}
	return entries
}

// owned collects the paths in a set of fields.
func owned(path string, fields map[string]any, into *[]string) {
	leaf := true
	for key, below := range fields {
		var next string
		switch kind, rest, _ := strings.Cut(key, ":"); kind {
		case "f":
			next = join(path, rest)
		case "k":
			next = path + "[" + keyText(rest) + "]"
		case "v":
			next = path + "[" + strings.Trim(rest, `"`) + "]"
		default:
			continue // "." stands for the element itself
		}
		leaf = false
		inner, _ := below.(map[string]any)
		owned(next, inner, into)
	}
	if leaf && path != "" {
		*into = append(*into, path)
	}
}

// keyText returns the values in the key of a list element: {"type":"Ready"} is Ready.
func keyText(key string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(key), &fields) != nil {
		return key
	}
	var values []string
	for _, value := range fields {
		values = append(values, strings.Trim(string(encode(value)), `"`))
	}
	slices.Sort(values)
	return strings.Join(values, ",")
}

// authorOf returns the manager that owns a field. If several managers own the field, or none
// because it was removed, authorOf returns the manager that changed something last.
func authorOf(content map[string]any, steps []step) string {
	name, newest, owns := "", "", false
	for _, entry := range managedFields(content) {
		fields, _ := entry["fieldsV1"].(map[string]any)
		manager, _ := entry["manager"].(string)
		at, _ := entry["time"].(string)
		has := contains(fields, steps)
		if has && !owns || has == owns && at >= newest {
			name, newest, owns = manager, at, has
		}
	}
	return name
}

// contains reports whether a set of fields contains a path.
func contains(fields map[string]any, steps []step) bool {
	for _, s := range steps {
		if s.id != "" {
			fields = element(fields, s)
		} else {
			fields, _ = fields["f:"+s.field].(map[string]any)
		}
		if fields == nil {
			return false
		}
		if len(fields) == 0 {
			return true // an atomic value, which is owned as a whole
		}
	}
	return true
}

func element(fields map[string]any, s step) map[string]any {
	for key, below := range fields {
		text, isKey := strings.CutPrefix(key, "k:")
		if !isKey {
			continue
		}
		var parts map[string]any
		if json.Unmarshal([]byte(text), &parts) == nil && idOf(parts, s.field) == s.id {
			inner, _ := below.(map[string]any)
			return inner
		}
	}
	return nil
}
