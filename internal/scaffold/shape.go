package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// These are the shapes of a controller, which are examples of what controllers do.
const (
	// ShapeChildren owns objects in the cluster. It is the default.
	ShapeChildren = "children"
	// ShapeExternal owns something outside the cluster.
	ShapeExternal = "external"
	// ShapeClientGo owns objects in the cluster, and uses client-go alone, with clients that
	// k8s.io/code-generator generates. All controllers of a project have this shape, or none.
	ShapeClientGo = "client-go"
)

// Shapes lists the shapes.
var Shapes = []string{ShapeChildren, ShapeExternal, ShapeClientGo}

// setShape records the shape of a kind. An empty shape means that it stays as it is.
func setShape(f *projectfile.File, r projectfile.Resource, shape string) {
	switch shape {
	case "":
	case ShapeChildren:
		f.SetShape(r, "")
	default:
		f.SetShape(r, shape)
	}
}

// checkShape returns an error if the shape does not exist, or if the kind or its controller cannot
// have it.
func (o *APIOptions) checkShape(f *projectfile.File, r projectfile.Resource) error {
	switch {
	case o.Shape != "" && !slices.Contains(Shapes, o.Shape):
		return fmt.Errorf("unknown shape %q; choose one of: %s", o.Shape, strings.Join(Shapes, ", "))
	case o.Shape != "" && (r.API == nil && !o.Resource || !o.Controller):
		return fmt.Errorf("--shape %s needs a kind and a controller of this project; omit --shape, --resource=false and --controller=false", o.Shape)
	}
	return o.checkClientGo(f, r)
}

// checkClientGo returns an error if only some controllers of the project would have the shape
// client-go, because such a project has no manager of controller-runtime. In a project
// whose controllers have this shape, a new controller gets it by default.
func (o *APIOptions) checkClientGo(f *projectfile.File, r projectfile.Resource) error {
	alone := !slices.ContainsFunc(f.Resources, func(other projectfile.Resource) bool {
		return (other.Reconciled() || other.HasWebhooks()) && !sameKind(other, r)
	})
	switch clientGo := usesClientGo(f); {
	case o.Shape == ShapeClientGo && r.HasWebhooks():
		return fmt.Errorf("kind %s has webhooks, which need a controller-runtime manager; delete them first with koboshi delete webhook", r.Kind)
	case o.Shape == ShapeClientGo && f.MultiGroup && strings.ContainsAny(r.Group, "-."):
		return fmt.Errorf("group %s: code-generator names a Go package after the group; use a group of letters and digits", r.Group)
	case o.Shape == ShapeClientGo && !clientGo && !alone:
		return fmt.Errorf("the project has controllers or webhooks that use controller-runtime; create kind %s in a project of its own, or omit --shape %s", r.Kind, o.Shape)
	case clientGo && !alone && o.Shape != "" && o.Shape != ShapeClientGo:
		return fmt.Errorf("the project has controllers that use client-go alone; create kind %s in a project of its own, or use --shape %s", r.Kind, ShapeClientGo)
	case clientGo && o.Controller && r.API == nil && !o.Resource:
		return fmt.Errorf("the project's controllers use client-go alone and can reconcile only kinds that the project defines; create the controller of kind %s in a project of its own", r.Kind)
	case (clientGo || o.Shape == ShapeClientGo) && o.ControllerName != "":
		return fmt.Errorf("kind %s uses client-go alone, with one controller for each kind; omit --controller-name", r.Kind)
	case clientGo && o.Controller && o.Shape == "":
		o.Shape = ShapeClientGo
	}
	return nil
}

func sameKind(a, b projectfile.Resource) bool {
	return a.Kind == b.Kind && a.QualifiedGroup() == b.QualifiedGroup()
}

// usesClientGo reports whether the controllers of the project have the shape client-go.
func usesClientGo(f *projectfile.File) bool {
	return slices.ContainsFunc(f.Resources, func(r projectfile.Resource) bool { return f.Shape(r) == ShapeClientGo })
}

// externalTypes adds the types of a kind with the shape external. They come before the files
// of the layer api, which does not replace files that exist.
func (r *renderer) externalTypes(res *projectfile.Resource) {
	names := namingOf(r.project, res, "")
	for _, file := range []string{"exemplar_types.go", "zz_generated.deepcopy.go"} {
		r.add(r.file(layerExternal, "api/v1alpha7/"+file, names, res))
	}
	r.add(r.file(layerExternal, "config/crd/bases/gallery.koboshi.example_exemplars.yaml", names, res))
}

// externalController adds a controller with the shape external. It is added to the tests
// like any other controller.
func (r *renderer) externalController(res *projectfile.Resource) {
	names := namingOf(r.project, res, "")
	for _, file := range []string{"manager_test.go", "suite_test.go"} {
		r.add(r.file(layerController, "internal/controller/"+file, names, res))
	}
	r.layer(layerExternal, res, "")
}
