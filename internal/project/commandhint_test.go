package project_test

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestAProjectThatIsNotInGoIsToldItsCommandAndItsInstallation(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"give its command after --, such as -- node bin/daemon.js, and name its installation with --helm charts/ship": {
			"package.json": `{"main": "bin/daemon.js", "scripts": {"start": "./bin/other.sh"}}`, "bin/daemon.js": "x", "charts/ship/Chart.yaml": "name: ship\n",
		},
		"give its command after --, such as -- node server.mjs": {
			"package.json": `{"main": "bin/daemon.js", "scripts": {"start": "node ./server.mjs"}}`, "bin/daemon.js": "x", "server.mjs": "x",
		},
		"give its command after --, such as -- python3 src/ship/main.py, and name its installation with --manifests install": {
			"pyproject.toml": "[project]\n", "src/ship/main.py": "x", "tests/main.py": "x", "install/crd.yaml": hintCRD,
		},
		"give its command after --, such as -- python3 SCRIPT": {"setup.py": "x", "ship/handlers.py": "x"},
		"give its command after --":                            {"package.json": "{", "src/main.rs": "x"},
	} {
		_, err := project.Load(t.Context(), project.Options{Dir: tree(t, files)})
		if err == nil || !strings.HasSuffix(filepath.ToSlash(err.Error()), want) {
			t.Errorf("%v\nwant the end %q", err, want)
		}
	}
}

func TestACommandWithoutItsInstallationIsNoted(t *testing.T) {
	const note = "note: the controller runs as an administrator and without CRDs, because only its command is given (name its installation with "
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"charts/ship/Chart.yaml": "name: ship\n"}, note + "--helm charts/ship)"},
		{map[string]string{"install/crd.yaml": hintCRD}, note + "--manifests install)"},
		{map[string]string{"config/crd/bases/ship.yaml": hintCRD}, ""},
		{map[string]string{"README.md": "x"}, ""},
	} {
		files := maps.Clone(c.files)
		files["run.sh"] = "#!/bin/sh\n"
		told := &heard{}
		_, err := project.Prepare(t.Context(), project.Options{Dir: tree(t, files), Command: []string{"/bin/sh", "run.sh"}}, "unused", io.Discard, told)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && told.has(note) || c.want != "" && !slices.Contains(*told, c.want) {
			t.Errorf("heard %q, want %q", *told, c.want)
		}
	}
}

func TestVariablesOfTheImageAreNoted(t *testing.T) {
	dir := tree(t, map[string]string{
		"run.sh": "#!/bin/sh\n", "install/crd.yaml": hintCRD, "Dockerfile": "FROM a AS build\nENV STAGE=one\nFROM b\nENV NODE_ENV production\nENV API_TOKEN=abc\n" +
			"ENV PATH=$PATH:/x\nENV HOME /root\nENV LEVEL=\"warn\"\nENV KNOWN=1\nENV GOOS=linux\n",
	})
	told := &heard{}
	_, err := project.Prepare(t.Context(), project.Options{
		Dir: dir, Manifests: []string{"install"}, Command: []string{"/bin/sh", "run.sh"}, Env: []string{"KNOWN=2"},
	}, "unused", io.Discard, told)
	if err != nil {
		t.Fatal(err)
	}
	want := "note: the Dockerfile sets variables that the controller does not get here (if it needs them, use --env NODE_ENV=production --env API_TOKEN=… --env LEVEL=warn)"
	if !slices.Contains(*told, want) {
		t.Errorf("heard %q", *told)
	}
}
