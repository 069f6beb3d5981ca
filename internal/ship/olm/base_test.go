package olm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

// bases writes files to the folder for bases of a new project.
func bases(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	at := filepath.Join(dir, "config", "manifests", "bases")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	one = "kind: ClusterServiceVersion\nspec: {displayName: one}\n"
	two = "kind: ClusterServiceVersion\nspec: {displayName: two}\n"
)

func TestTheBaseIsTheOneOfTheOperator(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"none":           {nil, ""},
		"one":            {map[string]string{"other.clusterserviceversion.yaml": one, "README.md": "x"}, "one"},
		"one of several": {map[string]string{"other.clusterserviceversion.yaml": one, "sea.clusterserviceversion.yaml": two}, "two"},
	} {
		base, err := olm.ReadBase(bases(t, c.files), "sea")
		spec, _ := base["spec"].(map[string]any)
		if got, _ := spec["displayName"].(string); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"none of several": {map[string]string{"a.clusterserviceversion.yaml": one, "b.clusterserviceversion.yaml": two}, "has several bases"},
		"another kind":    {map[string]string{"a.clusterserviceversion.yaml": "kind: Pod\n"}, "is no ClusterServiceVersion"},
		"broken YAML":     {map[string]string{"a.clusterserviceversion.yaml": "a: b: c\n"}, "a.clusterserviceversion.yaml"},
	} {
		if _, err := olm.ReadBase(bases(t, c.files), "sea"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
