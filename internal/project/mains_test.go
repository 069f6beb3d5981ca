package project_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/project"
)

const fleetOfPrograms = `apiVersion: apps/v1
kind: Deployment
metadata: {name: helm, namespace: harbour}
spec: {template: {spec: {containers: [{name: a, image: sea:v1, command: [/usr/bin/sea-helm]}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mast, namespace: harbour}
spec: {template: {spec: {containers: [{name: a, image: "registry.example.com/sea-mast@sha256:0123"}]}}}
`

func TestTheProgramAndItsWorkloadNameEachOther(t *testing.T) {
	main := "package main\n\nfunc main() {}\n"
	dir := tree(t, map[string]string{
		"go.mod": "module example.com/sea\n", "cmd/sea-helm/main.go": main, "cmd/sea-mast/main.go": main,
		"all.yaml": fleetOfPrograms, "crds/ships.yaml": otherCRD,
	})
	manifests := []string{"all.yaml", "crds"}
	for name, c := range map[string]struct {
		options project.Options
		want    string // the main package, or a part of the error
	}{
		"the program":  {project.Options{Main: "cmd/sea-mast", Manifests: manifests}, "cmd/sea-mast"},
		"the workload": {project.Options{Deployment: "helm", Manifests: manifests}, "cmd/sea-helm"},
		"its image":    {project.Options{Deployment: "mast", Manifests: manifests}, "cmd/sea-mast"},
		"neither":      {project.Options{Manifests: manifests}, "several workloads could run the controller"},
		"nothing":      {project.Options{}, "several programs could be the manager: cmd/sea-helm, cmd/sea-mast; choose one with --main"},
	} {
		c.options.Dir = dir
		p, err := project.Load(t.Context(), c.options)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v", name, err)
		case err == nil && p.Main != c.want:
			t.Errorf("%s: %q", name, p.Main)
		}
	}
}

func TestAMainPackageThatImportsNothingIsNotTheManager(t *testing.T) {
	files := map[string]string{
		"go.mod": "module example.com/sea\n", "config/crd/ships.yaml": otherCRD,
		"cmd/main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n", "cmd/pilot/main.go": usesRuntime,
	}
	if p := load(t, project.Options{Dir: tree(t, files)}); p.Main != filepath.FromSlash("cmd/pilot") {
		t.Errorf("the main package is %s", p.Main)
	}
	files["cmd/pilot/main.go"] = "package main\n\nfunc main() {}\n"
	if p := load(t, project.Options{Dir: tree(t, files)}); p.Main != "cmd" {
		t.Errorf("without another manager, the main package is %s", p.Main)
	}
}

func TestAMainPackageThatABuildConstraintExcludesIsNotTheManager(t *testing.T) {
	p := load(t, project.Options{Dir: tree(t, map[string]string{
		"go.mod": "module example.com/sea\n", "config/crd/ships.yaml": otherCRD,
		"vendor.go":         "//go:build vendor\n\npackage main\n\nimport _ \"k8s.io/code-generator/cmd/client-gen\"\n\nfunc main() {}\n",
		"cmd/sail/main.go":  usesRuntime,
		"cmd/sail/linux.go": "//go:build !vendor\n\npackage main\n",
	})})
	if p.Main != filepath.FromSlash("cmd/sail") {
		t.Errorf("the main package is %s", p.Main)
	}
}

func TestAMainPackageThatOnlyLogsWithControllerRuntimeIsNotTheManager(t *testing.T) {
	p := load(t, project.Options{Dir: tree(t, map[string]string{
		"go.mod": "module example.com/sea\n", "config/crd/ships.yaml": otherCRD, "main.go": usesRuntime,
		"cmd/docs.go": "package main\n\nimport \"sigs.k8s.io/controller-runtime/pkg/log/zap\"\n\nfunc main() { zap.New() }\n",
	})})
	if p.Main != "." {
		t.Errorf("the main package is %s", p.Main)
	}
}
