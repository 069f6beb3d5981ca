package merge

import (
	"bytes"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// goChanges are the changes that turn one Go file into another.
type goChanges struct {
	imports, noImports []importSpec
	added, removed     []change
	// base is the file before the changes. The added code may refer to names in base.
	base *source
}

// A change adds or removes a declaration or a statement.
type change struct {
	piece
	after, before string // the code of the pieces around it, if there are any
}

// difference returns the changes from b to t.
func difference(b, t *source) goChanges {
	c := goChanges{base: b}
	c.imports = missing(b.imports(), t.imports())
	c.noImports = missing(t.imports(), b.imports())
	c.compare(b.decls(), t.decls())
	before := b.functions()
	for head, body := range t.functions() {
		if old := before[head]; old != nil {
			c.compare(b.statements(head, old), t.statements(head, body))
		}
	}
	order := func(x, y change) int { return x.start - y.start }
	slices.SortFunc(c.added, order)
	slices.SortFunc(c.removed, order)
	return c
}

// missing returns the imports of b that a lacks.
func missing(a, b []importSpec) []importSpec {
	return slices.DeleteFunc(b, func(i importSpec) bool {
		return slices.ContainsFunc(a, func(have importSpec) bool { return have.String() == i.String() })
	})
}

// compare adds the differences between two lists of pieces.
func (c *goChanges) compare(before, after []piece) {
	c.removed = append(c.removed, notIn(before, after)...)
	c.added = append(c.added, notIn(after, before)...)
}

// notIn returns the pieces of a that b lacks, each with its neighbors.
func notIn(a, b []piece) []change {
	var found []change
	for i, p := range a {
		if slices.ContainsFunc(b, func(q piece) bool { return p.code == q.code }) {
			continue
		}
		ch := change{piece: p}
		if i > 0 {
			ch.after = a[i-1].code
		}
		if i+1 < len(a) {
			ch.before = a[i+1].code
		}
		found = append(found, ch)
	}
	return found
}

// apply returns the file with the changes. Changes for which there is no place become
// conflicts.
func (c goChanges) apply(s *source) ([]byte, []Conflict) {
	var conflicts []Conflict
	for _, ch := range c.removed {
		next, conflict := s.remove(ch)
		s, conflicts = next, append(conflicts, conflict...)
	}
	for _, ch := range c.added {
		next, conflict := c.add(s, ch)
		s, conflicts = next, append(conflicts, conflict...)
	}
	for _, i := range c.imports {
		s = s.addImport(i)
	}
	for _, i := range c.noImports {
		s = s.removeImport(i)
	}
	return formatted(s.text), conflicts
}

// lacks returns a name that a piece uses and the scaffold contains, but the file does not, or "".
// If the name belongs to an import, lacks adds the import.
func (c goChanges) lacks(s *source, ch change) (*source, string) {
	if ch.in == "" {
		return s, ""
	}
	have := s.names()
	for name := range c.base.names() {
		if have[name] || !regexp.MustCompile(`(^|[^.\w])`+name+`\b`).MatchString(ch.code) {
			continue
		}
		i := slices.IndexFunc(c.base.imports(), func(i importSpec) bool { return i.local() == name })
		if i < 0 {
			return s, name
		}
		s = s.addImport(c.base.imports()[i])
	}
	return s, ""
}

// names returns the identifiers of the file, except selected names such as Name in x.Name.
func (s *source) names() map[string]bool {
	names := map[string]bool{}
	for _, i := range s.imports() {
		names[i.local()] = true
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			ast.Inspect(sel.X, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					names[id.Name] = true
				}
				return true
			})
			return false
		}
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	return names
}

// replaced returns the source with other text between two offsets. If the result does not
// parse, the source stays as it is, and replaced returns false.
func (s *source) replaced(start, end int, text string) (*source, bool) {
	changed := string(s.text[:start]) + text + string(s.text[end:])
	if next := parseGo([]byte(changed)); next != nil {
		return next, true
	}
	return s, false
}

// pieces returns the declarations, or the statements of all functions.
func (s *source) pieces(statements bool) []piece {
	if !statements {
		return s.decls()
	}
	var all []piece
	for _, d := range s.file.Decls {
		if head, body := s.function(d); body != nil {
			all = append(all, s.statements(head, body)...)
		}
	}
	return all
}

func find(pieces []piece, in, code string) *piece {
	var found *piece
	for i, p := range pieces {
		// The same statement may be in several functions.
		if p.code == code && (found == nil || p.in == in) {
			found = &pieces[i]
		}
	}
	return found
}

// add inserts a piece after the piece that precedes it in the scaffold, before the one that
// follows it, or where the scaffold marker is.
func (c goChanges) add(s *source, ch change) (*source, []Conflict) {
	all := s.pieces(ch.in != "")
	if find(all, ch.in, ch.code) != nil {
		return s, nil // a person has added it already
	}
	if at, call := chained(all, ch); at >= 0 {
		if next, ok := s.replaced(at, at, call); ok {
			return next, nil
		}
	}
	s, name := c.lacks(s, ch)
	if name != "" {
		return s, []Conflict{{Reason: "the file has no " + name + ", to which this code refers; add the code by hand", Text: ch.text}}
	}
	at, ok := s.place(s.pieces(ch.in != ""), ch)
	if ok {
		text := ch.text
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if ch.spaced && !bytes.HasSuffix(s.text[:at], []byte("\n\n")) {
			text = "\n" + text
		}
		if s, ok = s.replaced(at, at, text); ok {
			return s, nil
		}
	}
	return s, []Conflict{{Reason: "found no place for this code; add it by hand", Text: ch.text}}
}

// builderCall matches a statement that sets a part of a webhook's builder.
var builderCall = regexp.MustCompile(`^\w+\.(With(?:Defaulter|Validator)\(.*\))$`)

// chained returns where to insert a call of a webhook's builder, if all its methods are called in
// one expression, as in kubebuilder's code.
func chained(all []piece, ch change) (int, string) {
	call := builderCall.FindStringSubmatch(ch.code)
	if call == nil {
		return -1, ""
	}
	for _, p := range all {
		if last := strings.LastIndex(p.text, "Complete()"); p.in == ch.in && last >= 0 && strings.Contains(p.code, "NewWebhookManagedBy(") {
			return p.start + last, call[1] + ".\n"
		}
	}
	return -1, ""
}

// place returns the offset at which a piece is inserted. A person may have removed the
// scaffold marker, or rewritten the pieces around it.
func (s *source) place(all []piece, ch change) (int, bool) {
	if ch.marker != "" {
		for _, at := range scaffoldMarker.FindAllIndex(s.text, -1) {
			if strings.TrimSpace(string(s.text[at[0]:at[1]])) == ch.marker {
				return at[0], true
			}
		}
	}
	if kind := registers(ch.code); kind != "" {
		for _, p := range slices.Backward(all) {
			if registers(p.code) == kind {
				return p.end, true
			}
		}
	}
	if ch.after != "" {
		if p := find(all, ch.in, ch.after); p != nil {
			return p.end, true
		}
	}
	if ch.before != "" {
		if p := find(all, ch.in, ch.before); p != nil {
			return p.start, true
		}
	}
	if ch.in == "" {
		return len(s.text), true // the order of declarations does not matter
	}
	return 0, false
}

// registration matches statements that register a type, a controller or a webhook.
var registration = regexp.MustCompile(`\.AddToScheme\(|WithManager\(`)

// registers returns what a statement registers, or "".
func registers(code string) string { return registration.FindString(code) }

// owner matches the part of a registration by which the registration is found after a person has
// changed it.
var owner = regexp.MustCompile(`\w+\.AddToScheme|\w+Reconciler\{|Setup\w+WebhookWithManager`)

// remove deletes a piece. If a person has changed the piece, it stays, and is a conflict.
func (s *source) remove(ch change) (*source, []Conflict) {
	all := s.pieces(ch.in != "")
	if p := find(all, ch.in, ch.code); p != nil {
		if next, ok := s.replaced(p.start, p.end, ""); ok {
			return next, nil
		}
	}
	name := owner.FindString(ch.code)
	for _, p := range all {
		if name != "" && strings.Contains(p.code, name) {
			return s, []Conflict{{Line: s.line(p.start), Reason: "you changed this code; remove it by hand", Text: p.text}}
		}
	}
	return s, nil // a person has removed it already
}

// addImport adds an import beside the one whose path has the most in common.
func (s *source) addImport(i importSpec) *source {
	have := s.imports()
	if slices.ContainsFunc(have, func(h importSpec) bool { return h.path == i.path && h.local() == i.local() }) {
		return s
	}
	best, length := -1, -1
	for n, h := range have {
		common := commonElements(h.path, i.path)
		if standard(h.path) && standard(i.path) {
			common = max(common, 1)
		}
		// Only the imports between parentheses have a line of their own.
		if common >= length && strings.HasPrefix(string(s.text[h.start:h.end]), "\t") {
			best, length = n, common
		}
	}
	at, text := s.lineEnd(s.offset(s.file.Name.End())), "\nimport "+i.String()+"\n"
	if best >= 0 {
		at, text = have[best].end, "\t"+i.String()+"\n"
		// The project's own packages are a group of their own.
		if length == 0 {
			text = "\n" + text
		}
	}
	next, _ := s.replaced(at, at, text)
	return next
}

// standard reports whether a package belongs to Go itself.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// commonElements counts the elements with which both paths begin.
func commonElements(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// removeImport removes an import, unless the file still uses it.
func (s *source) removeImport(i importSpec) *source {
	for _, h := range s.imports() {
		if h.path == i.path && h.local() == i.local() && !s.uses(i.local()) {
			next, _ := s.replaced(h.start, h.end, "")
			return next
		}
	}
	return s
}
