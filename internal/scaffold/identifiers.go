package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// identifiers resolves the identifiers in the Go files of one module. It type-checks the
// module without its dependencies: an identifier that belongs to a dependency cannot be
// resolved, but it is not renamed either. So nothing is downloaded or compiled.
type identifiers struct {
	module   string
	set      *token.FileSet
	files    map[string]*ast.File
	packages map[string]*types.Package // the packages that others import, by folder
	info     types.Info
}

// resolve checks all packages. A file that does not parse is left out.
func resolve(module string, sources map[string][]byte) *identifiers {
	n := &identifiers{
		module: module, set: token.NewFileSet(), files: map[string]*ast.File{}, packages: map[string]*types.Package{},
		info: types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
	}
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if path.Ext(name) != ".go" {
			continue
		}
		if file, err := parser.ParseFile(n.set, name, sources[name], parser.ParseComments|parser.SkipObjectResolution); err == nil {
			n.files[name] = file
			folders[path.Dir(name)] = true
		}
	}
	for folder := range folders {
		inside, outside := n.filesOf(folder, true)
		n.check(folder, inside, &n.info)
		n.check(folder+"_test", outside, &n.info)
	}
	return n
}

// filesOf returns the files of a package, and those of its external tests.
func (n *identifiers) filesOf(folder string, tests bool) (inside, outside []*ast.File) {
	for _, name := range slices.Sorted(maps.Keys(n.files)) {
		file := n.files[name]
		switch {
		case path.Dir(name) != folder || !tests && strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(file.Name.Name, "_test") && strings.HasSuffix(name, "_test.go"):
			outside = append(outside, file)
		default:
			inside = append(inside, file)
		}
	}
	return inside, outside
}

func (n *identifiers) check(folder string, files []*ast.File, info *types.Info) *types.Package {
	conf := types.Config{
		Importer: n, IgnoreFuncBodies: info == nil,
		Error: func(error) {}, // there are many, because the dependencies are missing
	}
	pkg, _ := conf.Check(path.Join(n.module, folder), n.set, files, info)
	return pkg
}

var errForeign = errors.New("the package belongs to another module, or to an import cycle")

// Import implements types.Importer. The checker replaces a package that cannot be imported
// with one in which every name is unknown.
func (n *identifiers) Import(name string) (*types.Package, error) {
	folder, own := strings.CutPrefix(name, n.module+"/")
	if name == n.module {
		folder, own = ".", true
	}
	if !own {
		return nil, errForeign
	}
	pkg, checked := n.packages[folder]
	if !checked {
		n.packages[folder] = nil
		if files, _ := n.filesOf(folder, false); len(files) > 0 {
			pkg = n.check(folder, files, nil)
		}
		n.packages[folder] = pkg
	}
	if pkg == nil {
		return nil, errForeign
	}
	return pkg, nil
}

// A kindNames renames the identifiers of a kind in one module.
type kindNames struct {
	*identifiers
	renaming
	own     map[string]bool      // the files of the kind
	targets map[token.Pos]string // the positions of declarations, and their new names
	guessed map[*ast.Ident]string
}

// namesOf finds the identifiers to rename: package-level identifiers in the folders of the kind,
// and also local identifiers in the kind's own files.
func namesOf(n *identifiers, r renaming, folders, own map[string]bool) *kindNames {
	k := &kindNames{identifiers: n, renaming: r, own: own, targets: map[token.Pos]string{}, guessed: map[*ast.Ident]string{}}
	for id, obj := range n.info.Defs {
		if obj == nil || obj.Pkg() == nil || obj.Parent() == nil || !id.Pos().IsValid() {
			continue // fields and methods belong to no scope
		}
		if _, imported := obj.(*types.PkgName); imported {
			continue
		}
		file := n.set.Position(id.Pos()).Filename
		name := r.replace(id.Name)
		local := obj.Parent() != obj.Pkg().Scope()
		if name == id.Name || !folders[path.Dir(file)] || local && (!own[file] || mentions(n.files[file], variable(name))) {
			continue
		}
		if local {
			name = variable(name)
		}
		k.targets[obj.Pos()] = name
	}
	k.embedded()
	k.guess()
	return k
}

// guess finds uses that the checker does not visit, such as those in a function literal that
// is passed to an unknown function. guess resolves these uses by the imports of the file.
func (k *kindNames) guess() {
	declared := map[string]map[string]string{} // folder → name → new name
	for id, obj := range k.info.Defs {
		if obj != nil && obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() && k.targets[obj.Pos()] != "" {
			folder := path.Dir(k.set.Position(id.Pos()).Filename)
			if declared[folder] == nil {
				declared[folder] = map[string]string{}
			}
			declared[folder][id.Name] = k.targets[obj.Pos()]
		}
	}
	for name, file := range k.files {
		k.guessIn(file, declared[path.Dir(name)], k.imported(file, declared))
	}
}

// imported returns the declarations of the packages that a file imports, by local name.
func (k *kindNames) imported(file *ast.File, declared map[string]map[string]string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, spec := range file.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		folder, own := strings.CutPrefix(target, k.module+"/")
		local := path.Base(target)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if own && declared[folder] != nil {
			all[local] = declared[folder]
		}
	}
	return all
}

func (k *kindNames) guessIn(file *ast.File, own map[string]string, imported map[string]map[string]string) {
	known := func(id *ast.Ident) bool {
		_, defined := k.info.Defs[id]
		return defined || k.info.Uses[id] != nil
	}
	other := map[*ast.Ident]bool{} // selected names and keys, which belong to something else
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			other[n.Sel] = true
			if x, ok := n.X.(*ast.Ident); ok && !known(n.Sel) && !known(x) {
				k.guessed[n.Sel] = imported[x.Name][n.Sel.Name]
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				other[key] = true
			}
		case *ast.Field:
			for _, name := range n.Names {
				other[name] = true
			}
		case *ast.Ident:
			if !known(n) && !other[n] && !strings.HasSuffix(file.Name.Name, "_test") {
				k.guessed[n] = own[n.Name]
			}
		}
		return true
	})
}

// embedded adds the fields whose name comes from an embedded type that is renamed.
func (k *kindNames) embedded() {
	for id, obj := range k.info.Defs {
		field, ok := obj.(*types.Var)
		if !ok || !field.Embedded() {
			continue
		}
		if used := k.info.Uses[id]; used != nil && k.targets[used.Pos()] != "" {
			k.targets[field.Pos()] = k.targets[used.Pos()]
		}
	}
}

// mentions reports whether a file contains an identifier.
func mentions(file *ast.File, name string) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// conflicts returns, by file, the identifiers that cannot be renamed, because the new name
// has another meaning already.
func (k *kindNames) conflicts() map[string][]merge.Conflict {
	all := map[string][]merge.Conflict{}
	for id, obj := range k.info.Defs {
		if obj == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() || k.targets[obj.Pos()] == "" {
			continue
		}
		name := k.targets[obj.Pos()]
		if other := obj.Pkg().Scope().Lookup(name); other != nil && k.targets[other.Pos()] == "" {
			at := k.set.Position(other.Pos())
			all[at.Filename] = append(all[at.Filename], merge.Conflict{
				Line: at.Line, Reason: fmt.Sprintf("%[1]s exists already, so %[2]s cannot be renamed to %[1]s; rename the existing %[1]s first", name, id.Name),
			})
		}
	}
	for name, file := range k.files {
		for _, id := range k.shadowed(file) {
			all[name] = append(all[name], merge.Conflict{
				Line: k.set.Position(id.Pos()).Line, Reason: fmt.Sprintf("%[1]s has another meaning here, so %[2]s cannot be renamed to %[1]s; rename the other %[1]s first", k.name(id), id.Name),
			})
		}
	}
	for _, conflicts := range all {
		slices.SortFunc(conflicts, func(a, b merge.Conflict) int { return a.Line - b.Line })
	}
	return all
}

// shadowed returns the uses of names that would refer to a local declaration after the renaming.
func (k *kindNames) shadowed(file *ast.File) []*ast.Ident {
	var found []*ast.Ident
	ast.Inspect(file, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		if !ok {
			return true
		}
		declared := map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && k.info.Defs[id] != nil && id != f.Name && k.targets[k.info.Defs[id].Pos()] == "" {
				declared[id.Name] = true
			}
			return true
		})
		qualified := map[*ast.Ident]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				qualified[sel.Sel] = true
			}
			if id, ok := n.(*ast.Ident); ok && !qualified[id] && declared[k.name(id)] {
				found = append(found, id)
			}
			return true
		})
		return false
	})
	return found
}

// name returns the new name of an identifier, or "".
func (k *kindNames) name(id *ast.Ident) string {
	if obj := k.info.Defs[id]; obj != nil {
		return k.targets[obj.Pos()]
	}
	if obj := k.info.Uses[id]; obj != nil {
		return k.targets[obj.Pos()]
	}
	return k.guessed[id]
}

// apply returns a file with the new names. If words is set, the new names also replace the old ones
// in comments and strings of the kind's own files.
func (k *kindNames) apply(name string, source []byte, words bool) []byte {
	file := k.files[name]
	if file == nil {
		return source
	}
	var edits []textEdit
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if to := k.name(id); to != "" {
				edits = append(edits, textEdit{k.offset(id.Pos()), k.offset(id.End()), to})
			}
		}
		return true
	})
	if words && k.own[name] {
		for _, at := range texts(file) {
			start, end := k.offset(at.Pos()), k.offset(at.End())
			edits = append(edits, textEdit{start, end, k.replace(string(source[start:end]))})
		}
	}
	return spliced(source, edits)
}

func (n *identifiers) offset(p token.Pos) int { return n.set.Position(p).Offset }

// texts returns the comments and strings of a file, except for import paths and struct tags,
// because a tag is the name of a field in the API.
func texts(file *ast.File) []ast.Node {
	var nodes []ast.Node
	for _, group := range file.Comments {
		for _, c := range group.List {
			nodes = append(nodes, c)
		}
	}
	tags := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				tags[n.Tag] = true
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !tags[n] {
				nodes = append(nodes, n)
			}
		}
		return true
	})
	return nodes
}

// fieldsOf returns the names of fields in the API. These names stay, even in comments and in YAML,
// because the user has not requested a change of the schema.
func fieldsOf(n *identifiers, own map[string]bool) []string {
	var names []string
	for file := range own {
		if n.files[file] == nil {
			continue
		}
		ast.Inspect(n.files[file], func(node ast.Node) bool {
			if field, ok := node.(*ast.Field); ok && field.Tag != nil {
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
				if name, _, _ := strings.Cut(tag.Get("json"), ","); name != "" {
					names = append(names, name)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

// A textEdit replaces a part of a text.
type textEdit struct {
	start, end int
	text       string
}

// spliced applies the edits. The result is formatted if the source was.
func spliced(source []byte, edits []textEdit) []byte {
	if len(edits) == 0 {
		return source
	}
	slices.SortStableFunc(edits, func(a, b textEdit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, source[at:e.start]...), e.text...)
		at = e.end
	}
	out = append(out, source[at:]...)
	if formatted, err := format.Source(source); err == nil && bytes.Equal(formatted, source) {
		if next, err := format.Source(out); err == nil {
			return next
		}
	}
	return out
}
