package project_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/project"
)

// remoteProject returns a project whose kustomization includes two files of another project.
func remoteProject(t *testing.T) string {
	return tree(t, map[string]string{
		"go.mod": "module example.com/ship\n", "main.go": usesRuntime,
		"config/default/kustomization.yaml": "resources:\n- https://example.com/v1/ships.crds.yaml\n" +
			"- https://example.com/v1/ships.more.yaml\n- here.yaml\n",
		"config/default/here.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here}\n",
		"down/ships.crds.yaml":     hintCRD,
		"down/ships.more.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
	})
}

func TestAllRemoteFilesOfAKustomizationAreNamedWithTheirFlags(t *testing.T) {
	_, err := project.Load(t.Context(), project.Options{Dir: remoteProject(t)})
	if err == nil {
		t.Fatal("a kustomization with remote files was accepted")
	}
	for _, want := range []string{"ships.crds.yaml", "ships.more.yaml", "--with-crds", "--given"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestDownloadedFilesReplaceTheRemoteFilesOfAKustomization(t *testing.T) {
	dir := remoteProject(t)
	p := load(t, project.Options{
		Dir:      dir,
		WithCRDs: []string{filepath.Join(dir, "down", "ships.crds.yaml")},
		Given:    []string{filepath.Join(dir, "down", "ships.more.yaml")},
	})
	got := names(p.Subject.Install)
	for _, want := range []string{"here", "more", "ships.sea.example.com"} {
		if !slices.ContainsFunc(got, func(name string) bool { return strings.HasSuffix(name, want) }) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
}

func TestAFileOfAnotherNameDoesNotReplaceARemoteFile(t *testing.T) {
	dir := remoteProject(t)
	_, err := project.Load(t.Context(), project.Options{Dir: dir, WithCRDs: []string{filepath.Join(dir, "down", "ships.crds.yaml")}})
	if err == nil || !strings.Contains(err.Error(), "ships.more.yaml") || strings.Contains(err.Error(), "ships.crds.yaml,") {
		t.Errorf("got the error %v, want only ships.more.yaml in it", err)
	}
}
