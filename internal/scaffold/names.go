package scaffold

import (
	"bytes"
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"path"
	"strings"

	"k8s.io/gengo/v2/namer"
	"k8s.io/gengo/v2/types"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// The templates are the files of a project with these names. The names occur nowhere in a
// template with another meaning, so they can be replaced as text.
const (
	exampleRepo    = "koboshi.example/project"
	exampleDomain  = "koboshi.example"
	exampleProject = "exampleproject"
	exampleGroup   = "gallery"
	exampleVersion = "v1alpha7"
	exampleKind    = "Exemplar"
	exampleSpoke   = "v1alpha8" // a second version of the kind
)

// A naming replaces the names of the example with those of a project and a resource.
type naming struct {
	files, text *strings.Replacer
	variable    string // the kind in lower case, as the name of a variable
}

// folders holds the folders in which layout go/v4 keeps the packages of a resource.
type folders struct{ api, controller, webhook string }

func foldersOf(multigroup bool, group, version string) folders {
	if multigroup {
		return folders{path.Join("api", group, version), path.Join("internal/controller", group), path.Join("internal/webhook", group, version)}
	}
	return folders{path.Join("api", version), "internal/controller", path.Join("internal/webhook", version)}
}

// alias returns the group as a part of a Go identifier.
func alias(group string) string {
	return strings.ToLower(strings.NewReplacer("-", "", ".", "").Replace(group))
}

// controllerPackage returns the name by which main.go refers to the package of a controller.
func controllerPackage(f *projectfile.File, r *projectfile.Resource) string {
	if f.MultiGroup {
		return alias(r.Group) + "controller"
	}
	return "controller"
}

// controllerName returns the name of the first controller of a kind. If the controller has no name
// of its own, the name is the kind in lower case.
func controllerName(r *projectfile.Resource) string {
	if len(r.Controllers) > 0 {
		return r.Controllers[0].Name
	}
	return strings.ToLower(r.Kind)
}

// camel returns the name of a controller as a part of a Go identifier, as kubebuilder does.
func camel(name string) string {
	var out strings.Builder
	for _, word := range strings.Split(name, "-") {
		if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

// namingOf returns the naming for the files of a resource, or for files that belong to no
// resource if r is nil.
func namingOf(f *projectfile.File, r *projectfile.Resource, spoke string) naming {
	project := []string{exampleRepo, f.Repo, exampleProject, f.ProjectName, exampleDomain, f.Domain}
	if r == nil {
		replacer := strings.NewReplacer(project...)
		return naming{files: replacer, text: replacer, variable: strings.ToLower(exampleKind)}
	}
	lower := strings.ToLower(r.Kind)
	example, own := foldersOf(false, exampleGroup, exampleVersion), foldersOf(f.MultiGroup, r.Group, r.Version)
	pairs := []string{
		exampleRepo + "/" + example.api, r.Path,
		exampleRepo + "/" + example.webhook, f.Repo + "/" + own.webhook,
		exampleRepo + "/" + path.Dir(example.api) + "/" + exampleSpoke, path.Dir(r.Path) + "/" + spoke,
	}
	if name := controllerName(r); name != lower {
		pairs = append(pairs,
			"controller."+exampleKind+"Reconciler", controllerPackage(f, r)+"."+camel(name)+"Reconciler",
			exampleKind+"Reconciler", camel(name)+"Reconciler",
			exampleKind+" controller", name+" controller",
			`"`+exampleGroup+"-"+strings.ToLower(exampleKind)+`"`, `"`+r.Group+"-"+name+`"`,
			strings.ToLower(exampleKind)+"_controller", strings.ReplaceAll(name, "-", "_")+"_controller",
		)
	}
	if f.MultiGroup {
		// Several packages have the name controller, and kinds of several groups may have
		// the same name.
		pairs = append(pairs,
			`"`+exampleRepo+"/"+example.controller+`"`, fmt.Sprintf("%scontroller %q", alias(r.Group), f.Repo+"/"+own.controller),
			exampleRepo+"/"+example.controller+"/", f.Repo+"/"+own.controller+"/",
			"controller."+exampleKind+"Reconciler", controllerPackage(f, r)+"."+r.Kind+"Reconciler",
			"controller."+exampleKind+"Store", controllerPackage(f, r)+"."+r.Kind+"Store",
			"controller.Add"+exampleKind, controllerPackage(f, r)+".Add"+r.Kind,
			`filepath.Join("..", ".."`, `filepath.Join("..", "..", ".."`,
			"webhook"+exampleVersion, "webhook"+alias(r.Group)+r.Version,
		)
		for _, role := range []string{"admin", "editor", "viewer"} {
			pairs = append(pairs, "exemplar-"+role+"-role", alias(r.Group)+"-"+lower+"-"+role+"-role",
				"exemplar_"+role+"_role", alias(r.Group)+"_"+lower+"_"+role+"_role")
		}
		pairs = append(pairs, "name: exemplar\nsteps", "name: "+alias(r.Group)+"-"+lower+"\nsteps")
	}
	pairs = append(pairs, exceptions(r)...)
	pairs = append(pairs, clients(r, path.Base(path.Dir(own.api)))...)
	pairs = append(pairs,
		exampleGroup+"."+exampleDomain, r.QualifiedGroup(),
		exampleGroup+"-koboshi-example", strings.ReplaceAll(r.QualifiedGroup(), ".", "-"),
		exampleGroup+exampleVersion, alias(r.Group)+r.Version,
		strings.ToUpper(exampleGroup+"_"+exampleKind), strings.ToUpper(alias(r.Group)+"_"+r.Kind),
	)
	words := append([]string{
		strings.ToLower(exampleKind) + "s", r.PluralName(), strings.ToLower(exampleKind), lower, exampleKind, r.Kind,
		exampleVersion, r.Version, exampleSpoke, spoke,
	}, project...)
	text := append(append(pairs[:len(pairs):len(pairs)], exampleGroup, r.Group), words...)
	files := append([]string{
		example.api, own.api, path.Dir(example.api) + "/" + exampleSpoke, path.Dir(own.api) + "/" + spoke,
		example.controller, own.controller, example.webhook, own.webhook,
		"api_client.go", path.Base(path.Dir(own.api)) + "_client.go",
	}, text...)
	return naming{files: strings.NewReplacer(files...), text: strings.NewReplacer(text...), variable: variable(lower)}
}

// exceptions returns the replacements for a kind that is unlike the example: objects that
// belong to no namespace, and irregular plurals.
func exceptions(r *projectfile.Resource) []string {
	cluster := r.API != nil && !r.API.Namespaced
	var resource []string
	if r.Plural != "" {
		resource = append(resource, "path="+r.Plural)
	}
	if cluster {
		resource = append(resource, "scope=Cluster")
	}
	const below = "// +kubebuilder:subresource:status\n"
	var pairs []string
	if len(resource) > 0 {
		pairs = append(pairs, below, "// +kubebuilder:resource:"+strings.Join(resource, ",")+"\n"+below)
	}
	if cluster {
		pairs = append(pairs,
			`"exemplar-"+obj.Name, obj.Namespace`, `"`+strings.ToLower(r.Kind)+`-"+obj.Name, "default"`,
			`ObjectMeta{Namespace: "default", Name: name`, "ObjectMeta{Name: name",
			"\t\tobj.Namespace = \"default\"\n", "", "\t\tbefore.Namespace = \"default\"\n", "",
			"\t\tfirst.Namespace = \"default\"\n", "", "\t\tsecond.Namespace = \"default\"\n", "",
		)
	}
	return pairs
}

// clientFolders lists the folders in which k8s.io/code-generator makes a folder for each group.
var clientFolders = []string{
	"pkg/generated/clientset/versioned/typed/", "pkg/generated/informers/externalversions/", "pkg/generated/listers/",
}

// clients returns the replacements for clients that k8s.io/code-generator generates. code-generator
// keeps the packages of a group in a folder that has the same name as the folder with the group's
// types.
func clients(r *projectfile.Resource, folder string) []string {
	pairs := []string{
		exampleGroup + exported(exampleVersion), alias(r.Group) + exported(r.Version),
		exported(exampleGroup), exported(alias(r.Group)),
		exported(exampleVersion), exported(r.Version),
	}
	for _, parent := range clientFolders {
		pairs = append(pairs, parent+"api/", parent+folder+"/")
	}
	plural, genclient := clientPlural(r.Kind), "// +genclient\n"
	if r.API != nil && !r.API.Namespaced {
		pairs = append(pairs,
			exampleKind+"s(obj.Namespace)", plural+"()",
			"."+exampleKind+"s(name.Namespace)", "",
			"NewObjectName(obj.GetNamespace(), owner.Name)", `NewObjectName("", owner.Name)`,
		)
		genclient += "// +genclient:nonNamespaced\n"
	}
	if strings.ToLower(plural) != r.PluralName() {
		genclient += "// +resourceName=" + r.PluralName() + "\n"
	}
	return append(pairs, "// +genclient\n", genclient, exampleKind+"s", plural)
}

// exported returns the name of a Go identifier as an exported one.
func exported(name string) string { return namer.IC(name) }

// clientPlural returns the plural of a kind in the names of generated clients.
func clientPlural(kind string) string {
	return namer.NewPublicPluralNamer(nil).Name(&types.Type{Name: types.Name{Name: kind}})
}

// variable returns a name for a variable, which must not be a keyword, as for the kind Map.
func variable(lower string) string {
	if token.IsKeyword(lower) {
		return lower + "Object"
	}
	return lower
}

// path returns the path of a file in the project.
func (n naming) path(template string) string {
	switch template {
	case "gomod":
		return "go.mod" // a folder with a go.mod would be a module, which cannot be embedded
	case "gosum":
		return "go.sum"
	}
	return n.files.Replace(template)
}

// content returns the content of a file in the project.
func (n naming) content(name string, template []byte) ([]byte, error) {
	if path.Ext(name) != ".go" {
		return []byte(n.text.Replace(string(template))), nil
	}
	text := n.text.Replace(string(n.variables(template)))
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("formatting %s: %w", name, err)
	}
	return formatted, nil
}

// variables replaces the identifier that is the kind in lower case.
func (n naming) variables(source []byte) []byte {
	var out bytes.Buffer
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(source)), source, nil, scanner.ScanComments)
	copied := 0
	for {
		at, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.IDENT && literal == strings.ToLower(exampleKind) {
			offset := set.Position(at).Offset
			out.Write(source[copied:offset])
			out.WriteString(n.variable)
			copied = offset + len(literal)
		}
	}
	out.Write(source[copied:])
	return out.Bytes()
}
