package state

import (
	"path"
	"regexp"
	"strings"
	"sync/atomic"
)

// line is a compiled line of an ignore list: "Kind.group path" or
// "Kind.group namespace/name path".
type line struct {
	text string
	kind string
	// object is the pattern of a canonical name without the kind; empty means all objects.
	object string
	// path is the pattern of a path in the form of Mask.Learnt; nil means the whole object. parts
	// is the pattern of a path whose parts are separated by partSeparator. This pattern also
	// matches a single element of a list, and keys that contain dots.
	path, parts *regexp.Regexp
	// matched reports whether the line has matched a field or an object.
	matched atomic.Bool
}

// SplitIgnore splits a line of an ignore list. The object is empty if the line is meant for
// all objects of the kind. ok is false if the line has fewer than two parts or more than
// three.
func SplitIgnore(text string) (kind, object, path string, ok bool) {
	switch words := ignoreWords(text); len(words) {
	case 2:
		return words[0], "", words[1], true
	case 3:
		return words[0], words[1], words[2], true
	}
	return "", "", "", false
}

// ignoreWords splits a text at its spaces, but not inside brackets, because a key may
// contain spaces.
func ignoreWords(text string) (words []string) {
	depth, begin := 0, -1
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']' && depth > 0:
			depth--
		}
		space := depth == 0 && (r == ' ' || r == '\t')
		switch {
		case space && begin >= 0:
			words, begin = append(words, text[begin:i]), -1
		case !space && begin < 0:
			begin = i
		}
	}
	if begin >= 0 {
		words = append(words, text[begin:])
	}
	return words
}

func newLine(text string) *line {
	l := &line{text: text}
	fields := ""
	switch words := ignoreWords(text); len(words) {
	case 0:
	case 1:
		l.kind = words[0]
	case 2:
		l.kind, fields = words[0], words[1]
	default:
		l.kind, l.object, fields = words[0], words[1], words[2]
	}
	fields = strings.ToValidUTF8(fields, "\uFFFD") // a pattern must be UTF-8
	l.path, l.parts = pathPattern(fields), partsPattern(fields)
	return l
}

// matchesObject reports whether the line is meant for the object with the canonical name.
func (l *line) matchesObject(kind, name string) bool {
	if !matchKind(l.kind, kind) {
		return false
	}
	if l.object == "" {
		return true
	}
	ok, err := path.Match(l.object, name)
	return err == nil && ok
}

var (
	indices = regexp.MustCompile(`\[\d+\]`)
	inner   = strings.NewReplacer("[", ".", "]", "")
)

// Accepts reports whether a line of the ignore list names a field of an object, or the whole object.
// key is the canonical name of the object, and the path is one such as data[app.conf] or
// spec.containers[0].args[1].
func (m *Mask) Accepts(ref Ref, key, path string) bool {
	if m == nil {
		return false
	}
	m.init()
	for _, l := range m.lines {
		if !l.matchesObject(ref.String(), nameOf(key)) {
			continue
		}
		if l.path == nil || l.path.MatchString(inner.Replace(path)) || l.path.MatchString(withoutIndices(path)) {
			l.matched.Store(true)
			return true
		}
	}
	return false
}

// withoutIndices returns a path in the form of the pattern of a line.
func withoutIndices(path string) string {
	parts := indices.Split(path, -1)
	for i := range parts {
		parts[i] = inner.Replace(parts[i])
	}
	return strings.Join(parts, ".[]")
}

// partSeparator separates the parts of a path. No key contains it.
const partSeparator = "\x00"

// partsPattern compiles a path such as "status.conditions[Ready].message" or
// "metadata.annotations.*".
func partsPattern(text string) *regexp.Regexp {
	if text == "" || text == "*" {
		return nil
	}
	var parts []string
	for text != "" {
		if inside, rest, ok := bracketed(text); ok {
			part := glob(inside)
			if inside == "" {
				part = glob("*")
			}
			parts, text = append(parts, `(?:\[`+part+`\]|`+part+`)`), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(text, ".[")
		if end < 0 || text[end] == '[' && end == 0 {
			end = len(text) // the bracket is never closed
		}
		parts, text = append(parts, glob(text[:end])), strings.TrimPrefix(text[end:], ".")
	}
	return regexp.MustCompile("(?s)^" + strings.Join(parts, partSeparator) + "$")
}

// bracketed splits a text that begins with a part in brackets.
func bracketed(text string) (inside, rest string, ok bool) {
	if !strings.HasPrefix(text, "[") {
		return "", text, false
	}
	inside, rest, ok = strings.Cut(text[1:], "]")
	return inside, rest, ok
}

func glob(part string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(part), `\*`, "[^"+partSeparator+"]*")
}

// ignoresField reports whether a line of the ignore list names the field of an object.
func (m *Mask) ignoresField(kind, name, parts string) bool {
	if m == nil || parts == "" || kind == "" {
		return false
	}
	m.init()
	for _, l := range m.lines {
		if l.parts != nil && l.matchesObject(kind, name) && l.parts.MatchString(parts) {
			l.matched.Store(true)
			return true
		}
	}
	return false
}

// Matched returns the lines of the ignore list that have matched a field or an object since
// the mask was made.
func (m *Mask) Matched() (lines []string) {
	if m == nil {
		return nil
	}
	m.init()
	for _, l := range m.lines {
		if l.matched.Load() {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// in returns the canonicaliser for a part of the value: a key, or an element of a list.
func (c canonicaliser) in(part string) canonicaliser {
	if c.m == nil || len(c.m.Configured) == 0 {
		return c // nothing needs the path
	}
	if c.parts != "" {
		part = c.parts + partSeparator + part
	}
	c.parts = part
	return c
}

// inElement returns the canonicaliser for an element of a list. id is empty if the elements
// have no names.
func (c canonicaliser) inElement(item any, id string) canonicaliser {
	name := ""
	if m, ok := item.(map[string]any); ok && id != "" {
		text, _ := m[id].(string)
		name = c.replace(text)
	}
	return c.in("[" + name + "]")
}

// nameOf returns a canonical name without the kind.
func nameOf(key string) string {
	_, name, _ := strings.Cut(key, " ")
	return name
}
