package compat

import "strings"

// The wildcards of paths.
const (
	anyItem = "[*]" // an item of a list
	anyKey  = "{*}" // a value of a map
)

// A path leads from the root of an object to a field. Its elements are names and wildcards.
type path []string

func (p path) child(name string) path { return append(p[:len(p):len(p)], name) }

// String returns the path as users write it, such as spec.crew[*].name.
func (p path) String() string {
	var out strings.Builder
	for _, name := range p {
		switch name {
		case anyItem:
			out.WriteString(anyItem)
		case anyKey:
			out.WriteString("[key]")
		default:
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(name)
		}
	}
	return out.String()
}

// parsePath parses the path in an error of the API server, such as spec.crew[0].name.
func parsePath(text string) (p path) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '.' || r == '[' }) {
		if strings.HasSuffix(part, "]") {
			part = anyItem
		}
		if part != "<nil>" && part != "" {
			p = append(p, part)
		}
	}
	return p
}

// common returns the number of leading elements that both paths have. A wildcard is equal to
// every element.
func (p path) common(other path) (n int) {
	for n < min(len(p), len(other)) {
		wild := p[n] == anyItem || p[n] == anyKey || other[n] == anyItem || other[n] == anyKey
		if p[n] != other[n] && !wild {
			break
		}
		n++
	}
	return n
}

// related reports whether one of the paths is part of the other.
func (p path) related(other path) bool { return p.common(other) == min(len(p), len(other)) }
