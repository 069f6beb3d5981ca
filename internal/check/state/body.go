package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Body returns a hash of the body of a write, without the parts that differ between runs.
// The body may be an object or a part of one. For a nil body, Body returns "".
//
// Body has no information about the other objects in the cluster, so unlike a World, it treats all
// UIDs as equal, and all random values as equal. Body also treats all values of Secrets as equal,
// because each check hashes them with a different key.
func Body(m *Mask, target trace.Target, body map[string]any) string {
	if len(body) == 0 {
		return ""
	}
	kind, _ := body["kind"].(string)
	c := canonicaliser{m: m, at: place{kind: kind}}
	if kind != "" && target.Group != "" {
		c.at.kind = kind + "." + target.Group
	}
	if kind == "" && m != nil {
		c.kinds = m.kindsOf(target)
	}
	if m != nil && len(m.Configured) > 0 {
		c.name = m.Name(target.Namespace, cmp.Or(target.Name, Object(body).Metadata("name")), target.Resource)
	}
	data, err := json.Marshal(c.object(body))
	if err != nil {
		return "" // it is not JSON, and such bodies are not distinguished
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

func isRedacted(v any) bool {
	text, is := v.(string)
	return is && trace.IsRedacted(text)
}

// kindsOf returns those kinds with learned rules that may be the kind of a resource. kindsOf is
// needed because a patch does not name its kind.
func (m *Mask) kindsOf(target trace.Target) []string {
	var kinds []string
	m.init()
	for kind := range m.union {
		bare, group, _ := strings.Cut(kind, ".")
		if group == target.Group && strings.HasPrefix(strings.ToLower(bare), singular(target.Resource)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// singular returns the prefix that a plural shares with its kind in lower case, such as
// "polic" for "policies".
func singular(plural string) string {
	for _, ending := range []string{"ies", "es", "s"} {
		if bare, ok := strings.CutSuffix(plural, ending); ok {
			return bare
		}
	}
	return plural
}

// replaceSeen replaces the generated names that learning found with their canonical form.
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

// matches is a variant of fits in which fixed parts of the pattern may contain dashes.
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

// Name returns the "namespace/name" that a request names, in a form that is the same in
// every run. The name may end in * if the server will generate it.
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

// IsTime reports whether a text is a time as controllers store it (RFC 3339).
func IsTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}
