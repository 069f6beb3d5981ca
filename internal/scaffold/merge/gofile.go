package merge

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// goFile merges imports, declarations and the statements of functions. It reports false if
// the difference between base and theirs has other parts too, or if a file does not parse.
func goFile(base, ours, theirs []byte) ([]byte, []Conflict, bool) {
	b, t, o := parseGo(base), parseGo(theirs), parseGo(ours)
	if b == nil || t == nil || o == nil {
		return nil, nil, false
	}
	changes := difference(b, t)
	// The changes describe the difference completely if they turn base into theirs.
	again, conflicts := changes.apply(b)
	if len(conflicts) > 0 || !equivalent(parseGo(again), t) {
		return nil, nil, false
	}
	merged, conflicts := changes.apply(o)
	return merged, conflicts, true
}

// equivalent reports whether two files differ only in empty lines and in the order of their
// imports.
func equivalent(a, b *source) bool {
	return a != nil && len(missing(a.imports(), b.imports())) == 0 && len(missing(b.imports(), a.imports())) == 0 &&
		bytes.Equal(a.compact(), b.compact())
}

// compact returns the source without imports and empty lines.
func (s *source) compact() []byte {
	text := slices.Clone(s.text)
	for _, i := range slices.Backward(s.imports()) {
		text = append(text[:i.start], text[i.end:]...)
	}
	return bytes.Join(slices.DeleteFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool {
		return len(bytes.TrimSpace(line)) == 0
	}), []byte("\n"))
}

// A source is a parsed Go file.
type source struct {
	text []byte
	file *ast.File
	set  *token.FileSet
}

func parseGo(text []byte) *source {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	return &source{text, file, set}
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }
func (s *source) line(offset int) int    { return 1 + bytes.Count(s.text[:offset], []byte("\n")) }

func (s *source) lineStart(offset int) int {
	return bytes.LastIndexByte(s.text[:offset], '\n') + 1
}

// lineEnd returns the offset after the newline of the line.
func (s *source) lineEnd(offset int) int {
	if n := bytes.IndexByte(s.text[offset:], '\n'); n >= 0 {
		return offset + n + 1
	}
	return len(s.text)
}

// A piece is a declaration or a statement, with the comments directly above it.
type piece struct {
	in         string // the function that contains a statement; empty for a declaration
	start, end int    // whole lines of the source
	code       string // without comments and line breaks, for comparisons
	text       string // the lines from start to end
	spaced     bool   // there is an empty line above
	marker     string // the scaffold marker below, if no other piece is in between
}

var space = regexp.MustCompile(`\s+`)

// scaffoldMarker matches the comments at which kubebuilder adds code.
var scaffoldMarker = regexp.MustCompile(`(?m)^[ \t]*// ?\+kubebuilder:scaffold:[\w-]+[ \t]*$`)

// piecesOf returns the pieces for the nodes, which lie between the offsets from and to.
func (s *source) piecesOf(in string, from int, nodes []ast.Node, to int) []piece {
	var pieces []piece
	for i, node := range nodes {
		start, end := s.offset(node.Pos()), s.offset(node.End())
		next := to
		if i+1 < len(nodes) {
			next = s.offset(nodes[i+1].Pos())
		}
		above := s.commentsAbove(from, start)
		p := piece{in: in, start: above, end: min(s.lineEnd(end), max(next, end))}
		p.text = string(s.text[p.start:p.end])
		p.code = strings.TrimSpace(space.ReplaceAllString(string(s.text[start:end]), " "))
		before := bytes.TrimRight(s.text[from:p.start], " \t")
		p.spaced = bytes.HasSuffix(before, []byte("\n\n")) || string(before) == "\n"
		p.marker = strings.TrimSpace(string(scaffoldMarker.Find(s.text[p.end:next])))
		pieces = append(pieces, p)
		from = p.end
	}
	return pieces
}

// commentsAbove returns the start of the lines that belong to the node at start: comments
// without an empty line in between, except for scaffold markers. It does not go above from.
func (s *source) commentsAbove(from, start int) int {
	at := s.lineStart(start)
	for at > from {
		above := s.lineStart(at - 1)
		line := bytes.TrimSpace(s.text[above:at])
		if above < from || !bytes.HasPrefix(line, []byte("//")) || scaffoldMarker.Match(s.text[above:at]) {
			break
		}
		at = above
	}
	return max(at, from)
}

// decls returns the declarations except imports.
func (s *source) decls() []piece {
	var nodes []ast.Node
	from := s.lineEnd(s.offset(s.file.Name.End()))
	for _, d := range s.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			from = s.lineEnd(s.offset(d.End()))
			continue
		}
		nodes = append(nodes, d)
	}
	pieces := s.piecesOf("", min(from, len(s.text)), nodes, len(s.text))
	for i, node := range nodes {
		// A function is compared by its head; its statements are compared separately.
		if head, body := s.function(node.(ast.Decl)); body != nil {
			pieces[i].code = head
		}
	}
	return pieces
}

// function returns the head and the body of a function, or of a function that is passed to
// a call at the top level, as in var _ = BeforeSuite(func() { … }).
func (s *source) function(d ast.Decl) (head string, body *ast.BlockStmt) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return "func " + functionName(d), d.Body
	case *ast.GenDecl:
		if len(d.Specs) != 1 || d.Tok != token.VAR {
			return "", nil
		}
		spec := d.Specs[0].(*ast.ValueSpec)
		if len(spec.Values) != 1 {
			return "", nil
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return "", nil
		}
		if last, ok := call.Args[len(call.Args)-1].(*ast.FuncLit); ok {
			return space.ReplaceAllString(string(s.text[s.offset(d.Pos()):s.offset(last.Pos())]), " "), last.Body
		}
	}
	return "", nil
}

// functions returns the bodies of the functions, by their heads.
func (s *source) functions() map[string]*ast.BlockStmt {
	all := map[string]*ast.BlockStmt{}
	for _, d := range s.file.Decls {
		if head, body := s.function(d); body != nil {
			all[head] = body
		}
	}
	return all
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// statements returns the statements of a function.
func (s *source) statements(head string, body *ast.BlockStmt) []piece {
	nodes := make([]ast.Node, len(body.List))
	for i, stmt := range body.List {
		nodes[i] = stmt
	}
	from, to := s.offset(body.Lbrace)+1, s.offset(body.Rbrace)
	if end := s.lineEnd(from); end < to {
		from = end
	}
	return s.piecesOf(head, from, nodes, to)
}

// An importSpec is an import of a file.
type importSpec struct {
	name, path string
	start, end int // whole lines
}

func (s *source) imports() []importSpec {
	var all []importSpec
	for _, spec := range s.file.Imports {
		i := importSpec{start: s.lineStart(s.offset(spec.Pos())), end: s.lineEnd(s.offset(spec.End()))}
		i.path, _ = strconv.Unquote(spec.Path.Value)
		if spec.Name != nil {
			i.name = spec.Name.Name
		}
		all = append(all, i)
	}
	return all
}

// local returns the name by which the file refers to the package.
func (i importSpec) local() string {
	if i.name != "" {
		return i.name
	}
	return path.Base(i.path)
}

func (i importSpec) String() string {
	if i.name != "" {
		return i.name + " " + strconv.Quote(i.path)
	}
	return strconv.Quote(i.path)
}

// uses reports whether the file refers to a package by this name.
func (s *source) uses(name string) bool {
	used := false
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				used = true
			}
		}
		return !used
	})
	return used
}

// formatted formats the source, or returns it as it is if it does not parse.
func formatted(text []byte) []byte {
	if out, err := format.Source(text); err == nil {
		return out
	}
	return text
}
