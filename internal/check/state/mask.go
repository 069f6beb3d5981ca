package state

import (
	"path"
	"regexp"
	"sort"
	"strings"
	"sync"
)

// Mask lists the fields that are ignored, or not compared byte by byte. The zero value and
// a nil Mask contain only the built-in rules. Learn adds the fields that differ between
// runs without a fault.
type Mask struct {
	// Configured holds the lines of the scenario's ignore list.
	Configured []string `json:"configured,omitempty"`
	// Learnt holds the learned rules by kind and path.
	Learnt map[string]map[string]Rule `json:"learnt,omitempty"`
	// Scoped holds the learned rules for single objects.
	Scoped Scopes `json:"scoped,omitempty"`
	// Objects holds the canonical names of objects that only some runs have. Scarce holds, for each
	// of these objects, the steps after which only some runs have it.
	Objects []string            `json:"objects,omitempty"`
	Scarce  map[string][]string `json:"scarce,omitempty"`
	// Own holds the controller's own objects of kinds that the cluster maintains.
	Own Own `json:"own,omitempty"`
	// Names holds the patterns of generated names, by kind.
	Names map[string][]NamePattern `json:"names,omitempty"`
	// Seen holds every canonical name with a * from the learning runs, the longest first.
	// Where no World is available, Seen identifies the generated names in a text.
	Seen []string `json:"seen,omitempty"`

	once  sync.Once
	union map[string]map[string]Rule // the rules of all objects by kind
	lines []*line
	seen  *regexp.Regexp
}

// NamePattern is a name with random parts between dashes.
type NamePattern struct {
	Pattern string `json:"pattern"` // "web-*"
	// Not lists names that fit the pattern, but are not random.
	Not []string `json:"not,omitempty"`
	// Shortest is the minimum length of a random part; 0 means the usual minimum.
	Shortest int `json:"shortest,omitempty"`
}

// init compiles the unexported fields.
func (m *Mask) init() {
	m.once.Do(func() {
		for _, text := range m.Configured {
			m.lines = append(m.lines, newLine(text))
		}
		m.union = m.unite()
		if len(m.Seen) > 0 {
			var alternatives []string
			for _, name := range m.Seen {
				alternatives = append(alternatives, strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, `[a-z0-9]{2,}`))
			}
			m.seen = regexp.MustCompile(`\b(?:` + strings.Join(alternatives, "|") + `)\b`)
		}
	})
}

// pathPattern compiles "status.conditions[].message" or "data.*". A * stands for one part of
// the path.
func pathPattern(text string) *regexp.Regexp {
	if text == "" || text == "*" {
		return nil
	}
	text = strings.NewReplacer("[*]", ".[]", "[]", ".[]", "[", ".", "]", "").Replace(text)
	text = strings.ReplaceAll(text, "..", ".")
	pattern := strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `[^.]*`)
	if before, last := strings.CutSuffix(pattern, `[^.]*`); last {
		// The last part may be a key that contains dots, such as app.kubernetes.io/name.
		// It makes no difference that the pattern then also matches fields below a value.
		pattern = before + `.*`
	}
	return regexp.MustCompile("^" + pattern + "$")
}

// rule returns the rule for the field at the path.
func (m *Mask) rule(at place, field string) Rule {
	kind := at.kind
	if rule, ok := ofAll[field]; ok {
		return rule
	}
	if rule, ok := ofKind[kind][field]; ok {
		return rule
	}
	if m == nil {
		return ""
	}
	m.init()
	for _, l := range m.lines {
		if l.path != nil && l.object == "" && matchKind(l.kind, kind) && l.path.MatchString(field) {
			l.matched.Store(true)
			return Ignore
		}
	}
	return m.learnt(at, field)
}

func matchKind(pattern, kind string) bool {
	if ok, err := path.Match(pattern, kind); err == nil && ok {
		return true
	}
	bare, _, _ := strings.Cut(kind, ".")
	return pattern == bare
}

// ignores reports whether an object is excluded from the comparison after a step, alone or with all
// objects of its kind.
func (m *Mask) ignores(ref Ref, object Object, key, step string) bool {
	if isBookkeeping(ref, object) && !m.owns(key) {
		return true
	}
	if m == nil {
		return false
	}
	m.init()
	for _, l := range m.lines {
		if l.path == nil && l.matchesObject(ref.String(), nameOf(key)) {
			l.matched.Store(true)
			return true
		}
	}
	return m.isScarce(key, step)
}

// WholeObject marks an object in Fields that is not compared at all.
const WholeObject = " (the whole object)"

// Fields describes the fields that differed between runs without a fault.
func (m *Mask) Fields() []string {
	if m == nil {
		return nil
	}
	var fields []string
	m.narrow(func(where, step, field string, rule Rule) {
		text := where + " " + display(field)
		if step != "" {
			text += " after step " + step
		}
		fields = append(fields, text+remark[rule])
	})
	for _, object := range m.Objects {
		fields = append(fields, object+WholeObject)
	}
	for kind, patterns := range m.Names {
		for _, p := range patterns {
			fields = append(fields, kind+" metadata.name ("+p.Pattern+")")
		}
	}
	sort.Strings(fields)
	return fields
}

// remark describes, by rule, what is still compared in a masked field.
var remark = map[Rule]string{
	Set:    " (order)",
	Random: " (compared only with other places that hold the same value)",
	Keys:   " (keys)",
	Type:   "",
	Ignore: "",
}

// display formats a path for human readers. display writes list elements without a dot, and puts
// keys that contain dots into brackets where it can recognize them.
func display(field string) string {
	field = strings.ReplaceAll(field, ".[", "[")
	for _, parent := range []string{"metadata.annotations.", "metadata.labels.", "data.", "stringData."} {
		before, key, found := strings.Cut(field, parent)
		if found && (before == "" || strings.HasSuffix(before, ".")) && strings.ContainsAny(key, "./") {
			return before + strings.TrimSuffix(parent, ".") + "[" + key + "]"
		}
	}
	return field
}

// OnlyIgnored reports whether a change concerns only fields that the mask's ignore list names. The
// mask must have no learned rules. OnlyIgnored returns false if the mask has no ignore list.
// OnlyIgnored is called for every change, so it must not compile the list again.
func (m *Mask) OnlyIgnored(c *Change) bool {
	if m == nil || len(m.Configured) == 0 {
		return false
	}
	return !m.Alters(c) && (*Mask)(nil).Alters(c)
}

// Alters reports whether a change concerns anything that is compared.
func (m *Mask) Alters(c *Change) bool {
	before, after := Snapshot{}, Snapshot{}
	if c.Before != nil {
		before[c.Ref] = c.Before
	}
	if c.After != nil {
		after[c.Ref] = c.After
	}
	return len(m.Canonical(before).Diff(m.Canonical(after))) > 0
}
