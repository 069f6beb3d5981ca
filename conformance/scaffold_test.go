package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// A harbour is a project in a separate folder, in which only koboshi and go run.
type harbour struct {
	*testing.T
	dir string
}

// run runs a program in the project, and returns what it printed.
func (h harbour) run(program string, args ...string) (string, error) {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), program, args...)
	cmd.Dir = h.dir
	// The compiler's cache is shared with the operators, because they are built with the same
	// settings.
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "XDG_CACHE_HOME="+filepath.Join(h.dir, ".cache"), "GOCACHE="+goEnv(h, "GOCACHE"),
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=3m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=3m")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h harbour) must(program string, args ...string) string {
	h.Helper()
	out, err := h.run(program, args...)
	if err != nil {
		h.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return out
}

func goEnv(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func newHarbour(t *testing.T) harbour {
	t.Helper()
	h := harbour{t, filepath.Join(t.TempDir(), "harbour")}
	if err := os.Mkdir(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h.must(koboshi, "init", "--plugins", "go/v4", "--domain", "example.com", "--repo", "example.com/harbour", "--license", "none", "--owner", "The Harbour Authors")
	return h
}

// The command lines come from kubebuilder's documentation; only the names differ.
func TestAScaffoldedProjectBuildsAndPassesItsTests(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship", "--make=false")
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship", "--controller-name", "ship-backup", "--resource=false", "--make=false")
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1beta1", "--kind", "Ship", "--controller=false", "--make=false")
	h.must(koboshi, "create", "webhook", "--group", "sea", "--version", "v1", "--kind", "Ship", "--defaulting", "--make=false")
	h.must(koboshi, "create", "webhook", "--group", "sea", "--version", "v1", "--kind", "Ship", "--programmatic-validation", "--make=false")
	h.must(koboshi, "create", "webhook", "--group", "sea", "--version", "v1", "--kind", "Ship", "--conversion", "--spoke", "v1beta1", "--make=false")
	h.must(koboshi, "edit", "--multigroup", "--make=false")
	h.must(koboshi, "create", "api", "--group", "land", "--version", "v1alpha1", "--kind", "Car", "--namespaced=false", "--shape", "external", "--make=false")
	h.must(koboshi, "create", "api", "--group", "apps", "--version", "v1", "--kind", "Deployment", "--resource=false", "--make=false")
	h.must(koboshi, "generate")
	h.must(koboshi, "generate", "--check")
	h.must("go", "vet", "./...")
	h.must(koboshi, "test")
	for _, folder := range []string{"default", "samples"} {
		if out := h.must(koboshi, "kubectl", "kustomize", "config/"+folder); !strings.Contains(out, "kind: ") {
			t.Errorf("config/%s contains no objects:\n%s", folder, out)
		}
	}

	h.must(koboshi, "delete", "api", "--group", "apps", "--version", "v1", "--kind", "Deployment", "--make=false")
	h.must(koboshi, "delete", "webhook", "--group", "sea", "--version", "v1", "--kind", "Ship", "--make=false")
	h.must(koboshi, "delete", "api", "--group", "land", "--version", "v1alpha1", "--kind", "Car", "--make=false")
	h.must(koboshi, "rename", "api", "--group", "sea", "--kind", "Ship", "--to", "Boat")
	h.must("go", "vet", "./...")
	h.must(koboshi, "generate", "--check")
	h.staleList()
}

func TestAProjectWithTheShapeClientGoBuildsAndPassesItsTests(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship", "--shape", "client-go")
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1beta1", "--kind", "Ship", "--controller=false", "--make=false")
	h.must(koboshi, "edit", "--multigroup", "--make=false")
	// At this point, the generated clients still import the moved packages by their old paths, and
	// they lack the new packages.
	h.must(koboshi, "create", "api", "--group", "land", "--version", "v1", "--kind", "Person", "--namespaced=false")
	h.must(koboshi, "generate", "--check")
	h.must("go", "vet", "./...")
	h.must("go", "mod", "tidy", "-diff")
	if out := h.must("go", "list", "-deps", "./..."); strings.Contains(out, "sigs.k8s.io/controller-runtime") {
		t.Error("the manager uses controller-runtime")
	}
	h.must(koboshi, "test")

	h.must(koboshi, "delete", "api", "--group", "land", "--version", "v1", "--kind", "Person")
	h.must(koboshi, "rename", "api", "--group", "sea", "--kind", "Ship", "--to", "Boat")
	h.must("go", "vet", "./...")
	h.must(koboshi, "generate", "--check")
}

// The report lists as unused a verb that the controller needs, as the report of a check with too
// few scenarios might.
func TestMarkersGrantJustWhatTheScenariosNeed(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship")
	controller := filepath.Join(h.dir, "internal", "controller", "ship_controller.go")
	scaffolded, err := os.ReadFile(controller)
	if err != nil {
		h.Fatal(err)
	}
	generous := strings.Replace(string(scaffolded), "resources=configmaps,verbs=get;", "resources=configmaps,verbs=delete;get;", 1)
	if generous == string(scaffolded) {
		h.Fatalf("there is no marker for ConfigMaps:\n%s", scaffolded)
	}
	report := `{"version": 1, "command": "koboshi check", "args": ["--scenario=check/sea_v1_ship.yaml"], "unused": [
		{"role": "harbour-manager-role", "file": "config/rbac/role.yaml", "verb": "delete", "resource": "configmaps"},
		{"role": "harbour-manager-role", "file": "config/rbac/role.yaml", "verb": "patch", "group": "sea.example.com", "resource": "ships/status"},
		{"role": "harbour-node-role", "file": "config/rbac/node_role.yaml", "verb": "get", "resource": "nodes"}]}`
	for name, content := range map[string]string{controller: generous, filepath.Join(h.dir, "report.json"): report} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			h.Fatal(err)
		}
	}
	if out, err := h.run(koboshi, "generate", "--rbac-from", "report.json", "--check"); err == nil || !strings.Contains(out, "- // +kubebuilder:rbac:groups=sea.example.com,resources=ships/status,verbs=patch") {
		h.Errorf("with --check: %v\n%s", err, out)
	}
	out := h.must(koboshi, "generate", "--rbac-from", "report.json")
	for _, want := range []string{"(2 rounds)", "not allowed to patch ships.sea.example.com/status", "get on nodes was never used; it does not come from a marker"} {
		if !strings.Contains(out, want) {
			h.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if edited, err := os.ReadFile(controller); err != nil || !bytes.Equal(edited, scaffolded) {
		h.Errorf("%v: the markers are not those that are needed:\n%s", err, edited)
	}
	h.must(koboshi, "generate", "--check")
}

// staleList requires that generate repairs the list of kinds in AGENTS.md.
func (h harbour) staleList() {
	h.Helper()
	file := filepath.Join(h.dir, "AGENTS.md")
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), "| Boat sea.example.com/v1 |") {
		h.Fatalf("%v:\n%s", err, data)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte("| Boat "), []byte("| Raft ")), 0o644); err != nil {
		h.Fatal(err)
	}
	if out, err := h.run(koboshi, "generate", "--check"); err == nil || !strings.Contains(out, "+| Boat sea.example.com/v1 |") {
		h.Errorf("%v: %s", err, out)
	}
	if out := h.must(koboshi, "generate"); !strings.Contains(out, "updated AGENTS.md") {
		h.Error(out)
	}
	h.must(koboshi, "generate", "--check")
}

func TestADryRunWritesNothingAndPrintsTheDifference(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	out := h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship", "--dry-run")
	if !strings.Contains(out, "+++ b/api/v1/ship_types.go") || !strings.Contains(out, "+\tutilruntime.Must(seav1.AddToScheme(scheme))") {
		t.Errorf("the difference is\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "api")); err == nil {
		t.Error("the folder api was written")
	}
}

func TestAConflictIsNamedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	types := filepath.Join(h.dir, "api", "v1", "ship_types.go")
	if err := os.MkdirAll(filepath.Dir(types), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(types, []byte("package v1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship"}
	out, err := h.run(koboshi, args...)
	if err == nil || !strings.Contains(out, "api/v1/ship_types.go: the file exists already") {
		t.Errorf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), koboshi, append(args, "-o", "json")...)
	cmd.Dir = h.dir
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	var result struct {
		APIVersion string
		Written    bool
		Changes    []struct{ Path string }
	}
	if err := cmd.Run(); err == nil || json.Unmarshal(stdout.Bytes(), &result) != nil {
		t.Fatalf("%v\n%s", err, stdout.Bytes())
	}
	if result.APIVersion != "scaffold.koboshi.dev/v1" || result.Written || len(result.Changes) < 10 {
		t.Errorf("the result is %+v", result)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "internal")); err == nil {
		t.Error("other files were written")
	}
}

// edit replaces a text in a file, which must contain it.
func (h harbour) edit(file, old, text string) {
	h.Helper()
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		h.Fatalf("%s does not contain %q: %v", file, old, err)
	}
	if err := os.WriteFile(file, bytes.Replace(data, []byte(old), []byte(text), 1), 0o644); err != nil {
		h.Fatal(err)
	}
}

func TestAProjectOfAnOlderVersionIsUpdated(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	makefile := filepath.Join(h.dir, "Makefile")
	want, err := os.ReadFile(makefile)
	if err != nil {
		t.Fatal(err)
	}
	const line, older = "go vet ./...", "go vet ./... ./internal/..."
	templates, unpacked := filepath.Join(h.dir, "hack", "koboshi-templates.tar.gz"), t.TempDir()
	h.must("tar", "-xzf", templates, "-C", unpacked)
	h.edit(filepath.Join(unpacked, "v1", "init", "Makefile"), line, older)
	h.must("tar", "-czf", templates, "-C", unpacked, "v1")
	h.edit(makefile, line, "go vet -v ./...")

	out, err := h.run(koboshi, "edit", "--update", "--make=false")
	if err == nil || !strings.Contains(out, "you and koboshi both changed 1 line") || !strings.Contains(out, line) || !strings.Contains(out, "--skip-conflicts") {
		t.Errorf("%v\n%s", err, out)
	}
	h.edit(makefile, "go vet -v ./...", older)
	if out := h.must(koboshi, "edit", "--update", "--dry-run"); !strings.Contains(out, "-\t"+older+"\n+\t"+line+"\n") || strings.Contains(out, "\x00") {
		t.Errorf("the difference is\n%s", out)
	}
	out = h.must(koboshi, "edit", "--update", "--make=false")
	if out != "update Makefile\nupdate hack/koboshi-templates.tar.gz\n" {
		t.Error(out)
	}
	if got, err := os.ReadFile(makefile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v:\n%s", err, got)
	}
	if out := h.must(koboshi, "edit", "--update"); !strings.HasPrefix(out, "nothing to do") {
		t.Error(out)
	}
}

func TestAProjectOfOperatorSDKIsExtended(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	for _, own := range []string{"AGENTS.md", "hack/koboshi-templates.tar.gz"} {
		if err := os.Remove(filepath.Join(h.dir, own)); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := txtar.ParseFile(filepath.Join("testdata", "operator-sdk.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		name := filepath.Join(h.dir, filepath.FromSlash(file.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, file.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	h.must(koboshi, "create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship")
	h.must(koboshi, "generate", "--check")
	if out := h.must(koboshi, "kubectl", "kustomize", "config/manifests"); !strings.Contains(out, "kind: Configuration") || !strings.Contains(out, "kind: Ship") {
		t.Errorf("config/manifests lacks objects:\n%s", out)
	}
	h.must(koboshi, "delete", "api", "--group", "sea", "--version", "v1", "--kind", "Ship", "--make=false")
	for _, file := range archive.Files {
		if data, err := os.ReadFile(filepath.Join(h.dir, filepath.FromSlash(file.Name))); err != nil || !bytes.Equal(data, file.Data) {
			t.Errorf("%s has changed: %v\n%s", file.Name, err, data)
		}
	}
}
