package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// checkName returns an error if the kind cannot have a controller of this name.
func (o *APIOptions) checkName(f *projectfile.File, r projectfile.Resource) error {
	if o.ControllerName == "" {
		return nil
	}
	if !o.Controller {
		return fmt.Errorf("--controller-name %s: --controller is false; omit one of them", o.ControllerName)
	}
	if problems := validation.IsDNS1035Label(o.ControllerName); len(problems) > 0 {
		return fmt.Errorf("--controller-name %q: %s", o.ControllerName, problems[0])
	}
	for _, other := range f.Resources {
		if other.Kind == r.Kind && other.QualifiedGroup() == r.QualifiedGroup() && other.Version != r.Version && other.Reconciled() {
			return fmt.Errorf("the controllers of kind %s belong to version %s; use --version %s", r.Kind, other.Version, other.Version)
		}
	}
	return nil
}

// addController adds a named controller to a kind. If the kind has a controller without a name,
// this controller gets the name of the kind, as in kubebuilder.
func addController(r *projectfile.Resource, name string) {
	kind := strings.ToLower(r.Kind)
	if r.Controller && name == kind {
		return
	}
	controllers := slices.Clone(r.Controllers)
	if r.Controller {
		r.Controller = false
		controllers = append(controllers, projectfile.Controller{Name: kind})
	}
	added := projectfile.Controller{Name: name}
	if !slices.Contains(controllers, added) {
		controllers = append(controllers, added)
	}
	r.Controllers = controllers
}

// checkControllers returns an error if two controllers would have the same file or the same
// Go type.
func checkControllers(f *projectfile.File) error {
	used := map[string]string{}
	for _, r := range f.Resources {
		controllers := r.Controllers
		if r.Controller && len(controllers) == 0 {
			controllers = []projectfile.Controller{{Name: strings.ToLower(r.Kind)}}
		}
		for _, c := range controllers {
			of := fmt.Sprintf("controller %s of kind %s", c.Name, r.Kind)
			key := foldersOf(f.MultiGroup, r.Group, r.Version).controller + " " + strings.ReplaceAll(c.Name, "-", "")
			if other, exists := used[key]; exists && other != of {
				return fmt.Errorf("the %s would have the same Go type as the %s; choose another name with --controller-name", of, other)
			}
			used[key] = of
		}
	}
	return nil
}
