package project_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/project"
)

// heard records everything that is reported to an Observer.
type heard []string

func (h *heard) Phase(name string) { *h = append(*h, "phase: "+name) }
func (h *heard) Note(text string)  { *h = append(*h, "note: "+text) }

func (h heard) has(start string) bool {
	return slices.ContainsFunc(h, func(line string) bool { return strings.HasPrefix(line, start) })
}

// definition is a minimal CRD for Boats, and boat is a sample of one.
const (
	definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {crew: {type: integer}}}}}}
`
	boat = `apiVersion: sea.example.com/v1
kind: Boat
metadata: {name: first}
spec: {crew: 3}
`
	role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules: [{apiGroups: [sea.example.com], resources: [boats], verbs: [get]}]
`
)

func TestPreparedManagerIsBuiltAndItsNotesAreTold(t *testing.T) {
	dir := tree(t, map[string]string{
		"go.mod": "module example.com/boats\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n",
		"config/crd/bases/boats.yaml": definition, "config/rbac/role.yaml": role,
	})
	out := filepath.Join(t.TempDir(), "manager")
	var told heard
	p, err := project.Prepare(t.Context(), project.Options{Dir: dir, Election: []string{"--elect"}}, out, &bytes.Buffer{}, &told)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the manager is no program: %v %v", info, err)
	}
	if !told.has("phase: building ") || !told.has("note: there are no samples") || !told.has("note: the manager ") {
		t.Errorf("heard %q", told)
	}
	if diff := cmp.Diff([]string{"--elect"}, p.Subject.Election); diff != "" {
		t.Errorf("arguments of the election (-want +got):\n%s", diff)
	}
	if p.MainFile() != "main.go" || p.RoleFile() != "config/rbac/role.yaml" {
		t.Errorf("main file %q, role file %q", p.MainFile(), p.RoleFile())
	}
}

func TestAManagerThatHasBeenBuiltIsNotBuiltAgain(t *testing.T) {
	dir := tree(t, map[string]string{
		"go.mod": "module example.com/sea\n", "cmd/main.go": "package main\n\nfunc main() { this cannot be compiled }\n",
		"built": "#!/bin/sh\necho 'Usage: manager'\necho '  -metrics-bind-address string'\n",
	})
	program := filepath.Join(dir, "built")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	var told heard
	p, err := project.Prepare(t.Context(), project.Options{Dir: dir, Built: program}, filepath.Join(dir, "out"), &bytes.Buffer{}, &told)
	if err != nil {
		t.Fatal(err)
	}
	if command := p.Subject.Command; len(command) < 2 || command[0] != program {
		t.Errorf("the manager is started with %q, without its flags", command)
	}
	if told.has("phase: building ") {
		t.Errorf("it was built: %q", told)
	}
}

func TestCommandIsFoundFromTheCurrentFolderAndPrepared(t *testing.T) {
	dir := tree(t, map[string]string{"crds/boats.yaml": definition, "bin/controller": "#!/bin/sh\n", "config/samples/boat.yaml": boat})
	if err := os.Chmod(filepath.Join(dir, "bin/controller"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, all := range []bool{false, true} {
		var told heard
		o := project.Options{Command: []string{"bin/controller", "--flag"}, CRDs: "crds", AllNotes: all}
		p, err := project.Prepare(t.Context(), o, "", &bytes.Buffer{}, &told)
		if err != nil {
			t.Fatal(err)
		}
		if told.has("phase") || told.has("note") != all {
			t.Errorf("all notes %t: heard %q", all, told)
		}
		if diff := cmp.Diff([]string{filepath.Join(dir, "bin/controller"), "--flag"}, p.Subject.Command); diff != "" {
			t.Errorf("command (-want +got):\n%s", diff)
		}
		if p.MainFile() != "" || p.RoleFile() != "" {
			t.Errorf("main file %q, role file %q", p.MainFile(), p.RoleFile())
		}
	}
	if _, err := project.Open(t.Context(), project.Options{Command: []string{"./missing"}}); err == nil || !strings.HasSuffix(err.Error(), "give an executable after --") {
		t.Errorf("a missing program: %v", err)
	}
}

func TestScenariosAreMadeFromSamplesOrTheErrorSaysWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		sample string
		says   string
	}{
		"a sample":             {boat, ""},
		"no samples":           {"", "put some into config/samples"},
		"of no kind of its":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "no scenario can be generated from the samples: there is no CRD for ConfigMap (name CRDs with --crds"},
		"of a foreign version": {strings.Replace(boat, "/v1", "/v2", 1), "v2"},
	} {
		dir := tree(t, map[string]string{
			"go.mod": "module example.com/boats\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n",
			"config/crd/bases/boats.yaml": definition, "config/samples/boat.yaml": test.sample,
		})
		p := load(t, project.Options{Dir: dir})
		all, _, err := p.Scenarios(1)
		if test.says == "" && (err != nil || len(all) == 0) || test.says != "" && !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %d scenarios, error %v, want one with %q", name, len(all), err, test.says)
		}
	}
}

func TestAManagerInAModuleOfItsOwnIsBuiltThere(t *testing.T) {
	dir := tree(t, map[string]string{
		"go.mod": "module example.com/boats\n\ngo 1.26\n", "boats.go": "package boats\n",
		"cmd/controller/go.mod": "module example.com/boats/controller\n\ngo 1.26\n", "cmd/controller/app/main.go": "package main\n\nfunc main() {}\n",
		"config/crd/bases/boats.yaml": definition,
	})
	out := filepath.Join(t.TempDir(), "manager")
	var told heard
	p, err := project.Prepare(t.Context(), project.Options{Dir: dir}, out, &bytes.Buffer{}, &told)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode()&0o100 == 0 || p.Main != filepath.FromSlash("cmd/controller/app") {
		t.Errorf("the manager in %s is no program: %v %v", p.Main, info, err)
	}
}

func TestSamplesThatAreNamedNeedNoControllerInPROJECT(t *testing.T) {
	dir := tree(t, map[string]string{
		"go.mod": "module example.com/boats\n", "main.go": usesRuntime, "config/crd/bases/boats.yaml": definition, "config/crd/bases/ships.yaml": otherCRD,
		"PROJECT":      "domain: example.com\nprojectName: boats\nversion: \"3\"\nlayout: [go.kubebuilder.io/v4]\nresources:\n- {kind: Boat, group: sea, version: v1, domain: example.com}\n- {kind: Ship, group: sea, version: v1, domain: example.com, controller: true}\n",
		"cr/boat.yaml": boat, "config/samples/boat.yaml": boat,
	})
	for samples, want := range map[string]bool{"": false, "cr": true} {
		p := load(t, project.Options{Dir: dir, Samples: samples})
		all, _, err := p.Scenarios(1)
		if (err == nil && len(all) > 0) != want {
			t.Errorf("samples %q: %d scenarios, %v", samples, len(all), err)
		}
	}
}
