package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// shipsProject is a project whose CRD comes from its Go types. A stub replaces apimachinery,
// so that the project needs no other modules.
const shipsProject = `-- go.mod --
module example.com/ships

go 1.26

require k8s.io/apimachinery v0.0.0

replace k8s.io/apimachinery => ./apimachinery
-- apimachinery/go.mod --
module k8s.io/apimachinery

go 1.26
-- apimachinery/pkg/apis/meta/v1/types.go --
// Package v1 replaces apimachinery's.
package v1

// TypeMeta is a stub.
type TypeMeta struct{}

// ObjectMeta is a stub.
type ObjectMeta struct{}
-- Makefile --
manifests:
	controller-gen crd paths=./... output:crd:dir=config/crd/bases
-- api/v1/doc.go --
// Package v1 contains the API.
// +groupName=sea.example.com
package v1
-- api/v1/ship.go --
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Ship is a ship.
// +kubebuilder:object:root=true
type Ship struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `

	Spec              ShipSpec ` + "`json:\"spec,omitempty\"`" + `
}

// ShipSpec describes a ship.
type ShipSpec struct {
	// Crew is the number of people.
	// +kubebuilder:validation:Maximum=50
	// +optional
	Crew int32 ` + "`json:\"crew,omitempty\"`" + `
	// Name is the name.
	// +optional
	Name string ` + "`json:\"name,omitempty\"`" + `
}
-- config/samples/ship.yaml --
apiVersion: sea.example.com/v1
kind: Ship
metadata:
  name: elena
spec:
  crew: 40
  name: Elena
`

// shipsRepository writes the project into a subfolder of a git repository, generates its CRD,
// and commits everything with the tag v1.
func shipsRepository(t *testing.T) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "operators", "ships")
	for _, file := range txtar.Parse([]byte(shipsProject)).Files {
		path := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cacheFolder(t)
	t.Chdir(dir)
	git(t, "init", "-q")
	git(t, "commit", "-q", "--allow-empty", "-m", "empty")
	git(t, "tag", "empty")
	if code, out, stderr := run(t, "generate"); code != exitOK || !strings.Contains(out, shipCRD) {
		t.Fatalf("exit code %d: %s\n%s", code, out, stderr)
	}
	git(t, "add", ".")
	git(t, "commit", "-q", "-m", "v1")
	git(t, "tag", "v1")
}

// git runs git without the settings of the user.
func git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
}

const shipCRD = "config/crd/bases/sea.example.com_ships.yaml"

func TestAgainstNamesWhatCannotBeCompared(t *testing.T) {
	generateProject(t)
	wantUsage := func(want string, args ...string) {
		t.Helper()
		code, _, stderr := run(t, append([]string{"generate"}, args...)...)
		if code != exitUsage || !strings.Contains(stderr, want) || strings.Count(strings.TrimSpace(stderr), "\n") > 1 {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
	wantUsage("--against needs --check", "--against", "v1")
	wantUsage("--against needs --check and a revision", "--check", "--against", "")
	wantUsage("not in a git repository", "--check", "--against", "v1")
	wantUsage("--rbac-from needs a report", "--rbac-from", "")
	wantUsage("reading a report: open none.json", "--rbac-from", "none.json")

	shipsRepository(t)
	wantUsage(`no revision "v0"`, "--check", "--against", "v0")
	wantUsage(`no revision "--all"`, "--check", "--against=--all")
	code, out, stderr := run(t, "generate", "--check", "--against", "empty")
	if code != exitOK || !strings.Contains(out, "nothing to compare: empty has no CRDs") {
		t.Errorf("exit code %d: %s\n%s", code, out, stderr)
	}

	t.Run("repository of another user", func(t *testing.T) {
		t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1") // git's own tests use this variable
		wantUsage("dubious ownership", "--check", "--against", "v1")
	})

	before, err := os.ReadFile(shipCRD)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, shipCRD, "spec:\n", "spec: [\n")
	git(t, "commit", "-q", "-a", "-m", "broken")
	if err := os.WriteFile(shipCRD, before, 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = run(t, "generate", "--check", "--against", "HEAD")
	if code != exitError || !strings.Contains(stderr, shipCRD) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// alone runs the test again in a process of its own, because a process can run only one plane, and
// other tests of this package need a process without one. In that process, alone returns false.
func alone(t *testing.T) bool {
	t.Helper()
	const inside = "KOBOSHI_TEST_ALONE"
	if os.Getenv(inside) != "" {
		return false
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return true
}

func TestAgainstShowsTheObjectThatBreaks(t *testing.T) {
	if alone(t) {
		return
	}
	shipsRepository(t)
	code, out, stderr := run(t, "generate", "--check", "--against", "v1")
	if code != exitOK || !strings.Contains(out, "against v1: 0 breaking") {
		t.Errorf("without a change: exit code %d: %s\n%s", code, out, stderr)
	}

	edit(t, "api/v1/ship.go", "Maximum=50", "Maximum=30")
	if code, out, stderr := run(t, "generate"); code != exitOK {
		t.Fatalf("exit code %d: %s\n%s", code, out, stderr)
	}
	code, out, stderr = run(t, "generate", "--check", "--against", "v1", "-o", "json")
	var printed generateOutput
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, stderr)
	}
	if code != exitError || !strings.Contains(stderr, "1 change breaks users of v1") || len(printed.Against.Findings) != 1 {
		t.Fatalf("exit code %d: %s\n%s", code, out, stderr)
	}
	f := printed.Against.Findings[0]
	if f.File != shipCRD || f.Field != "spec.crew" || f.Rule != "limit-tightened" || !f.StoredUsable || len(f.Effects) == 0 || f.Effects[0].Origin != "config/samples/ship.yaml" {
		t.Errorf("finding: %+v", f)
	}
	var text strings.Builder
	if err := printed.Against.write(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if len(line) > 81 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	t.Log(text.String())
}
