package anchor

import (
	"bytes"
	"go/ast"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Field returns the line of the field in Go that a path of an object belongs to, such as the field
// Conditions for status.conditions[Ready].message. It follows the types from the object's kind, so
// it needs no guess; if several versions declare the kind, it uses the version that is stored, or
// returns no line.
func (p *Project) Field(name, path string) Line {
	types := p.kinds(name)
	names := parts(path)
	if len(types) != 1 || len(names) == 0 {
		return Line{}
	}
	at, depth, collection := types[0], 0, false
	var found Line
	for _, name := range names {
		field := p.field(at, name)
		if field == nil && collection {
			collection = false // the name of an element
			continue
		}
		if field == nil {
			break
		}
		found, depth, collection = p.line(field.Pos()), depth+1, isCollection(field.Type)
		next := p.typeOf(at.file, field.Type)
		if next == nil {
			break
		}
		at = *next
	}
	if depth < min(2, len(names)) {
		return Line{} // Spec or Status alone says little
	}
	return found
}

// Kind returns the line of the type in Go that declares the kind of an object.
func (p *Project) Kind(name string) Line {
	var found []Line
	for _, t := range p.kinds(name) {
		found = append(found, p.line(t.name.Pos()))
	}
	return single(found)
}

// declared is a struct in a file.
type declared struct {
	file   string
	name   *ast.Ident
	struc  *ast.StructType
	nested map[string]bool // embedded types that were entered, because they may embed each other
}

// kinds returns the structs that declare the kind of an object.
func (p *Project) kinds(name string) (found []declared) {
	kind, group, _, _ := object(name)
	if group == "" {
		return nil // Kubernetes declares the kinds of its core group
	}
	for _, file := range p.goFiles() {
		if !bytes.Contains(read(file), []byte("type "+kind)) && !bytes.Contains(read(file), []byte("\t"+kind+" ")) {
			continue // parsing all files would take too long
		}
		for _, t := range p.structs(file) {
			if t.name.Name == kind && isObject(t.struc) && p.names(filepath.Dir(file), group) {
				found = append(found, t)
			}
		}
	}
	return stored(found)
}

// stored returns the type of the version that the API server stores, if several versions declare the
// kind and only one of them is marked.
func stored(types []declared) []declared {
	marked := slices.DeleteFunc(slices.Clone(types), func(t declared) bool {
		return !bytes.Contains(read(t.file), []byte("+kubebuilder:storageversion"))
	})
	if len(types) > 1 && len(marked) == 1 {
		return marked
	}
	return types
}

// names reports whether a file of a folder names a group of the API. Two groups may have a kind of
// the same name, such as a Deployment.
func (p *Project) names(dir, group string) bool {
	return slices.ContainsFunc(p.goFiles(), func(file string) bool {
		return filepath.Dir(file) == dir && bytes.Contains(read(file), []byte(group))
	})
}

// isObject reports whether a struct embeds TypeMeta, as every object of the API does.
func isObject(s *ast.StructType) bool {
	for _, field := range s.Fields.List {
		if selector, is := field.Type.(*ast.SelectorExpr); is && len(field.Names) == 0 && selector.Sel.Name == "TypeMeta" {
			return true
		}
	}
	return false
}

// structs returns the structs that a file declares.
func (p *Project) structs(path string) (found []declared) {
	file := p.syntax(path)
	if file == nil {
		return nil
	}
	for _, decl := range file.Decls {
		general, is := decl.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range general.Specs {
			if t, is := spec.(*ast.TypeSpec); is {
				if s, is := t.Type.(*ast.StructType); is {
					found = append(found, declared{file: path, name: t.Name, struc: s})
				}
			}
		}
	}
	return found
}

// typeOf returns the struct that a type refers to, if it is declared in the same package.
func (p *Project) typeOf(file string, expr ast.Expr) *declared {
	for {
		switch t := expr.(type) {
		case *ast.StarExpr:
			expr = t.X
			continue
		case *ast.ArrayType:
			expr = t.Elt
			continue
		case *ast.MapType:
			expr = t.Value
			continue
		case *ast.StructType:
			return &declared{file: file, struc: t}
		case *ast.Ident:
			return p.named(filepath.Dir(file), t.Name)
		}
		return nil
	}
}

// named returns a struct of the package in a folder.
func (p *Project) named(dir, name string) *declared {
	for _, file := range p.goFiles() {
		if filepath.Dir(file) != dir {
			continue
		}
		for _, t := range p.structs(file) {
			if t.name.Name == name {
				return &t
			}
		}
	}
	return nil
}

func isCollection(expr ast.Expr) bool {
	switch t := expr.(type) {
	case *ast.StarExpr:
		return isCollection(t.X)
	case *ast.ArrayType, *ast.MapType:
		return true
	}
	return false
}

// field returns the field of a struct with this name in JSON, or nil.
func (p *Project) field(in declared, name string) *ast.Field {
	for _, field := range in.struc.Fields.List {
		tag := ""
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		}
		known, options, _ := strings.Cut(tag, ",")
		if known == name && name != "" {
			return field
		}
		if len(field.Names) == 0 && (known == "" || strings.Contains(options, "inline")) {
			if found := p.embedded(in, field, name); found != nil {
				return found
			}
		}
	}
	return nil
}

// embedded searches the fields of an embedded struct.
func (p *Project) embedded(in declared, field *ast.Field, name string) *ast.Field {
	inner := p.typeOf(in.file, field.Type)
	if inner == nil || inner.name == nil || in.nested[inner.name.Name] {
		return nil
	}
	inner.nested = map[string]bool{inner.name.Name: true}
	for known := range in.nested {
		inner.nested[known] = true
	}
	return p.field(*inner, name)
}
