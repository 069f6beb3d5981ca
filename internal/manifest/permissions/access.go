package permissions

import (
	"slices"
	"strings"
)

// access is the meaning of a marker: verbs on resources, or on paths outside the API.
type access struct {
	groups, resources, names, paths, verbs []string
	namespace                              string
}

func (a access) equal(b access) bool {
	return slices.Equal(a.groups, b.groups) && slices.Equal(a.resources, b.resources) && slices.Equal(a.names, b.names) &&
		slices.Equal(a.paths, b.paths) && slices.Equal(a.verbs, b.verbs) && a.namespace == b.namespace
}

// isFor reports whether both are equal apart from their verbs.
func (a access) isFor(b access) bool {
	a.verbs = b.verbs
	return a.equal(b)
}

// grants reports whether the marker grants the permission. Like every comparison in this
// package, it compares patterns such as * as text, because a role shows them as they are.
func (a access) grants(p Permission) bool {
	if p.Namespace != a.namespace || !slices.Contains(a.verbs, p.Verb) {
		return false
	}
	if p.Resource == "" {
		return slices.Contains(a.paths, p.Path)
	}
	return slices.Contains(a.groups, p.Group) && slices.Contains(a.resources, p.Resource)
}

// without returns the rules that are left when permissions are removed. It returns several rules if
// the resources no longer have the same verbs.
func (a access) without(unused []Permission) (rules []access) {
	if len(a.resources) == 0 {
		return []access{a}
	}
	for _, resource := range a.resources {
		for _, group := range a.groups {
			left := a
			left.groups, left.resources = []string{group}, []string{resource}
			left.verbs = slices.DeleteFunc(slices.Clone(a.verbs), func(verb string) bool {
				return slices.Contains(unused, Permission{Verb: verb, Group: group, Resource: resource, Namespace: a.namespace})
			})
			if len(left.verbs) > 0 {
				rules = append(rules, left)
			}
		}
	}
	return joined(rules)
}

// joined joins rules for one resource of one group each: first resources of the same group, then
// groups with the same resources.
func joined(rules []access) []access {
	rules = join(rules, func(a, b access) bool { a.resources = b.resources; return a.equal(b) },
		func(to *access, from access) { to.resources = append(to.resources, from.resources...) })
	return join(rules, func(a, b access) bool { a.groups = b.groups; return a.equal(b) },
		func(to *access, from access) { to.groups = append(to.groups, from.groups...) })
}

func join(rules []access, alike func(a, b access) bool, add func(to *access, from access)) (out []access) {
	for _, rule := range rules {
		if i := slices.IndexFunc(out, func(other access) bool { return alike(other, rule) }); i >= 0 {
			add(&out[i], rule)
			continue
		}
		rule.groups, rule.resources = slices.Clone(rule.groups), slices.Clone(rule.resources)
		out = append(out, rule)
	}
	return out
}

// byResource returns one rule for each resource or path.
func byResource(permissions []Permission) (rules []access) {
	for _, p := range permissions {
		rule := access{groups: []string{p.Group}, resources: []string{p.Resource}, namespace: p.Namespace}
		if p.Resource == "" {
			rule = access{paths: []string{p.Path}}
		}
		verbs := []string{p.Verb}
		if p.Verb == "list" || p.Verb == "watch" {
			// A cache needs both verbs, and sends the second request only after the first has
			// succeeded.
			verbs = []string{"list", "watch"}
		}
		i := slices.IndexFunc(rules, rule.isFor)
		if i < 0 {
			i, rules = len(rules), append(rules, rule)
		}
		rules[i].verbs = merged(rules[i].verbs, verbs)
	}
	return rules
}

// usual lists the verbs in the order in which people write them.
var usual = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// merged adds verbs to a list. If the list was in the usual order, it stays in this order.
func merged(list, more []string) []string {
	order := func(verb string) int {
		if i := slices.Index(usual, verb); i >= 0 {
			return i
		}
		return len(usual)
	}
	compare := func(a, b string) int { return order(a) - order(b) }
	list, sorted := slices.Clone(list), slices.IsSortedFunc(list, compare)
	for _, verb := range more {
		if !slices.Contains(list, verb) {
			list = append(list, verb)
		}
	}
	if sorted {
		slices.SortStableFunc(list, compare)
	}
	return list
}

// String returns the marker.
func (a access) String() string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{{"groups", a.groups}, {"resources", a.resources}, {"resourceNames", a.names}, {"urls", a.paths}, {"verbs", a.verbs}} {
		if len(part.values) > 0 {
			parts = append(parts, part.name+"="+list(part.values))
		}
	}
	if a.namespace != "" {
		parts = append(parts, "namespace="+a.namespace)
	}
	return "// +" + markerName + ":" + strings.Join(parts, ",")
}

// list returns values as they are written in a marker.
func list(values []string) string {
	quoted := slices.Clone(values)
	for i, value := range quoted {
		if value == "" {
			quoted[i] = `""`
		}
	}
	return strings.Join(quoted, ";")
}
