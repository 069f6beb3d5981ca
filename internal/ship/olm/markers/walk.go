package markers

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

type typeName struct {
	in   *loader.Package
	name string
}

// reader has the parsed types.
type reader struct {
	types  map[typeName]*markers.TypeInfo
	groups map[*loader.Package]schema.GroupVersion
}

// definitions describes all types that have the fields of a custom resource, in a fixed order.
func (r *reader) definitions(roots []*loader.Package) (all []olm.Definition, err error) {
	for _, root := range roots {
		group, ok := r.groups[root]
		if !ok {
			continue
		}
		for _, t := range slices.SortedFunc(maps.Keys(r.types), func(a, b typeName) int { return cmp.Compare(a.name, b.name) }) {
			info := r.types[t]
			if t.in != root || fieldNamed(info, "spec") == nil {
				continue
			}
			d, err := r.definition(root, info)
			if err != nil {
				return nil, fmt.Errorf("the type %s: %w", t.name, err)
			}
			d.Kind = group.WithKind(t.name)
			all = append(all, d)
		}
	}
	return all, nil
}

// definition describes one type.
func (r *reader) definition(in *loader.Package, info *markers.TypeInfo) (olm.Definition, error) {
	d := olm.Definition{Order: olm.Last}
	for _, value := range info.Markers[markerName] {
		marker, ok := value.(typeMarker)
		if !ok {
			continue
		}
		d.DisplayName = cmp.Or(marker.DisplayName, d.DisplayName)
		if marker.Order != nil {
			d.Order = *marker.Order
		}
		for _, resource := range marker.Resources {
			if len(resource) < 2 {
				return d, fmt.Errorf("the marker %s has a resource without a version; write it as {{Deployment,v1,name}}", markerName)
			}
			parsed := olm.Resource{Kind: strings.TrimSpace(resource[0]), Version: strings.TrimSpace(resource[1])}
			if len(resource) > 2 {
				parsed.Name = strings.TrimSpace(resource[2])
			}
			d.Resources = append(d.Resources, parsed)
		}
	}
	slices.SortStableFunc(d.Resources, func(a, b olm.Resource) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	d.Spec = r.descriptors(in, info, "spec")
	d.Status = r.descriptors(in, info, "status")
	return d, nil
}

// descriptors describes the marked fields below the spec or the status of a type.
func (r *reader) descriptors(in *loader.Package, info *markers.TypeInfo, below string) (all []olm.Descriptor) {
	top := fieldNamed(info, below)
	if top == nil {
		return nil
	}
	r.walk(in, top.RawField.Type, nil, nil, func(field markers.FieldInfo, at string) {
		if d, ok := descriptor(field, below); ok {
			d.Path = at
			all = append(all, d)
		}
	})
	slices.SortStableFunc(all, func(a, b olm.Descriptor) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(all, func(a, b olm.Descriptor) bool { return a.Path == b.Path })
}

// descriptor describes a field if it has a marker for the spec or the status.
func descriptor(field markers.FieldInfo, of string) (d olm.Descriptor, marked bool) {
	d = olm.Descriptor{Description: field.Doc, Order: olm.Last}
	for _, value := range field.Markers[markerName] {
		marker, ok := value.(fieldMarker)
		if !ok || marker.Type != of {
			continue
		}
		marked = true
		d.DisplayName = cmp.Or(d.DisplayName, marker.DisplayName)
		d.XDescriptors = append(d.XDescriptors, marker.XDescriptors...)
		if marker.Order != nil {
			d.Order = *marker.Order
		}
	}
	d.DisplayName = cmp.Or(d.DisplayName, olm.Title(field.Name))
	return d, marked
}

// walk calls visit for all fields of the types that an expression names, with their paths. Elements of
// lists have the path of the first one, as in operator-sdk. Types that contain themselves end the walk.
func (r *reader) walk(in *loader.Package, expression ast.Expr, at []string, within []typeName, visit func(markers.FieldInfo, string)) {
	t := r.named(in, expression)
	info := r.types[t]
	if info == nil || slices.Contains(within, t) {
		return
	}
	within = append(slices.Clone(within), t)
	for _, field := range info.Fields {
		segment, inline, ok := jsonName(field)
		switch {
		case !ok:
		case inline:
			r.walk(t.in, field.RawField.Type, at, within, visit)
		default:
			here := append(slices.Clone(at), segment)
			visit(field, strings.Join(here, "."))
			if _, isList := field.RawField.Type.(*ast.ArrayType); isList {
				here[len(here)-1] += "[0]"
			}
			r.walk(t.in, field.RawField.Type, here, within, visit)
		}
	}
	if len(info.Fields) == 0 && info.RawSpec != nil { // type Sails []Sail
		r.walk(t.in, info.RawSpec.Type, at, within, visit)
	}
}

// named returns the type whose fields are fields of values of a type expression.
func (r *reader) named(in *loader.Package, expression ast.Expr) typeName {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return r.named(in, e.X)
	case *ast.ArrayType:
		return r.named(in, e.Elt)
	case *ast.MapType:
		return r.named(in, e.Value)
	case *ast.Ident:
		return typeName{in, e.Name}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return typeName{imported(in, x), e.Sel.Name}
		}
	}
	return typeName{}
}

// imported returns the package that a name stands for in the file of that name.
func imported(in *loader.Package, x *ast.Ident) *loader.Package {
	for _, file := range in.Syntax {
		if x.Pos() < file.FileStart || x.Pos() >= file.FileEnd {
			continue
		}
		for _, spec := range file.Imports {
			at, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			found := in.Imports()[at]
			local := path.Base(at)
			if found != nil {
				local = found.Name
			}
			if spec.Name != nil {
				local = spec.Name.Name
			}
			if local == x.Name {
				return found
			}
		}
	}
	return nil
}

// jsonName returns the name of a field in JSON, or that its own fields take its place. It returns false
// if JSON does not have the field.
func jsonName(field markers.FieldInfo) (name string, inline, ok bool) {
	tag := field.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case field.Name == "" && name == "", strings.Contains(options, "inline"):
		return "", true, true
	case name == "-" && options == "", field.Name != "" && !ast.IsExported(field.Name):
		return "", false, false
	case name == "":
		return field.Name, false, true
	}
	return name, false, true
}

func fieldNamed(info *markers.TypeInfo, name string) *markers.FieldInfo {
	for i, field := range info.Fields {
		if found, inline, ok := jsonName(field); ok && !inline && found == name {
			return &info.Fields[i]
		}
	}
	return nil
}
