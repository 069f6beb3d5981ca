package manifest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCallsOfControllerGenAreFoundInMakefiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		makefile string
		want     []string // line: folder: arguments
		notes    string   // all notes, in lines
	}{
		"kubebuilder": {
			makefile: `
LOCALBIN ?= $(shell pwd)/bin
CONTROLLER_GEN ?= $(LOCALBIN)/controller-gen
CONTROLLER_TOOLS_VERSION ?= v0.23.0
YEAR ?= $(shell date +%Y)
ifeq (,$(shell go env GOBIN))
GOBIN=$(shell go env GOPATH)/bin
else
GOBIN=$(shell go env GOBIN)
endif
SHELL = /usr/bin/env bash -o pipefail
manifests: controller-gen ## Generate.
	"$(CONTROLLER_GEN)" rbac:roleName=manager-role crd webhook paths="./..." output:crd:artifacts:config=config/crd/bases
generate: controller-gen
	"$(CONTROLLER_GEN)" object:headerFile="hack/boilerplate.go.txt",year=$(YEAR) paths="./..."
controller-gen: $(CONTROLLER_GEN)
$(CONTROLLER_GEN): $(LOCALBIN)
	$(call go-install-tool,$(CONTROLLER_GEN),sigs.k8s.io/controller-tools/cmd/controller-gen,$(CONTROLLER_TOOLS_VERSION))
define go-install-tool
@[ -f "$(1)-$(3)" ] || { \
set -e; \
GOBIN="$(LOCALBIN)" go install $(2)@$(3) ;\
}
endef
`,
			want: []string{
				"13: .: rbac:roleName=manager-role crd webhook paths=./... output:crd:artifacts:config=config/crd/bases",
				"15: .: object:headerFile=hack/boilerplate.go.txt,year=" + time.Now().Format("2006") + " paths=./...",
			},
		},
		"our operators": {
			makefile: `
RBAC_PATHS = paths=./internal/controller paths=./internal/refs
CONTROLLER_GEN = go tool -modfile=tools/go.mod controller-gen
manifests:
	$(CONTROLLER_GEN) rbac:roleName=manager-role $(RBAC_PATHS) output:rbac:artifacts:config=config/rbac
	hack/chart-files.sh --all now please
	@echo done
generate:
	$(CONTROLLER_GEN) object paths=./api/...
verify:
	$(CONTROLLER_GEN) object paths=./verified
`,
			want: []string{
				"5: .: rbac:roleName=manager-role paths=./internal/controller paths=./internal/refs output:rbac:artifacts:config=config/rbac",
				"9: .: object paths=./api/...",
			},
			notes: "not run: hack/chart-files.sh --all now (Makefile:6)",
		},
		"other targets": {
			makefile: "all: crds\ncrds:\n\tbin/controller-gen-v0.20.1 crd \\\n\t  paths={./a,./b} \\\n\n\nmore: ; @controller-gen webhook\n\tcontroller-gen --version\n",
			want:     []string{"3: .: crd paths={./a,./b}", "7: .: webhook"},
		},
		"folders and environments": {
			makefile: "generate:\n\tcd api; GOWORK=off $(CONTROLLER_GEN) object paths=./... && cd v2 && env A=b controller-gen crd\n",
			want:     []string{"2: api: object paths=./... [GOWORK=off]", "2: api/v2: crd"},
		},
		"go run": {
			makefile: "PKG := sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0\ngenerate:\n\tgo run -mod=mod $(PKG) object:headerFile='a b' paths=./...\n",
			want:     []string{"3: .: object:headerFile=a b paths=./..."},
			notes:    "the project uses controller-gen v0.22.0; koboshi generates what controller-gen v0.23.0 does",
		},
		"prerequisites and make": {
			makefile: "generate: one\n\t$(MAKE) two three\n\tmake -C other\none two: ; controller-gen object paths=./$@\nthree:\n\tcontroller-gen crd\n",
			want:     []string{"4: .: object paths=./one", "6: .: crd"},
			notes:    "not run: make -C other (Makefile:3)",
		},
		"loops of make": {
			makefile: "DIRS = a b\ngenerate:\n\tcontroller-gen object $(foreach dir,$(DIRS),paths=./$(dir)/...) $(if $(KOBOSHI_TEST_UNSET),crd)\n",
			want:     []string{"3: .: object paths=./a/... paths=./b/..."},
		},
		"only the version is asked for": {
			makefile: "generate:\n\t@controller-gen --version | grep -q v0 || go install x/controller-gen@v0.1.0\n\tcontroller-gen object\n",
			want:     []string{"3: .: object"},
			notes:    "not run: grep -q v0 (Makefile:2), go install x/controller-gen@v0.1.0 (Makefile:2)",
		},
		"koboshi": {
			makefile: "KOBOSHI ?= bin/koboshi\nmanifests:\n\t$(KOBOSHI) generate --lenient crd paths=./api\n",
			want:     []string{"3: .: crd paths=./api"},
		},
		"included": {
			makefile: "include hack/*.mk\n-include missing.mk\n",
			want:     []string{"1: .: crd paths=./included"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "Makefile"), test.makefile)
			if name == "included" {
				write(t, filepath.Join(dir, "hack", "generate.mk"), "manifests: ; controller-gen crd paths=$(WHERE)\nWHERE = ./included\n")
			}
			calls, notes, err := projectCalls(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, call := range calls {
				got = append(got, describe(t, dir, call))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, strings.Join(notes, "\n")); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func describe(t *testing.T, dir string, call Call) string {
	t.Helper()
	folder, err := filepath.Rel(dir, call.Dir)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(call.where(), ":")
	text := line + ": " + folder + ": " + strings.Join(call.Args, " ")
	if len(call.Env) > 0 {
		text += " [" + strings.Join(call.Env, " ") + "]"
	}
	return text
}

func TestACallThatCannotBeUnderstoodIsAnErrorWithItsLine(t *testing.T) {
	t.Parallel()
	for makefile, want := range map[string]string{
		"generate:\n\tcontroller-gen object paths=./$(shell ls)\n":                       "koboshi does not run $(shell ls)",
		"generate:\n\tfor d in a b; do controller-gen object paths=./$$d; done\n":        "the shell computes arguments",
		"generate:\n\tcontroller-gen object paths=./a > \"x\n":                           "a quotation mark is not closed",
		"generate:\n\tcontroller-gen crd paths=./a output:stdout > x\n":                  "the output of controller-gen is redirected",
		"A = $(B)\nB = $(A)\ngenerate:\n\tcontroller-gen object paths=$(A)\n":            "too deeply",
		"include no.mk\ngenerate:\n\tcontroller-gen object paths=$(A)\n":                 "$(A) is not defined, and the file that Makefile:1 includes was not found",
		"ifeq ($(shell uname),Linux)\nA = a\nendif\nx:\n\tcontroller-gen paths=./$(A)\n": "A depends on a condition (Makefile:2)",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "Makefile"), makefile)
		_, _, err := projectCalls(dir)
		g := &generation{result: &Result{}}
		if err := g.takeProblem(err); err != nil || len(g.result.Problems) != 1 {
			t.Errorf("%s: %v, %v", makefile, err, g.result.Problems)
			continue
		}
		if p := g.result.Problems[0]; !strings.Contains(p.Message, want) || p.Line != strings.Count(makefile, "\n") {
			t.Errorf("%s: %v, want %q", makefile, p, want)
		}
	}
}

func TestProjectsWithoutACallGetKubebuildersDefaults(t *testing.T) {
	t.Parallel()
	const crds = "output:crd:artifacts:config=config/crd/bases"
	year := time.Now().Format("2006")
	for name, test := range map[string]struct {
		files string
		want  []string
		note  string
	}{
		"nothing": {"", []string{"rbac:roleName=manager-role crd webhook paths=./... " + crds, "object paths=./..."}, ""},
		"a Makefile": {
			"-- Makefile --\nbuild:\n\tgo build\n", []string{"rbac:roleName=manager-role crd webhook paths=./... " + crds, "object paths=./..."},
			"Makefile does not call controller-gen; the options are those of kubebuilder's Makefile",
		},
		"a Makefile that calls koboshi": {
			"-- Makefile --\ngenerate:\n\tkoboshi generate\n", []string{"rbac:roleName=manager-role crd webhook paths=./... " + crds, "object paths=./..."}, "",
		},
		"a role and a licence": {
			"-- config/rbac/role.yaml --\nkind: ClusterRole\nmetadata:\n  name: boats\n-- hack/boilerplate.go.txt --\n// no year\n",
			[]string{"rbac:roleName=boats crd webhook paths=./... " + crds, "object:headerFile=hack/boilerplate.go.txt paths=./..."}, "",
		},
		"apply configurations": {
			`-- PROJECT --
version: "3"
repo: example.com/boats
resources:
- {kind: Boat, version: v1, path: example.com/boats/api/v1, api: {ssa: true}}
- {kind: Ship, version: v1, path: example.com/boats/api/v1, api: {ssa: true}}
- {kind: Raft, version: v2, path: example.com/boats/api/v2, api: {crdVersion: v1}}
- {kind: Pod, version: v1, path: k8s.io/api/core/v1}
-- hack/boilerplate.go.txt --
// Copyright YEAR
`,
			[]string{
				"rbac:roleName=manager-role crd webhook paths=./... " + crds, "applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/v1",
				"object:headerFile=hack/boilerplate.go.txt,year=" + year + " paths=./...",
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, notes, err := projectCalls(project(t, test.files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, call := range calls {
				got = append(got, strings.Join(call.Args, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || strings.Join(notes, "\n") != test.note {
				t.Errorf("notes %q (-want +got):\n%s", notes, diff)
			}
		})
	}
}
