package state

import (
	"slices"
	"strings"
)

// These are placeholders for values that differ in each run.
const (
	aTime    = "time"
	aHash    = "hash"
	current  = "the current generation"
	outdated = "an earlier generation"
)

// canonicaliser makes one object canonical. labels is nil where the other objects are
// unknown, as in the body of a request.
type canonicaliser struct {
	m          *Mask
	at         place
	labels     *Labels
	generation float64
	// name is the canonical name without the kind, and parts is the path of the value. The
	// ignore list of a scenario may name both.
	name, parts string
	// kinds lists the kinds that the object may have if its kind is unknown.
	kinds []string
}

// object returns the canonical content of an object.
func (c canonicaliser) object(object Object) any {
	content, keep := c.value("", "", map[string]any(object))
	if !keep {
		return map[string]any{}
	}
	return content
}

func (c canonicaliser) rule(field string) Rule {
	if c.at.kind != "" || len(c.kinds) == 0 {
		return c.m.rule(c.at, field)
	}
	var strictest Rule
	for _, kind := range c.kinds {
		if rule := c.m.rule(place{kind: kind}, field); strictness[rule] > strictness[strictest] {
			strictest = rule
		}
	}
	return strictest
}

// value returns the canonical value at a path. keep is false if the value is not compared.
func (c canonicaliser) value(field, key string, v any) (out any, keep bool) {
	rule := c.rule(field)
	switch {
	case v == nil || rule == Ignore || c.m.ignoresField(c.at.kind, c.name, c.parts):
		return nil, false
	case rule == Type || strings.HasSuffix(strings.ToLower(key), "resourceversion"):
		return "some " + jsonType(v), true
	case hashes[key], c.labels == nil && isRedacted(v):
		return aHash, true
	case key == "observedGeneration":
		return c.observed(field, v), true
	}
	switch typed := v.(type) {
	case map[string]any:
		return c.mapping(field, typed, rule)
	case []any:
		return c.list(field, typed, rule)
	case string:
		return c.text(field, typed, rule), true
	case bool:
		return typed, true
	}
	return number(v), true
}

// observed replaces a generation in the status with one of the constants current and outdated,
// depending on the generation of the object. observed replaces the generation of another object
// with a fixed text, because that number depends on how many times the other object was written.
func (c canonicaliser) observed(field string, v any) any {
	switch {
	case c.labels == nil || field != "status.observedGeneration" && field != "status.conditions.[].observedGeneration":
		return "some number"
	case number(v) == c.generation:
		return current
	}
	return outdated
}

func (c canonicaliser) mapping(field string, m map[string]any, rule Rule) (any, bool) {
	out := map[string]any{}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if strings.HasPrefix(key, Mark) {
			continue
		}
		value, keep := c.in(key).value(join(field, key), key, m[key])
		if !keep {
			continue
		}
		name := c.replace(key)
		for _, taken := out[name]; taken; _, taken = out[name] {
			name += "'" // two generated keys have become equal
		}
		out[name] = value
	}
	if rule == Keys {
		return values(out), true
	}
	// A missing map equals an empty one.
	if len(out) == 0 && (field == "metadata.annotations" || field == "metadata.labels" || field == "status") {
		return nil, false
	}
	return out, true
}

func values(m map[string]any) []any {
	out := make([]any, 0, len(m))
	for _, value := range m {
		out = append(out, value)
	}
	sortByJSON(out)
	return out
}

func (c canonicaliser) list(field string, list []any, rule Rule) (any, bool) {
	out := make([]any, 0, len(list))
	id := identity(list)
	for _, item := range list {
		if id != "" && c.rule(element(field, item.(map[string]any)[id])) == Ignore {
			continue
		}
		if s, ok := item.(string); ok && strings.HasPrefix(s, Mark) && field == "metadata.finalizers" {
			continue
		}
		if value, keep := c.inElement(item, id).value(join(field, "[]"), "", item); keep {
			out = append(out, value)
		}
	}
	if rule == Set || conditions(field, out) {
		sortByJSON(out)
	}
	if len(out) == 0 && (field == "metadata.finalizers" || field == "metadata.ownerReferences") {
		return nil, false
	}
	return out, true
}

// conditions reports whether a list holds conditions. Conditions are identified by their
// type, and their order depends on which one was set first.
func conditions(field string, list []any) bool {
	if field != "conditions" && !strings.HasSuffix(field, ".conditions") {
		return false
	}
	return identity(list) == "type"
}

func (c canonicaliser) text(field, s string, rule Rule) any {
	if uuidPattern.FindString(s) == s && s != "" {
		return c.uuid(field, s)
	}
	s = timePattern.ReplaceAllString(s, aTime)
	if rule == Random {
		if c.labels == nil {
			return "random"
		}
		return random{raw: s}
	}
	return c.replace(s)
}

// uuid replaces the UID of a known object with its name, and marks any other UUID as
// random.
func (c canonicaliser) uuid(field, s string) any {
	if c.labels == nil {
		return "uid"
	}
	if name := c.labels.uid(s); name != "" {
		return name
	}
	if field == "metadata.ownerReferences.[].uid" {
		return "uid:unknown"
	}
	return random{raw: s, uid: true}
}

// replace replaces generated names and UIDs with names that are the same in every run.
func (c canonicaliser) replace(s string) string {
	if strings.Contains(s, "kube-api-access-") {
		s = tokenVolume.ReplaceAllString(s, "kube-api-access-*")
	}
	if c.labels == nil {
		return c.m.replaceSeen(uuidPattern.ReplaceAllString(s, "uid"))
	}
	return c.labels.replace(c.labels.replaceUIDs(s))
}

func jsonType(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case string, random:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "nothing"
	}
	return "number"
}

// element returns the path of one list element that has a name.
func element(field string, id any) string {
	s, _ := id.(string)
	return join(field, "["+s+"]")
}

// identity returns the key that identifies the elements of a list, if there is one.
func identity(list []any) string {
	for _, key := range []string{"name", "type", "key", "mountPath", "id", "uid"} {
		if len(list) > 0 && identifies(list, key) {
			return key
		}
	}
	return ""
}

func identifies(list []any, key string) bool {
	seen := map[string]bool{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		id, _ := m[key].(string)
		if id == "" || seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}
