package edit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strings"
)

// described holds what generators can see of a Go file.
type described struct {
	sum    sum
	embeds bool
}

// declarations describes a Go file. The sum covers everything that controller-gen and
// code-generator read: the package's name, types and constants with their comments, all
// markers, the names of methods that generators look for, and the imports that these
// parts use. It does not cover the bodies of functions, so an edit there changes nothing that
// is generated. Code that cannot be parsed is covered completely.
func declarations(source []byte) described {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return described{sum: sha256.Sum256(source), embeds: bytes.Contains(source, []byte("//go:embed "))}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "package %s\n", parsed.Name.Name)
	embeds := markers(&text, parsed)
	used := map[string]bool{}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && seen(d.Name.Name) {
				_ = printer.Fprint(&text, files, &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
				fmt.Fprintln(&text)
			}
		case *ast.GenDecl:
			if d.Tok == token.TYPE || d.Tok == token.CONST {
				// An error does not matter, because the text is only compared.
				_ = printer.Fprint(&text, files, &printer.CommentedNode{Node: d, Comments: parsed.Comments})
				fmt.Fprintln(&text)
				packages(d, used)
			}
		}
	}
	for _, i := range parsed.Imports {
		if provides(i, used) {
			fmt.Fprintf(&text, "import %v %s\n", i.Name, i.Path.Value)
		}
	}
	return described{sum: sha256.Sum256(text.Bytes()), embeds: embeds}
}

// seen reports whether generators look for a method: handwritten deepcopy functions replace
// generated ones, and a type that marshals itself has another schema.
func seen(method string) bool {
	return strings.HasPrefix(method, "DeepCopy") || method == "MarshalJSON" || method == "MarshalText"
}

// markers writes all comment lines that begin with a plus sign, wherever they are, and build
// constraints. It reports whether the file embeds other files.
func markers(text *bytes.Buffer, parsed *ast.File) (embeds bool) {
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			if strings.HasPrefix(line, "+") {
				fmt.Fprintln(text, line)
			}
			embeds = embeds || strings.HasPrefix(comment.Text, "//go:embed ")
			if strings.HasPrefix(comment.Text, "//go:build ") {
				fmt.Fprintln(text, comment.Text)
			}
		}
	}
	return embeds
}

// packages collects the names before the dot of qualified identifiers.
func packages(node ast.Node, used map[string]bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
}

// provides reports whether an import may provide one of the names. If an import does not name its
// package, the name is nearly always a part of the import path.
func provides(spec *ast.ImportSpec, names map[string]bool) bool {
	if spec.Name != nil {
		return names[spec.Name.Name] || spec.Name.Name == "."
	}
	for name := range names {
		if strings.Contains(spec.Path.Value, name) {
			return true
		}
	}
	return false
}
