// Package projectfile reads and edits PROJECT, the file in which kubebuilder and koboshi record
// what they have scaffolded in a project.
//
// kubebuilder documents version 3 of the file at
// https://book.kubebuilder.io/reference/project-config.html. An edit keeps all comments, and
// all keys that this package does not know, such as the settings of kubebuilder's plugins.
// kubebuilder can therefore continue to work on the project.
package projectfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Name is the name of the file, which is in the project's folder.
const Name = "PROJECT"

// Version is the version of the format that this package writes.
const Version = "3"

// LayoutV4 is the layout that kubebuilder calls go/v4: cmd/main.go, api and internal.
const LayoutV4 = "go.kubebuilder.io/v4"

// File is the content of a PROJECT file. Its fields are in the order in which kubebuilder
// writes them.
type File struct {
	CLIVersion  string     `yaml:"cliVersion,omitempty"`
	Domain      string     `yaml:"domain,omitempty"`
	Layout      plugins    `yaml:"layout,omitempty"`
	MultiGroup  bool       `yaml:"multigroup,omitempty"`
	Namespaced  bool       `yaml:"namespaced,omitempty"`
	Plugins     Settings   `yaml:"plugins,omitempty"`
	ProjectName string     `yaml:"projectName,omitempty"`
	Repo        string     `yaml:"repo,omitempty"`
	Resources   []Resource `yaml:"resources,omitempty"`
	Version     string     `yaml:"version"`

	// data is the file as it was read, and read is the parsed form of data.
	data []byte
	read *File
}

// plugins lists the plugins that scaffolded the project. Old files have a string instead.
type plugins []string

func (p *plugins) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*p = plugins{node.Value}
		return nil
	}
	return node.Decode((*[]string)(p))
}

// Settings holds the settings of koboshi. kubebuilder keeps them, because it stores the
// settings of its plugins in the same place.
type Settings struct {
	Shapes Shapes `yaml:"shapes.koboshi.dev/v1,omitempty"`
}

// Shapes lists the kinds whose controller does not have the default shape.
type Shapes struct {
	Resources []Shape `yaml:"resources,omitempty"`
}

// Shape names the shape of a kind in all its versions.
type Shape struct {
	Domain string `yaml:"domain,omitempty"`
	Group  string `yaml:"group,omitempty"`
	Kind   string `yaml:"kind"`
	Name   string `yaml:"shape"`
}

// Resource is a kind for which the project has an API, a controller or webhooks.
type Resource struct {
	API         *API         `yaml:"api,omitempty"`
	Controller  bool         `yaml:"controller,omitempty"`
	Controllers []Controller `yaml:"controllers,omitempty"`
	// Core means that the API belongs to Kubernetes.
	Core   bool   `yaml:"core,omitempty"`
	Domain string `yaml:"domain,omitempty"`
	// External means that the API belongs to another project, whose module is Module.
	External bool   `yaml:"external,omitempty"`
	Group    string `yaml:"group,omitempty"`
	Kind     string `yaml:"kind"`
	Module   string `yaml:"module,omitempty"`
	// Path is the import path of the package that contains the type.
	Path string `yaml:"path,omitempty"`
	// If Plural is empty, the kind has the plural that RegularPlural returns.
	Plural   string    `yaml:"plural,omitempty"`
	Version  string    `yaml:"version"`
	Webhooks *Webhooks `yaml:"webhooks,omitempty"`
}

// API describes how the project defines a kind.
type API struct {
	CRDVersion string `yaml:"crdVersion,omitempty"`
	Namespaced bool   `yaml:"namespaced,omitempty"`
	SSA        bool   `yaml:"ssa,omitempty"`
}

// Controller is one of several controllers of a kind.
type Controller struct {
	Name string `yaml:"name"`
}

// Webhooks lists the webhooks that the project has for a kind.
type Webhooks struct {
	Conversion     bool     `yaml:"conversion,omitempty"`
	Defaulting     bool     `yaml:"defaulting,omitempty"`
	DefaultingPath string   `yaml:"defaultingPath,omitempty"`
	Spoke          []string `yaml:"spoke,omitempty"`
	Validation     bool     `yaml:"validation,omitempty"`
	ValidationPath string   `yaml:"validationPath,omitempty"`
	WebhookVersion string   `yaml:"webhookVersion,omitempty"`
}

// QualifiedGroup returns the API group with its domain.
func (r Resource) QualifiedGroup() string {
	if r.Core && r.Group == "core" {
		return "" // the group of Pods has no name, but kubebuilder calls it core
	}
	return strings.Trim(r.Group+"."+r.Domain, ".")
}

// Reconciled reports whether the project has a controller for the resource.
func (r Resource) Reconciled() bool { return r.Controller || len(r.Controllers) > 0 }

// Own reports whether the project defines the kind itself.
func (r Resource) Own() bool { return r.API != nil && !r.Core && !r.External }

// HasWebhooks reports whether the project has a webhook of any type for the resource.
func (r Resource) HasWebhooks() bool {
	w := r.Webhooks
	return w != nil && (w.Defaulting || w.Validation || w.Conversion)
}

// Same reports whether both resources have the same group, version and kind.
func (r Resource) Same(other Resource) bool {
	return r.Group == other.Group && r.Domain == other.Domain && r.Version == other.Version && r.Kind == other.Kind
}

// sameKind reports whether both resources are versions of the same kind.
func (r Resource) sameKind(other Resource) bool {
	return r.Group == other.Group && r.Domain == other.Domain && r.Kind == other.Kind
}

// New returns the file of a project without resources.
func New(name, domain, repo string) *File {
	f := &File{Domain: domain, Layout: plugins{LayoutV4}, ProjectName: name, Repo: repo, Version: Version}
	f.data, f.read = []byte("# This file records what koboshi or kubebuilder has scaffolded.\n"), &File{}
	return f
}

// Read reads the file PROJECT of a project's folder. If there is none, as in a project that
// was written by hand, Read returns an empty File.
func Read(dir string) (*File, error) {
	data, err := os.ReadFile(filepath.Join(dir, Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return Parse(data)
}

// Parse reads the content of a file, which may be of any version. Check must be called
// before the file is edited.
func Parse(data []byte) (*File, error) {
	f, read := &File{}, &File{}
	for _, into := range []*File{f, read} {
		if err := yaml.Unmarshal(data, into); err != nil {
			return nil, fmt.Errorf("%s: %w; correct the YAML", Name, err)
		}
	}
	f.data, f.read = data, read
	return f, nil
}

// Check returns an error if this package cannot edit the file.
func (f *File) Check() error {
	switch {
	case f.Version == "":
		return fmt.Errorf("%s: there is no version; change to the folder of a kubebuilder project, or add the version", Name)
	case f.Version != Version:
		return fmt.Errorf("%s: version %q is not supported, only version %q is; use kubebuilder to migrate the project", Name, f.Version, Version)
	case !slices.Contains(f.Layout, LayoutV4):
		return fmt.Errorf("%s: layout %q is not supported, only %q is; use kubebuilder to migrate the project",
			Name, strings.Join(f.Layout, ","), LayoutV4)
	}
	return nil
}

// Find returns the resource of the same group, version and kind, or nil.
func (f *File) Find(r Resource) *Resource {
	if i := slices.IndexFunc(f.Resources, r.Same); i >= 0 {
		return &f.Resources[i]
	}
	return nil
}

// Set adds a resource, or replaces the one of the same group, version and kind.
func (f *File) Set(r Resource) {
	if old := f.Find(r); old != nil {
		*old = r
		return
	}
	f.Resources = append(f.Resources, r)
}

// Delete removes the resource of the same group, version and kind, if there is one. The
// shape of the kind is removed with its last version.
func (f *File) Delete(r Resource) {
	f.Resources = slices.DeleteFunc(f.Resources, r.Same)
	if !slices.ContainsFunc(f.Resources, r.sameKind) {
		f.SetShape(r, "")
	}
}

// Shape returns the name of the shape of a kind, or "" for the default one.
func (f *File) Shape(r Resource) string {
	for _, s := range f.Plugins.Shapes.Resources {
		if s.of(r) {
			return s.Name
		}
	}
	return ""
}

// SetShape records the shape of a kind. An empty name means the default one.
func (f *File) SetShape(r Resource, name string) {
	shapes := &f.Plugins.Shapes
	shapes.Resources = slices.DeleteFunc(shapes.Resources, func(s Shape) bool { return s.of(r) })
	if name != "" {
		shapes.Resources = append(shapes.Resources, Shape{Domain: r.Domain, Group: r.Group, Kind: r.Kind, Name: name})
	}
}

// RenameShape gives the shape of a kind to the kind with the new name.
func (f *File) RenameShape(r Resource, kind string) {
	for i, s := range f.Plugins.Shapes.Resources {
		if s.of(r) {
			f.Plugins.Shapes.Resources[i].Kind = kind
		}
	}
}

func (s Shape) of(r Resource) bool {
	return s.Domain == r.Domain && s.Group == r.Group && s.Kind == r.Kind
}
