package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestAFindingIsAttachedToTheLineThatItIsAbout(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"api/v1/viewer_types.go": "package v1 // apps.example.com\n\ntype ViewerStatus struct {\n\tPhase string `json:\"phase\"`\n}\n\n" +
			"type Viewer struct {\n\tmetav1.TypeMeta\n\tStatus ViewerStatus `json:\"status\"`\n}\n",
		"internal/controller/viewer.go": "package controller\n\n// +kubebuilder:rbac:groups=\"\",resources=nodes,verbs=get\n\nfunc run() {\n\tpanic(1)\n}\n",
		"config/samples/viewer.yaml":    "apiVersion: apps.example.com/v1\nkind: Viewer\nmetadata:\n  name: a\nspec:\n  title: x\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	of := func(object, path string) judge.Finding {
		return judge.Finding{ID: "1", Verdict: judge.Diverged, Scenario: "life", Differences: []state.Difference{{Object: object, Path: path, Want: "1", Got: "2"}}}
	}
	tests := map[string]struct {
		finding judge.Finding
		want    string
		line    int
	}{
		"a panic":                     {judge.Finding{Verdict: judge.Crashed, Scenario: "life", Frame: "controller.run (viewer.go:6)"}, "internal/controller/viewer.go", 6},
		"a panic in a library":        {judge.Finding{Verdict: judge.Crashed, Scenario: "life", Frame: "lib.run (viewer.go:6)"}, "api/v1/viewer_types.go", 7},
		"a field of the sample":       {of("Viewer.apps.example.com default/a", "spec.title"), "config/samples/viewer.yaml", 6},
		"a field that only Go has":    {of("Viewer.apps.example.com default/a", "status.phase"), "api/v1/viewer_types.go", 4},
		"an object of the sample":     {of("Viewer.apps.example.com default/a", ""), "config/samples/viewer.yaml", 1},
		"a child":                     {of("Secret default/a", "data.x"), "api/v1/viewer_types.go", 7},
		"a missing permission":        {judge.Finding{Verdict: judge.RBACMissing, Missing: []judge.Permission{{Verb: "delete", Resource: "nodes"}}}, "internal/controller/viewer.go", 3},
		"a permission without a mark": {judge.Finding{Verdict: judge.RBACMissing, Missing: []judge.Permission{{Verb: "get", Resource: "pods"}}}, "config/rbac/role.yaml", 1},
	}
	for name, test := range tests {
		r := &Report{
			Findings:  []judge.Finding{test.finding},
			Scenarios: []Scenario{{Name: "life", Kind: "Viewer.apps.example.com", File: "config/samples/viewer.yaml"}},
			Sources:   Sources{Main: "cmd/main.go", RBAC: "config/rbac/role.yaml"},
		}
		at := readSARIF(t, r, root).Runs[0].Results[0].Locations[0].Physical
		if at.Artifact.URI != test.want || at.Region.StartLine != test.line {
			t.Errorf("%s: %s:%d, want %s:%d", name, at.Artifact.URI, at.Region.StartLine, test.want, test.line)
		}
	}
}
