package project_test

import (
	"bytes"
	"errors"
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
