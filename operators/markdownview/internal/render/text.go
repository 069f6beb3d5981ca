package render

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// section is an unfinished Section.
type section struct {
	id            string
	open          bool // reports whether its heading is still being read
	heading, text strings.Builder
}

// text adds s to the heading or the text of the current section.
func (t *tree) text(s string) {
	if len(t.found) == 0 {
		t.found = append(t.found, &section{})
	}
	if last := t.found[len(t.found)-1]; last.open {
		last.heading.WriteString(s)
	} else {
		last.text.WriteString(s)
	}
}

// sections returns the sections that have text.
func (t *tree) sections() []Section {
	var all []Section
	for _, f := range t.found {
		s := Section{ID: f.id, Heading: squeeze(f.heading.String()), Text: squeeze(f.text.String())}
		if s.Heading != "" || s.Text != "" {
			all = append(all, s)
		}
	}
	return all
}

// squeeze replaces every run of white space with one space.
func squeeze(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// isBlock reports whether an element's text is separate from the text that follows it.
func isBlock(name atom.Atom) bool {
	switch name {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Del, atom.Dfn, atom.Em, atom.I, atom.Ins,
		atom.Kbd, atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time,
		atom.U, atom.Var, atom.Wbr, atom.Input:
		return false
	}
	return true
}
