package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Body is a hash of what a request writes, without what differs from run to run.
// The request may be an object or a part of one; a nil body gives "".
//
// It knows nothing of the other objects in the cluster, so what it tells apart is
// a little less than a World does: all UIDs are alike, all random values, and all
// values of Secrets, whose hashes have another key in each check.
func Body(m *Mask, target trace.Target, body map[string]any) string {
	if len(body) == 0 {
		return ""
	}
	kind, _ := body["kind"].(string)
	c := canonicaliser{m: m, kind: kind}
	if kind != "" && target.Group != "" {
		c.kind = kind + "." + target.Group
	}
	if kind == "" && m != nil {
		c.kinds = m.kindsOf(target)
	}
	data, err := json.Marshal(c.object(body))
	if err != nil {
		return "" // no JSON: then any body is like any other
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

func isRedacted(v any) bool {
	text, is := v.(string)
	return is && trace.IsRedacted(text)
}

// kindsOf are the kinds with learnt rules that a resource could be of: a patch
// does not name its kind.
func (m *Mask) kindsOf(target trace.Target) []string {
	var kinds []string
	for kind := range m.Learnt {
		bare, group, _ := strings.Cut(kind, ".")
		if group == target.Group && strings.HasPrefix(strings.ToLower(bare), singular(target.Resource)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// singular is the beginning that a plural has in common with its kind in lower
// case: "polic" of "policies".
func singular(plural string) string {
	for _, ending := range []string{"ies", "es", "s"} {
		if bare, ok := strings.CutSuffix(plural, ending); ok {
			return bare
		}
	}
	return plural
}

// replaceSeen puts the canonical form for the generated names that learning saw.
func (m *Mask) replaceSeen(text string) string {
	if m == nil || len(m.Seen) == 0 {
		return text
	}
	m.init()
	return m.seen.ReplaceAllStringFunc(text, func(found string) string {
		for _, name := range m.Seen {
			if (NamePattern{Pattern: name}).matches(found) {
				return name
			}
		}
		return found
	})
}

// matches is fits for a name whose fixed parts may have dashes too.
func (p NamePattern) matches(name string) bool {
	for i, part := range strings.Split(p.Pattern, "*") {
		at := strings.Index(name, part)
		if at < 0 || i == 0 && at != 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return true
}

// Name is "namespace/name" of an object at the moment of a request, in the form
// that it has in every run; name may end in * if the server is to make it up.
func (m *Mask) Name(namespace, name, _ string) string {
	canonical := func(s string) string {
		if m == nil || strings.HasSuffix(s, "*") {
			return s
		}
		for _, p := range m.allNames() {
			if p.fits(s) {
				return p.Pattern
			}
		}
		return m.replaceSeen(uuidPattern.ReplaceAllString(s, "uid"))
	}
	if namespace == "" {
		return canonical(name)
	}
	return canonical(namespace) + "/" + canonical(name)
}

func (m *Mask) allNames() []NamePattern {
	var all []NamePattern
	for _, kind := range sortedKeys(m.Names) {
		all = append(all, m.Names[kind]...)
	}
	return all
}
