package project_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/project"
)

const hintCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Ship, plural: ships}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func TestManifestsInUnusualFoldersAreNamed(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ship}\n"
	main := map[string]string{"go.mod": "module example.com/ship\n", "main.go": usesRuntime}
	for want, files := range map[string]map[string]string{
		"(use --manifests to name them)": {
			"vendor/x/ship.yaml": hintCRD, "test/ship.yaml": hintCRD, "docs/values.yaml": "kind: Ship\n",
		},
		"(use --manifests to name them, such as install or ship.yaml)": {
			"install/crds/ship.yaml": hintCRD, "install/a.yaml": deployment, "ship.yaml": deployment, "other/note.yaml": "a: b\n",
		},
		"(use --manifests to name them, or --helm for one of the charts deploy/ship)": {
			"deploy/ship/Chart.yaml": "name: ship\n", "deploy/ship/templates/ship.yaml": "{{ x }}\n" + deployment, "deploy/README.md": "x", "config/config.go": "package config\n",
		},
		"(use --manifests to name them, such as hack/install, or --helm for one of the charts charts/ship)": {
			"hack/install/crd.yaml": hintCRD, "charts/ship/Chart.yaml": "name: ship\n",
		},
	} {
		maps.Copy(files, main)
		p := load(t, project.Options{Dir: tree(t, files)})
		wantNotes(t, p, "there are no manifests in config/ or deploy/ "+filepath.FromSlash(want))
	}
}

func TestTheFolderDeployIsReadIfConfigHasNoManifests(t *testing.T) {
	p := load(t, project.Options{Dir: tree(t, map[string]string{
		"go.mod": "module example.com/ship\n", "main.go": usesRuntime, "config/config.go": "package config\n", "deploy/crds/ship.yaml": hintCRD,
	})})
	if got := names(p.Subject.Install); len(got) != 1 || !strings.HasPrefix(got[0], "CustomResourceDefinition ") {
		t.Errorf("the installation is %q, with the notes %q", got, p.Notes)
	}
}

func TestMissingSamplesAreRefusedBeforeTheBuildWithAHint(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{
		"go.mod":                   "module example.com/ship\n",
		"main.go":                  "package main\n\nfunc main() { this does not compile }\n",
		"config/crd/ship.yaml":     hintCRD,
		"deploy/cr/ship.yaml":      "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: a}\n",
		"deploy/operator.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"vendor/x/ship.yaml":       "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: b}\n",
		".github/broken/ship.yaml": "apiVersion: [",
	} {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var told heard
	_, err := project.Prepare(t.Context(), project.Options{Dir: dir, Opened: func(p *project.Project) error {
		_, _, err := p.Scenarios(1)
		return err
	}}, filepath.Join(dir, "out"), &bytes.Buffer{}, &told)
	want := "there are no samples from which to generate scenarios; " + filepath.Join("deploy", "cr", "ship.yaml") + " may be samples: try --samples " + filepath.Join("deploy", "cr", "ship.yaml") + ", "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if told.has("phase: building ") {
		t.Error("the manager was built first")
	}
}
