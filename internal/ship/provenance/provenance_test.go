package provenance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/ship/provenance"
)

// repository makes a repository with one commit, and returns its folder and the commit.
func repository(t *testing.T) (dir, commit string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a"}, {"rev-parse", "HEAD"},
	} {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
		commit = string(bytes.TrimSpace(out))
	}
	return dir, commit
}

func TestTheRevisionIsThatOfTheCodeInTheRepository(t *testing.T) {
	dir, commit := repository(t)
	want := provenance.Source{Module: "example.com/sea", Revision: commit}
	dist := filepath.Join(dir, "dist")
	for _, output := range []string{dist, t.TempDir()} {
		if got := provenance.Find(t.Context(), dir, "example.com/sea", output); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for name, changed := range map[string]bool{"dist": false, "new.go": true, "main.go": true} {
		dir, _ := repository(t)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package other\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := provenance.Find(t.Context(), dir, "example.com/sea", filepath.Join(dir, "dist")); got.Changed != changed || got.Revision == "" {
			t.Errorf("after a change of %s: %+v", name, got)
		}
	}
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	if got := provenance.Find(t.Context(), t.TempDir(), "example.com/sea", dist); got.Revision != "" || got.Changed {
		t.Errorf("without a repository: %+v", got)
	}
}

func TestAStatementNamesTheImageAndTheCommit(t *testing.T) {
	build := provenance.Build{
		Source: provenance.Source{Module: "github.com/example/sea/operators/boat", Revision: "0123", Changed: true},
		Image:  "registry.example.com/sea", Digest: "sha256:4567", Platforms: []string{"linux/amd64"}, Programs: map[string]string{"manager": "./cmd"},
		Base: "base:v1", Tool: "koboshi-v1", Go: "go1.26",
	}
	text, err := provenance.Make(build)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct{ Digest map[string]string }
		Predicate     struct {
			BuildDefinition struct {
				ExternalParameters   map[string]any
				ResolvedDependencies []struct {
					URI         string
					Digest      map[string]string
					Annotations map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	code := s.Predicate.BuildDefinition.ResolvedDependencies
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" ||
		s.Subject[0].Digest["sha256"] != "4567" || len(code) != 1 || code[0].URI != "git+https://github.com/example/sea" ||
		code[0].Digest["gitCommit"] != "0123" || code[0].Annotations["changed"] != true || s.Predicate.BuildDefinition.ExternalParameters["base"] != "base:v1" {
		t.Errorf("%s", text)
	}
	build.Digest = "4567"
	if _, err := provenance.Make(build); err == nil || !strings.Contains(err.Error(), "no digest") {
		t.Errorf("%v", err)
	}
}

func TestTheRepositoryOfAModuleIsKnownForUsualHosts(t *testing.T) {
	for module, want := range map[string]string{
		"github.com/example/sea": "github.com/example/sea", "gitlab.com/example/sea/v2": "gitlab.com/example/sea",
		"example.com/sea": "", "github.com/sea": "",
	} {
		if got, ok := provenance.Repository(module); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v", module, got, ok)
		}
	}
}
