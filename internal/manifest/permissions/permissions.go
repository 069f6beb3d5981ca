// Package permissions edits the RBAC markers of a controller, +kubebuilder:rbac, so that they
// grant more or less.
//
// Only the lines of markers change. Everything else in the files, and the way in which a marker
// is written, stays as it is.
package permissions

import (
	"fmt"
	"slices"
	"strings"
)

// A Permission is a verb on a resource, or on a path outside the API.
type Permission struct {
	Verb  string
	Group string
	// Resource includes the subresource, such as pods/log.
	Resource string
	Path     string
	// Namespace is the namespace of the Role that grants the permission; it is empty for a
	// ClusterRole.
	Namespace string
}

func (p Permission) String() string {
	if p.Resource == "" {
		return p.Verb + " " + p.Path
	}
	name, sub, found := strings.Cut(p.Resource, "/")
	if p.Group != "" {
		name += "." + p.Group
	}
	if found {
		name += "/" + sub
	}
	return p.Verb + " " + name
}

// A Change is a marker that was changed, added or deleted.
type Change struct {
	File string
	// Line is the number of the line in the old file. An added marker follows this line.
	Line int
	// Old is empty if markers were added, and New if the marker was deleted.
	Old string
	New []string
}

// Files holds the Go files with the markers of one role.
type Files struct{ files []*file }

// Changes lists what has changed since the files were read.
func (f *Files) Changes() (changes []Change) {
	for _, file := range f.files {
		for _, m := range file.markers {
			if c := m.change(); c.Old != "" || len(c.New) > 0 {
				changes = append(changes, c)
			}
		}
	}
	return changes
}

// Contents returns the content of the files that have changed.
func (f *Files) Contents() map[string][]byte {
	changed := map[string][]byte{}
	for _, file := range f.files {
		if slices.ContainsFunc(file.markers, (*marker).changed) {
			changed[file.name] = file.content()
		}
	}
	return changed
}

// Had reports whether a marker granted the permission when the files were read.
func (f *Files) Had(p Permission) bool {
	return slices.ContainsFunc(f.files, func(file *file) bool {
		return slices.ContainsFunc(file.markers, func(m *marker) bool { return m.grants(p) })
	})
}

// Line returns the file and the line of the marker that granted a permission when the files were
// read, in any namespace, or else of a marker that granted another verb on the same resource. It
// returns 0 if there is none.
func (f *Files) Line(p Permission) (file string, line int) {
	for _, anyVerb := range []bool{false, true} {
		for _, each := range f.files {
			for _, m := range each.markers {
				p.Namespace = m.namespace
				asked := p
				if anyVerb && len(m.verbs) > 0 {
					asked.Verb = m.verbs[0]
				}
				if m.grants(asked) {
					return each.name, m.line + 1
				}
			}
		}
	}
	return "", 0
}

// Remove removes permissions from the markers.
func (f *Files) Remove(unused []Permission) {
	for _, file := range f.files {
		for _, m := range file.markers {
			var rules []access
			for _, rule := range m.rules {
				rules = append(rules, rule.without(unused)...)
			}
			m.rules = rules
		}
	}
}

// Add adds permissions to the marker that grants, or granted, something on exactly the same
// resource, or else adds a marker. It fails if there is no marker beside which a new one could be
// added.
func (f *Files) Add(missing []Permission) error {
	for _, wanted := range byResource(missing) {
		if m, i := f.find(wanted.isFor); m != nil {
			m.rules[i].verbs = merged(m.rules[i].verbs, wanted.verbs)
			continue
		}
		if m := f.deleted(wanted); m != nil {
			again := m.access
			again.verbs = wanted.verbs
			m.rules = []access{again}
			continue
		}
		m := f.beside(wanted)
		if m == nil {
			return fmt.Errorf("there is no +%s marker yet; add this one above the controller: %s", markerName, wanted)
		}
		m.rules = append(m.rules, wanted)
	}
	return nil
}

// deleted returns a marker for the same resource that no longer grants anything.
func (f *Files) deleted(rule access) *marker {
	for _, file := range f.files {
		for _, m := range file.markers {
			if len(m.rules) == 0 && m.isFor(rule) {
				return m
			}
		}
	}
	return nil
}

// find returns the last rule for which the condition holds.
func (f *Files) find(condition func(access) bool) (*marker, int) {
	for _, file := range slices.Backward(f.files) {
		for _, m := range slices.Backward(file.markers) {
			for i, rule := range slices.Backward(m.rules) {
				if condition(rule) {
					return m, i
				}
			}
		}
	}
	return nil, 0
}

// beside returns the marker after which a rule is added: the last one of the same group, or
// else the last one.
func (f *Files) beside(rule access) *marker {
	m, _ := f.find(func(other access) bool {
		return slices.Equal(other.groups, rule.groups) && other.namespace == rule.namespace
	})
	if m == nil && len(f.files) > 0 {
		markers := f.files[len(f.files)-1].markers
		m = markers[len(markers)-1]
	}
	return m
}
