package usage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
)

// The definitions are written by hand, so this test compares them with the types.
func TestOpenAPISaysWhatTheTypesSay(t *testing.T) {
	definitions := openAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) })
	comments := typeComments(t, "../../api/usage/v1/bucketusage_types.go")
	for _, kind := range []interface{ OpenAPIModelName() string }{usagev1.BucketUsage{}, usagev1.BucketUsageList{}} {
		of := reflect.TypeOf(kind)
		t.Run(of.Name(), func(t *testing.T) {
			definition := definitions[kind.OpenAPIModelName()]
			want, required := fieldsOf(of, comments[of.Name()])
			want[""] = comments[of.Name()][""]
			got := map[string]string{"": definition.Schema.Description}
			for name, property := range definition.Schema.Properties {
				if name != "kind" && name != "apiVersion" {
					got[name] = property.Description
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields and their descriptions differ (-comments +openapi.go):\n%s", diff)
			}
			if diff := cmp.Diff(required, slices.Sorted(slices.Values(definition.Schema.Required))); diff != "" {
				t.Errorf("required fields differ (-types +openapi.go):\n%s", diff)
			}
			wantDependencies(t, definitions, definition)
		})
	}
}

func wantDependencies(t *testing.T, definitions map[string]common.OpenAPIDefinition, d common.OpenAPIDefinition) {
	t.Helper()
	for _, name := range d.Dependencies {
		if _, ok := definitions[name]; !ok {
			t.Errorf("%s is referred to and not defined", name)
		}
	}
}

// fieldsOf returns the JSON names of a kind's fields with the comments of the
// Go fields, and the names of the fields that are always present.
func fieldsOf(of reflect.Type, comments map[string]string) (fields map[string]string, required []string) {
	fields = map[string]string{}
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		fields[name] = comments[f.Name]
		if options == "" {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return fields, required
}

// typeComments returns the comments of types and their fields, each as one line without
// markers. The key "" stands for the type itself.
func typeComments(t *testing.T, path string) map[string]map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]string{}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}
		of := decl.Specs[0].(*ast.TypeSpec)
		comments := map[string]string{"": line(decl.Doc)}
		for _, f := range of.Type.(*ast.StructType).Fields.List {
			name := fieldName(f)
			comments[name] = line(f.Doc)
		}
		all[of.Name.Name] = comments
	}
	return all
}

func fieldName(f *ast.Field) string {
	if len(f.Names) > 0 {
		return f.Names[0].Name
	}
	return f.Type.(*ast.SelectorExpr).Sel.Name // embedded
}

func line(doc *ast.CommentGroup) string {
	var lines []string
	for l := range strings.Lines(doc.Text()) {
		if l = strings.TrimSpace(l); !strings.HasPrefix(l, "+") {
			lines = append(lines, l)
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}
