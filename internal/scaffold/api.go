package scaffold

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// A Kind names a kind of object, as users give it.
type Kind struct {
	Group, Version, Kind string
	Plural               string // empty means the regular plural
	// ExternalPath is the import path of the package that defines a kind of another project,
	// ExternalDomain is the domain of its group, and ExternalModule is the module with its version,
	// if go get should not choose one.
	ExternalPath, ExternalDomain, ExternalModule string
}

// APIOptions describes an API and its controller.
type APIOptions struct {
	Dir string
	Kind
	Resource, Controller bool
	// ControllerName names a controller of a kind that may have several. Empty means the only
	// controller of the kind.
	ControllerName string
	// ClusterScoped means that the objects belong to no namespace.
	ClusterScoped bool
	// Shape is one of Shapes, or empty to keep the shape that the kind has.
	Shape string
	Force bool
}

// CreateAPI plans a new API, or a controller for an existing one.
func CreateAPI(o APIOptions) (*Plan, error) {
	f, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	r, err := o.resource(f, o.Resource)
	if err != nil {
		return nil, err
	}
	if !o.Resource && !o.Controller {
		return nil, errors.New("there is nothing to create: --resource and --controller are both false")
	}
	if old := f.Find(r); old != nil {
		r = *old
	}
	if o.Resource && (r.Core || r.External) {
		return nil, fmt.Errorf("kind %s is defined elsewhere; use --resource=false to create only a controller", r.Kind)
	}
	if err := o.checkShape(f, r); err != nil {
		return nil, err
	}
	if err := o.checkName(f, r); err != nil {
		return nil, err
	}
	p, err := plan(o.Dir, f, o.Force, func(f *projectfile.File) error {
		setShape(f, r, o.Shape)
		if o.Resource && r.API == nil {
			r.API = &projectfile.API{CRDVersion: "v1", Namespaced: !o.ClusterScoped}
		}
		if o.Controller && r.API == nil && !r.Core && !r.External {
			return fmt.Errorf("the project has no API for kind %s; use --resource, or name its package with --external-api-path", r.Kind)
		}
		switch {
		case o.ControllerName != "":
			addController(&r, o.ControllerName)
		case o.Controller && !controlled(f, r):
			r.Controller = true
		}
		f.Set(r)
		return checkControllers(f)
	})
	if err != nil {
		return nil, err
	}
	p.Generate = true
	if r.External {
		p.Modules = append(p.Modules, moduleArgument(o.Kind))
	}
	return p, nil
}

// controlled reports whether a version of the kind has a controller already.
func controlled(f *projectfile.File, r projectfile.Resource) bool {
	return slices.ContainsFunc(f.Resources, func(other projectfile.Resource) bool {
		return sameKind(other, r) && other.Reconciled()
	})
}

// moduleArgument returns the argument of go get for a kind of another project.
func moduleArgument(k Kind) string {
	if k.ExternalModule != "" {
		return k.ExternalModule
	}
	return k.ExternalPath
}

// resource returns the entry for PROJECT, and checks the names. If own is set, the project
// itself defines the kind, even if the group has the name of one of Kubernetes' groups.
func (k Kind) resource(f *projectfile.File, own bool) (projectfile.Resource, error) {
	r := projectfile.Resource{Group: k.Group, Version: k.Version, Kind: k.Kind, Domain: f.Domain}
	for _, needed := range []struct{ flag, value string }{{"--version", k.Version}, {"--kind", k.Kind}} {
		if needed.value == "" {
			return r, fmt.Errorf("%s is missing", needed.flag)
		}
	}
	if problems := validation.IsDNS1035Label(k.Plural); k.Plural != "" && len(problems) > 0 {
		return r, fmt.Errorf("--plural %q: %s", k.Plural, problems[0])
	}
	if k.Plural != "" && k.Plural != projectfile.RegularPlural(k.Kind) {
		r.Plural = k.Plural
	}
	switch domain, core := coreGroups[k.Group]; {
	case k.ExternalPath != "":
		r.External, r.Path, r.Domain = true, k.ExternalPath, k.ExternalDomain
		r.Module = k.ExternalModule
	case core && !own && !defines(f, k.Group):
		r.Core, r.Domain = true, domain
		r.Path = path.Join("k8s.io/api", k.Group, k.Version)
	default:
		r.Path = path.Join(f.Repo, foldersOf(f.MultiGroup, k.Group, k.Version).api)
	}
	if err := r.CheckNames(); err != nil {
		return r, err
	}
	return r, checkGroup(f, r)
}

// checkGroup refuses a second group in a project with one folder for all APIs.
func checkGroup(f *projectfile.File, r projectfile.Resource) error {
	if f.MultiGroup || r.Core || r.External {
		return nil
	}
	for _, other := range f.Resources {
		if other.API != nil && other.Group != r.Group {
			return fmt.Errorf("the project has the API group %s; to add the group %s, first run koboshi edit --multigroup", other.Group, r.Group)
		}
	}
	return nil
}

func defines(f *projectfile.File, group string) bool {
	return slices.ContainsFunc(f.Resources, func(r projectfile.Resource) bool { return r.Group == group && r.API != nil })
}

// coreGroups lists the groups of Kubernetes' own kinds that kubebuilder accepts for --group, each
// with its domain.
var coreGroups = map[string]string{
	"admission": "k8s.io", "admissionregistration": "k8s.io", "apps": "", "auditregistration": "k8s.io",
	"apiextensions": "k8s.io", "authentication": "k8s.io", "authorization": "k8s.io", "autoscaling": "",
	"batch": "", "certificates": "k8s.io", "coordination": "k8s.io", "core": "k8s.io", "events": "k8s.io",
	"extensions": "", "imagepolicy": "k8s.io", "networking": "k8s.io", "node": "k8s.io",
	"metrics": "k8s.io", "policy": "", "rbac.authorization": "k8s.io", "scheduling": "k8s.io",
	"setting": "k8s.io", "storage": "k8s.io",
}
