// Package scaffold writes and edits projects in kubebuilder's layout go/v4.
//
// The content of a scaffolded project is a function of its PROJECT file. A command edits PROJECT,
// and applies the resulting difference to the files of the project:
//
//	PROJECT before ──render──▶ Tree ─┐
//	PROJECT after ───render──▶ Tree ─┴difference─▶ merge with the files ──▶ Changes
//
// So a command changes only the parts in which the two renderings differ. Whatever a person has
// edited stays, even in projects that kubebuilder or operator-sdk has scaffolded.
//
// A project contains the templates from which it was made, and every command renders with these
// templates. Only Update replaces them: it renders the same PROJECT with the old and with the new
// templates, and merges the difference.
package scaffold

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// A Tree holds the files that belong to a project, by path.
type Tree map[string]File

// A File is a file that koboshi scaffolds.
type File struct {
	// ID identifies the file when its path changes, as when a project gets several groups.
	ID string
	// Content is the complete file.
	Content []byte
	// Shared means that the file belongs to no single resource, and that other resources may need
	// it.
	Shared bool
	// Generated means that koboshi generate replaces the file, so it is never merged.
	Generated bool
}

// The layers. A layer with a plural name holds files that exist once, however many resources there
// are; the other layers hold the files of one resource. If a file is in several layers, each layer
// adds to it the difference from the next lower layer.
const (
	layerInit        = "init"
	layerAPIs        = "apis"
	layerAPI         = "api"
	layerScheme      = "scheme"  // adds the types to the manager
	layerStorage     = "storage" // marks the stored one of several versions
	layerControllers = "controllers"
	layerController  = "controller"
	layerExternal    = "external"
	layerBare        = "bare" // the controller of a kind that the project does not define
	layerWebhooks    = "webhooks"
	layerWebhook     = "webhook"
	layerAdmission   = "admission"
	layerDefaulting  = "defaulting"
	layerValidation  = "validation"
	layerBareWebhook = "barewebhook" // tests for the webhooks of such a kind
	layerSample      = "sample"      // reads samples in the tests of webhooks
	layerConversion  = "conversion"
	layerSpoke       = "spoke"

	// A project with the shape client-go has these layers instead of some of the others.
	layerClientGo           = "clientgo"
	layerClientGoAPI        = "clientgoapi"
	layerClientGoController = "clientgocontroller"
)

// below lists the layers that a layer changes, the lowest first.
var below = map[string][]string{
	layerAPIs:        {layerInit},
	layerAPI:         {layerAPIs},
	layerScheme:      {layerInit},
	layerStorage:     {layerAPI},
	layerControllers: {layerInit},
	layerController:  {layerInit, layerControllers},
	layerExternal:    {layerInit, layerAPIs},
	layerWebhooks:    {layerInit},
	layerWebhook:     {layerInit, layerWebhooks},
	layerAdmission:   {layerWebhooks},
	layerDefaulting:  {layerWebhook},
	layerValidation:  {layerWebhook},
	layerConversion:  {layerAPIs},
	layerSpoke:       {layerWebhooks},

	layerClientGoController: {layerClientGo},
}

// A scaffolding holds everything, except PROJECT, that determines the content of a project.
type scaffolding struct {
	templates Templates
	header    string // the comment at the top of each Go file; it may be empty
	// lenient leaves out the parts for which there are no templates.
	lenient bool
}

// scaffoldingOf returns the scaffolding from which the project in a folder was made. A project
// of kubebuilder has no templates, so it gets those of this program.
func scaffoldingOf(dir string) (s scaffolding, err error) {
	if s.header, err = headerOf(dir); err != nil {
		return s, err
	}
	recorded, err := recordOf(dir)
	if err != nil || recorded == nil {
		s.templates = embedded()
		return s, err
	}
	s.templates = recorded.templates
	return s, nil
}

// render returns the files of a project that has just been scaffolded.
func (s scaffolding) render(f *projectfile.File) (Tree, error) {
	r := renderer{scaffolding: s, project: f, tree: Tree{}}
	if usesClientGo(f) {
		r.layer(layerClientGo, nil, "") // comes first, because no layer replaces a file
	}
	r.layer(layerInit, nil, "")
	for i := range f.Resources {
		r.resource(&f.Resources[i])
	}
	return r.tree, r.err
}

// A renderer collects the files of a project.
type renderer struct {
	scaffolding
	project    *projectfile.File
	controller int // the index of the controller of a kind that has several
	tree       Tree
	err        error // the first error
}

func (r *renderer) resource(res *projectfile.Resource) {
	own, clientGo := res.Own(), usesClientGo(r.project)
	shape := r.project.Shape(*res)
	if own {
		switch {
		case clientGo:
			r.layer(layerClientGoAPI, res, "")
		case shape == ShapeExternal:
			r.externalTypes(res)
		}
		r.layer(layerAPIs, nil, "")
		r.layer(layerAPI, res, "")
		if r.stored(res) {
			r.layer(layerStorage, res, "")
		}
	}
	if (own || res.External) && !clientGo {
		r.layer(layerScheme, res, "")
	}
	if res.Reconciled() {
		r.controllers(res, shape)
	}
	if res.HasWebhooks() {
		r.webhooks(res, res.Webhooks, own)
	}
}

// controllers adds the controllers of a kind. All controllers but the first only read the objects
// of the kind.
func (r *renderer) controllers(res *projectfile.Resource, shape string) {
	if shape == ShapeClientGo {
		r.layer(layerClientGoController, res, "")
		return
	}
	r.layer(layerControllers, res, "")
	switch {
	case res.Own() && shape == ShapeExternal:
		r.externalController(res)
	case res.Own():
		r.layer(layerController, res, "")
	default:
		r.bareController(res)
	}
	for r.controller = 1; r.controller < len(res.Controllers); r.controller++ {
		other := *res
		other.Controllers = res.Controllers[r.controller:]
		r.bareController(&other)
	}
	r.controller = 0
}

// bareController adds a controller that only reads its objects: for a kind that the project
// does not define, or as another controller of a kind. It is added to the manager and to the
// tests like any other controller.
func (r *renderer) bareController(res *projectfile.Resource) {
	names := namingOf(r.project, res, "")
	for _, file := range []string{"cmd/main.go", "internal/controller/suite_test.go"} {
		r.add(r.file(layerController, file, names, res))
	}
	r.layer(layerBare, res, "")
}

func (r *renderer) webhooks(res *projectfile.Resource, w *projectfile.Webhooks, own bool) {
	if !own && (w.Defaulting || w.Validation) {
		r.bareWebhooks(res, w)
	}
	r.layer(layerWebhooks, res, "")
	r.layer(layerWebhook, res, "")
	if own && (w.Defaulting || w.Validation || len(w.Spoke) > 0) {
		r.layer(layerSample, res, "")
	}
	if w.Defaulting || w.Validation {
		r.layer(layerAdmission, res, "")
	}
	if w.Defaulting {
		r.layer(layerDefaulting, res, "")
	}
	if w.Validation {
		r.layer(layerValidation, res, "")
	}
	if w.Conversion {
		r.layer(layerConversion, res, "")
	}
	for _, spoke := range w.Spoke {
		r.layer(layerSpoke, res, spoke)
	}
}

// bareWebhooks adds the tests of webhooks for a kind without samples. These tests replace the tests
// in the layers defaulting and validation.
func (r *renderer) bareWebhooks(res *projectfile.Resource, w *projectfile.Webhooks) {
	names := namingOf(r.project, res, "")
	for name, wanted := range map[string]bool{"exemplar_defaulter_test.go": w.Defaulting, "exemplar_validator_test.go": w.Validation} {
		if wanted {
			r.add(r.file(layerBareWebhook, "internal/webhook/v1alpha7/"+name, names, res))
		}
	}
}

// stored reports whether the version must be marked as the one that is stored. The stored version
// is the hub of the conversion, or else the first version.
func (r *renderer) stored(res *projectfile.Resource) bool {
	var versions []projectfile.Resource
	for _, other := range r.project.Resources {
		if sameKind(other, *res) && other.API != nil {
			versions = append(versions, other)
		}
	}
	hub := slices.IndexFunc(versions, func(v projectfile.Resource) bool { return v.Webhooks != nil && v.Webhooks.Conversion })
	return len(versions) > 1 && versions[max(hub, 0)].Version == res.Version
}

func (r *renderer) add(err error) { r.err = cmp.Or(r.err, err) }

// layer adds the files of a layer.
func (r *renderer) layer(name string, res *projectfile.Resource, spoke string) {
	names := namingOf(r.project, res, spoke)
	files := r.templates.layer(name)
	if len(files) == 0 && !r.lenient {
		r.add(errMissing("layer " + name))
	}
	for _, file := range files {
		r.add(r.file(name, file, names, res))
	}
}

// errMissing returns the error for a part of a project that the recorded templates, which are
// older than this program, do not have.
func errMissing(part string) error {
	return fmt.Errorf("the templates of the project, in %s, have no %s; run koboshi edit --update first", recordPath, part)
}

// file adds one file of a layer, or what the layer adds to the file of a lower layer.
func (r *renderer) file(layer, template string, names naming, res *projectfile.Resource) error {
	content, err := r.read(layer, template, names)
	if content == nil && err == nil && !r.lenient {
		err = errMissing("file " + path.Join(layer, template))
	}
	if content == nil || err != nil {
		return err
	}
	var base []byte
	for _, lower := range below[layer] {
		if data, err := r.read(lower, template, names); err == nil && data != nil {
			base = data
		}
	}
	at := names.path(template)
	have, exists := r.tree[at]
	switch {
	case !exists:
		id := template
		if res != nil && at != template {
			id = fmt.Sprintf("%s#%d %s/%s %s", template, r.controller, res.QualifiedGroup(), res.Version, res.Kind)
		}
		shared := !strings.Contains(template, strings.ToLower(exampleKind))
		r.tree[at] = File{ID: id, Content: content, Shared: shared, Generated: generated(at)}
		return nil
	case have.Generated || base == nil:
		return nil // another resource has added the same file
	}
	merged, conflicts := merge.File(at, base, have.Content, content)
	if len(conflicts) > 0 {
		return fmt.Errorf("%s: %s", at, conflicts[0])
	}
	have.Content = merged
	r.tree[at] = have
	return nil
}

// read returns a file of a layer with the names and the header of the project, or nil if there
// is no such file.
func (r *renderer) read(layer, template string, names naming) ([]byte, error) {
	data, ok := r.templates[path.Join(layer, template)]
	if !ok {
		return nil, nil
	}
	data, err := names.content(template, data)
	if err != nil {
		return nil, err
	}
	return r.withHeader(template, data), nil
}

// generated reports whether koboshi generate writes the file.
func generated(name string) bool {
	return strings.HasPrefix(path.Base(name), "zz_generated.") || strings.HasPrefix(name, "config/crd/bases/") || strings.HasPrefix(name, "pkg/generated/") ||
		name == "config/rbac/role.yaml" || name == "config/webhook/manifests.yaml"
}

// Paths returns the paths of the files, sorted.
func (t Tree) Paths() []string { return slices.Sorted(maps.Keys(t)) }
