package olm

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// ReadBase reads the base of the ClusterServiceVersion from the folder in which operator-sdk keeps it;
// nil means that the project has none.
func ReadBase(dir, operator string) (map[string]any, error) {
	folder := filepath.Join(dir, "config", "manifests", "bases")
	files, err := filepath.Glob(filepath.Join(folder, "*.clusterserviceversion.yaml"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	file := filepath.Join(folder, operator+".clusterserviceversion.yaml")
	if len(files) == 1 {
		file = files[0]
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the base of the bundle: %w; %s has several bases, so one of them must have this name", err, folder)
	}
	var base map[string]any
	if err := yaml.UnmarshalStrict(text, &base); err != nil {
		return nil, fmt.Errorf("reading the base of the bundle: %s: %w", file, err)
	}
	if base["kind"] != "ClusterServiceVersion" {
		return nil, fmt.Errorf("%s is no ClusterServiceVersion; correct its kind", file)
	}
	return base, nil
}
