package state

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Labels gives objects the canonical names that identify them across runs: "Kind.group
// namespace/name", where * stands for a generated part.
//
//	name of the owner + "-*"    a ReplicaSet of a Deployment, a Job of a CronJob
//	generateName + "*"          named by the server; contains the canonical name of its owner
//	a learnt pattern            named at random by the controller
//	the name itself             with generated names and UIDs in it replaced
type Labels struct {
	m     *Mask
	byUID map[string]named
	names map[Ref]string
	space map[string]string // generated namespaces
	texts []replacement     // generated names and addresses, the longest first
}

type named struct {
	ref    Ref
	object Object
}

type replacement struct{ from, to string }

// Label names all objects that ever existed in the history.
func (m *Mask) Label(h History) *Labels {
	var all []named
	for ref, object := range h.Baseline {
		all = append(all, named{ref, object})
	}
	for _, c := range h.Changes {
		if c.After != nil {
			all = append(all, named{c.Ref, c.After})
		}
	}
	return m.label(all)
}

func (m *Mask) labelSnapshot(s Snapshot) *Labels {
	var all []named
	for ref, object := range s {
		all = append(all, named{ref, object})
	}
	return m.label(all)
}

func (m *Mask) label(all []named) *Labels {
	l := &Labels{m: m, byUID: map[string]named{}, names: map[Ref]string{}, space: map[string]string{}}
	for _, n := range all {
		if uid := n.object.Metadata("uid"); uid != "" {
			l.byUID[uid] = n
		}
	}
	found := map[string]string{}
	for _, n := range all {
		name := l.generated(n, 0)
		if name == "" {
			continue
		}
		l.names[n.ref] = name
		if len(n.ref.Name) >= 4 {
			found[n.ref.Name] = name
		}
		if n.ref.Kind == "Namespace" && n.ref.Group == "" {
			l.space[n.ref.Name] = name
		}
	}
	l.sortTexts(found)
	// A name may contain a generated name: the name of a Pod contains the name of its StatefulSet.
	for _, n := range all {
		if l.names[n.ref] != "" {
			continue
		}
		if name := l.replace(n.ref.Name); name != n.ref.Name {
			l.names[n.ref] = name
			found[n.ref.Name] = name
		}
	}
	for _, n := range all {
		for _, ip := range addresses(n) {
			found[ip] = "ip:" + l.Of(n.ref)
		}
	}
	l.sortTexts(found)
	return l
}

func (l *Labels) sortTexts(found map[string]string) {
	l.texts = l.texts[:0]
	for from, to := range found {
		l.texts = append(l.texts, replacement{from, to})
	}
	sort.Slice(l.texts, func(i, j int) bool {
		a, b := l.texts[i].from, l.texts[j].from
		return len(a) > len(b) || len(a) == len(b) && a < b
	})
}

// generated returns the canonical name of an object whose name was generated, and "" for
// all other objects.
func (l *Labels) generated(n named, depth int) string {
	if n.object == nil || depth > 8 {
		return ""
	}
	prefix := n.object.Metadata("generateName")
	if prefix != "" && !strings.HasPrefix(n.ref.Name, prefix) {
		prefix = ""
	}
	for _, owner := range n.object.Owners() {
		if owner.Controller && owner.Kind == "StatefulSet" && n.ref.Kind == "Pod" {
			return "" // its Pods have numbers, although they have a generateName
		}
		parent, known := l.byUID[owner.UID]
		if !known || !owner.Controller {
			continue
		}
		name := l.generated(parent, depth+1)
		if name == "" {
			name = parent.ref.Name
		}
		if fromTemplate(n.ref, parent.ref) {
			return name + "-*"
		}
		if prefix != "" && strings.HasPrefix(prefix, parent.ref.Name) {
			return name + strings.TrimPrefix(prefix, parent.ref.Name) + "*"
		}
	}
	if prefix != "" {
		return prefix + "*"
	}
	if name := l.m.pattern(n.ref.String(), n.ref.Name); name != n.ref.Name {
		return name
	}
	return ""
}

// fromTemplate reports whether upstream named the child after a hash or the time.
func fromTemplate(child, parent Ref) bool {
	switch child.Kind + " " + parent.Kind {
	case "ReplicaSet Deployment", "ControllerRevision StatefulSet", "ControllerRevision DaemonSet", "Job CronJob":
		return true
	}
	return false
}

// pattern returns the learned pattern that a name fits, or the name itself if it fits no
// pattern.
func (m *Mask) pattern(kind, name string) string {
	if m == nil {
		return name
	}
	for _, p := range m.Names[kind] {
		if p.fits(name) {
			return p.Pattern
		}
	}
	return name
}

func (p NamePattern) fits(name string) bool {
	if slices.Contains(p.Not, name) {
		return false
	}
	want, got := strings.Split(p.Pattern, "-"), strings.Split(name, "-")
	if len(want) != len(got) {
		return false
	}
	least := cmp.Or(p.Shortest, shortestRandom)
	for i := range want {
		if want[i] == "*" && len(got[i]) >= least || want[i] == got[i] {
			continue
		}
		return false
	}
	return true
}

// addresses returns the IP addresses that the cluster has assigned to an object.
func addresses(n named) []string {
	var found []string
	collect := func(v any) {
		if s, ok := v.(string); ok && s != "" && s != "None" {
			found = append(found, s)
		}
	}
	switch n.ref.String() {
	case "Pod":
		status, _ := n.object["status"].(map[string]any)
		collect(status["podIP"])
	case "Service":
		spec, _ := n.object["spec"].(map[string]any)
		collect(spec["clusterIP"])
	}
	return found
}

// Of returns the canonical name of an object.
func (l *Labels) Of(ref Ref) string {
	kind := ref.String()
	name := l.names[ref]
	if name == "" {
		name = l.replaceUIDs(ref.Name)
	}
	if ref.Namespace == "" {
		return kind + " " + name
	}
	space := ref.Namespace
	if s := l.space[space]; s != "" {
		space = s
	}
	return kind + " " + space + "/" + name
}

// uid returns the replacement for a UID in a world, or "" if no object has the UID.
func (l *Labels) uid(uid string) string {
	n, ok := l.byUID[uid]
	if !ok {
		return ""
	}
	return "uid:" + l.Of(n.ref)
}

// replaceUIDs replaces the UID of each known object with the object's name, and any other
// UID with "uid:unknown".
func (l *Labels) replaceUIDs(text string) string {
	if len(text) < 36 {
		return text
	}
	return uuidPattern.ReplaceAllStringFunc(text, func(uid string) string {
		if n, ok := l.byUID[uid]; ok && n.ref.Name != text {
			return "uid:" + l.Of(n.ref)
		}
		return "uid:unknown"
	})
}

// replace replaces the generated names and addresses in a text with canonical ones.
func (l *Labels) replace(text string) string {
	for _, r := range l.texts {
		if len(text) >= len(r.from) && strings.Contains(text, r.from) {
			text = replaceWhole(text, r.from, r.to)
		}
	}
	return text
}

// replaceWhole replaces occurrences that are not next to a letter or digit.
func replaceWhole(text, from, to string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, from)
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := i + len(from)
		whole := (i == 0 || !alphanumeric(text[i-1])) && (end == len(text) || !alphanumeric(text[end]))
		out.WriteString(text[:i])
		if whole {
			out.WriteString(to)
		} else {
			out.WriteString(from)
		}
		text = text[end:]
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Find returns the objects of a snapshot that have the given canonical name. The name is
// written as in fault.Fault ("Kind.group/namespace/name") or as in a Difference
// ("Kind.group namespace/name"). If the name is generated, several objects may have it.
func (m *Mask) Find(s Snapshot, target string) []Ref {
	if !strings.Contains(target, " ") {
		kind, name, _ := strings.Cut(target, "/")
		target = kind + " " + strings.TrimPrefix(name, "/")
	}
	l := m.labelSnapshot(s)
	var found []Ref
	for ref, object := range s {
		if object != nil && l.Of(ref) == target {
			found = append(found, ref)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		return found[i].Namespace+"/"+found[i].Name < found[j].Namespace+"/"+found[j].Name
	})
	return found
}
