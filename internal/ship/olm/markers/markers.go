// Package markers reads the markers of operator-sdk that describe custom resources for catalogs:
//
//	// +operator-sdk:csv:customresourcedefinitions:displayName="Boat",resources={{Deployment,v1,sail}}
//	type Boat struct …
//
//	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Number of sails",xDescriptors={"urn:…"}
//	Sails int32 `json:"sails"`
//
// The grammar is that of controller-tools, with the fields that operator-sdk defines in
// internal/generate/clusterserviceversion/bases/definitions/markers.go. So are the paths of fields.
package markers

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

// markerName is the name of the marker for both types and fields.
const markerName = "operator-sdk:csv:customresourcedefinitions"

// typeMarker and fieldMarker are the markers; the parser fills them by the names of their fields.
type typeMarker struct {
	DisplayName string     `marker:",optional"`
	Resources   [][]string `marker:",optional"`
	Order       *int       `marker:",optional"`
}

type fieldMarker struct {
	Type         string   `marker:",optional"`
	DisplayName  string   `marker:",optional"`
	XDescriptors []string `marker:",optional"`
	Order        *int     `marker:",optional"`
}

// folders are the folders for Go types in the layouts of kubebuilder and operator-sdk.
var folders = []string{"api", "apis", "pkg/apis"}

// Read returns what the markers say in a project. Without any marker, it does not run the go command.
func Read(ctx context.Context, dir string) ([]olm.Definition, error) {
	var patterns []string
	for _, folder := range folders {
		found, err := mentions(filepath.Join(dir, folder))
		if err != nil {
			return nil, err
		}
		if found {
			patterns = append(patterns, "pattern=./"+folder+"/...")
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	files := token.NewFileSet()
	roots, err := loader.LoadRootsWithConfig(&packages.Config{Context: ctx, Dir: dir, Fset: files}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("reading the markers %s: %w", markerName, err)
	}
	r := reader{types: map[typeName]*markers.TypeInfo{}, groups: map[*loader.Package]schema.GroupVersion{}}
	if err := r.collect(roots); err != nil {
		return nil, fmt.Errorf("reading the markers %s: %w", markerName, placed(err, files))
	}
	return r.definitions(roots)
}

// placed adds the place in the code to the first error of a list.
func placed(err error, files *token.FileSet) error {
	var list loader.ErrList
	for errors.As(err, &list) && len(list) > 0 {
		err, list = list[0], nil
	}
	var at loader.PositionedError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w; correct the marker", files.Position(at.Pos), err)
	}
	return err
}

// mentions reports whether a Go file in a folder has the marker.
func mentions(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "+"+markerName) {
			found = true
			return filepath.SkipAll
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// collect parses the packages and all their markers.
func (r *reader) collect(roots []*loader.Package) error {
	registry := &markers.Registry{}
	for _, d := range []struct {
		name   string
		target markers.TargetType
		value  any
	}{
		{markerName, markers.DescribesType, typeMarker{}}, {markerName, markers.DescribesField, fieldMarker{}},
		{"groupName", markers.DescribesPackage, ""}, {"versionName", markers.DescribesPackage, ""},
	} {
		if err := registry.Define(d.name, d.target, d.value); err != nil {
			return err
		}
	}
	collector := &markers.Collector{Registry: registry}
	for _, root := range roots {
		values, err := markers.PackageMarkers(collector, root)
		if err != nil {
			return err
		}
		if group, ok := values.Get("groupName").(string); ok {
			version, ok := values.Get("versionName").(string)
			if !ok {
				version = root.Name
			}
			r.groups[root] = schema.GroupVersion{Group: group, Version: version}
		}
		if err := markers.EachType(collector, root, func(info *markers.TypeInfo) {
			r.types[typeName{root, info.Name}] = info
		}); err != nil {
			return err
		}
	}
	return nil
}
