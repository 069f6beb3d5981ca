package permissions

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/rbac"
)

const markerName = "kubebuilder:rbac"

// file is a Go file with markers.
type file struct {
	name    string
	lines   []string
	markers []*marker // in the order of their lines
}

// marker is a line with a marker.
type marker struct {
	access // the meaning of the marker as it was read
	file   *file
	line   int // index in the lines of the file
	// rules holds the rules that replace the marker.
	rules []access
}

// Read reads Go files. A file that does not parse is an error.
func Read(names []string) (*Files, error) {
	all := &Files{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(string(data), markerName) {
			continue
		}
		f, err := parse(name, data)
		if err != nil {
			return nil, err
		}
		if len(f.markers) > 0 {
			all.files = append(all.files, f)
		}
	}
	return all, nil
}

// comment matches a line comment with a marker. Go's syntax decides which lines are comments.
var comment = regexp.MustCompile(`^//\s*(\+` + markerName + `:.*)$`)

func parse(name string, data []byte) (*file, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, lines: strings.Split(string(data), "\n")}
	for _, group := range syntax.Comments {
		for _, c := range group.List {
			m := comment.FindStringSubmatch(strings.TrimRight(c.Text, "\r"))
			if m == nil {
				continue
			}
			line := set.PositionFor(c.Slash, false).Line
			value, err := rbac.RuleDefinition.Parse(m[1])
			rule, ok := value.(rbac.Rule)
			if err != nil || !ok {
				return nil, fmt.Errorf("%s:%d: the marker is wrong (%w); run koboshi generate, which explains such mistakes", name, line, err)
			}
			if rule.RoleName != "" {
				continue // the marker belongs to another role
			}
			was := meaning(rule)
			f.markers = append(f.markers, &marker{access: was, file: f, line: line - 1, rules: []access{was}})
		}
	}
	return f, nil
}

func meaning(r rbac.Rule) access {
	groups := slices.Clone(r.Groups)
	for i, group := range groups {
		if group == "core" { // controller-tools' name for the group without a name
			groups[i] = ""
		}
	}
	return access{groups: groups, resources: r.Resources, names: r.ResourceNames, paths: r.URLs, verbs: r.Verbs, namespace: r.Namespace}
}

// changed reports whether the meaning of the marker has changed.
func (m *marker) changed() bool { return !slices.EqualFunc(m.rules, []access{m.access}, access.equal) }

// change describes what has changed. It is empty if nothing has changed.
func (m *marker) change() Change {
	c := Change{File: m.file.name, Line: m.line + 1}
	if !m.changed() {
		return c
	}
	for i, rule := range m.rules {
		if i > 0 || !rule.equal(m.access) {
			c.New = append(c.New, strings.TrimSpace(m.write(rule)))
		}
	}
	if len(m.rules) == 0 || !m.rules[0].equal(m.access) {
		c.Old = strings.TrimSpace(m.file.lines[m.line])
	}
	return c
}

// write returns a line with a rule. Arguments that the marker and the rule have in common stay as
// they are written in the marker.
func (m *marker) write(a access) string {
	line := m.file.lines[m.line]
	if !slices.Equal(a.names, m.names) || !slices.Equal(a.paths, m.paths) || a.namespace != m.namespace {
		indent, _, _ := strings.Cut(line, "//")
		return indent + a.String()
	}
	for _, part := range []struct {
		name     string
		old, new []string
	}{{"groups", m.groups, a.groups}, {"resources", m.resources, a.resources}, {"verbs", m.verbs, a.verbs}} {
		if !slices.Equal(part.old, part.new) {
			line = replaceValue(line, part.name, list(part.new))
		}
	}
	return line
}

// replaceValue replaces the value of an argument, which may be in quotes or braces.
func replaceValue(line, name, value string) string {
	argument := regexp.MustCompile(`[:,]\s*` + name + `\s*=\s*(\{[^}]*\}|(?:"[^"]*"|` + "`[^`]*`" + `|[^,"` + "`" + `])*)`)
	at := argument.FindStringSubmatchIndex(line)
	if at == nil {
		return line
	}
	return line[:at[2]] + value + line[at[3]:]
}

// content returns the file with the markers as they are now.
func (f *file) content() []byte {
	lines := slices.Clone(f.lines)
	for _, m := range slices.Backward(f.markers) {
		if !m.changed() {
			continue
		}
		var written []string
		for _, rule := range m.rules {
			written = append(written, m.write(rule))
		}
		lines = slices.Replace(lines, m.line, m.line+1, written...)
	}
	return []byte(strings.Join(lines, "\n"))
}
