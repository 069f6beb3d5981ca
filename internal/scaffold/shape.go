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
)

// Shapes lists the shapes.
var Shapes = []string{ShapeChildren, ShapeExternal}

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

// checkShape returns an error if there is no such shape, or no such kind can have it.
func checkShape(o APIOptions, r projectfile.Resource) error {
	switch {
	case o.Shape == "":
		return nil
	case !slices.Contains(Shapes, o.Shape):
		return fmt.Errorf("unknown shape %q; choose one of: %s", o.Shape, strings.Join(Shapes, ", "))
	case r.API == nil && !o.Resource || !o.Controller:
		return fmt.Errorf("--shape %s needs a kind and a controller of this project; omit --shape, --resource=false and --controller=false", o.Shape)
	}
	return nil
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
