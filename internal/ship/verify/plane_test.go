package verify_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
	"github.com/koboshi-dev/koboshi/internal/ship/verify"
)

// recorder keeps the steps that have succeeded, and the notes.
type recorder struct {
	t            *testing.T
	steps, notes []string
}

func (r *recorder) Step(name string, took time.Duration) {
	r.t.Logf("%s after %s", name, took)
	r.steps = append(r.steps, name)
}

func (r *recorder) Waiting(pending []ready.Pending) { r.t.Log(pending) }

func (r *recorder) Note(text string) {
	r.t.Log(text)
	r.notes = append(r.notes, text)
}

// shipped makes the image and the manifest of operators/foo, with the program that the environment variable
// KOBOSHI names. It also returns the folder of the Helm chart.
func shipped(t *testing.T) (o verify.Options, helm string) {
	t.Helper()
	program := os.Getenv("KOBOSHI")
	if program == "" {
		t.Skip("KOBOSHI does not name the koboshi program; build it, and set KOBOSHI to its absolute path")
	}
	project := filepath.Join("..", "..", "..", "operators", "foo")
	cmd := exec.Command(program, "ship", "--dir", project, "--image", "example.org/foo:v1", "--platform", "linux/"+runtime.GOARCH, "--output-dir", t.TempDir(), "-o", "json")
	out, err := cmd.Output()
	var result struct {
		Image, Layout, Install string
		Chart                  struct{ Dir string }
	}
	if err != nil || json.Unmarshal(out, &result) != nil {
		t.Fatalf("koboshi ship: %v\n%s", err, out)
	}
	o = verify.Options{
		Koboshi: program, Timeout: 2 * time.Minute, Observer: &recorder{t: t},
		Version:  verify.Version{Image: result.Image, Layout: result.Layout, Program: "/manager"},
		Scenario: &scenario.Scenario{Given: []scenario.Manifest{{File: filepath.Join(project, "config", "samples", "sample_v1alpha1_foo.yaml")}}},
	}
	if o.Manifest, err = order.Read([]string{result.Install}, nil); err != nil {
		t.Fatal(err)
	}
	if o.Scenario, err = o.Scenario.Inline(); err != nil {
		t.Fatal(err)
	}
	return o, result.Chart.Dir
}

func TestAReleaseOfTheChartWorksAndLeavesNothingInARealPlane(t *testing.T) {
	t.Parallel() // each waits for the garbage collector most of the time
	o, helm := shipped(t)
	var err error
	if o.Manifest, err = verify.Release(helm, "blue", "sky"); err != nil {
		t.Fatal(err)
	}
	o.Namespace, o.Args = "sky", []string{"-v=1"}
	store := httptest.NewServer(http.NotFoundHandler())
	defer store.Close()
	o.Scenario.Endpoints = []scenario.Endpoint{{Name: "store", URL: store.URL, Env: "STORE"}}
	manager := scenario.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "sky", Name: "blue-foo-controller-manager"}
	const container = `spec.template.spec.containers[?(@.name=="manager")].`
	o.Scenario.Steps = []scenario.Step{{Name: "look", Expect: []scenario.Condition{
		{ObjectRef: manager, Field: container + `env[?(@.name=="STORE")].value`, Equals: []byte(`"$(endpoint.store)"`)},
		{ObjectRef: manager, Field: container + "args[-1:]", Equals: []byte(`"-v=1"`)},
	}}}
	seen := &recorder{t: t}
	o.Observer = seen
	if err := verify.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"plane", "install", "samples", "uninstall", "nothing is left"}; !slices.Equal(seen.steps, want) {
		t.Errorf("the steps are %q, want %q", seen.steps, want)
	}
}

func TestAnUpgradeKeepsWhatTheOldVersionHasMadeInARealPlane(t *testing.T) {
	t.Parallel() // each waits for the garbage collector most of the time
	o, _ := shipped(t)
	old := o.Version
	old.Image = strings.Replace(o.Image, ":v1@", ":v0@", 1)
	old.Manifest = nil
	for _, object := range o.Manifest {
		old.Manifest = append(old.Manifest, *object.DeepCopy())
	}
	if n := install.SetImage(old.Manifest, o.Image, old.Image); n != 1 {
		t.Fatalf("%d containers have the image %s", n, o.Image)
	}
	o.Old = &old
	o.Scenario.Ledger = []string{o.Koboshi, "kubectl", "get", "deployments", "-o", "name"}
	seen := &recorder{t: t}
	o.Observer = seen
	if err := verify.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"plane", "old version", "samples", "upgrade", "nothing is lost", "uninstall", "nothing is left"}; !slices.Equal(seen.steps, want) {
		t.Errorf("the steps are %q, want %q", seen.steps, want)
	}
	if want := " and 1 line of the ledger with those before the upgrade"; !slices.ContainsFunc(seen.notes, func(note string) bool { return strings.HasSuffix(note, want) }) {
		t.Errorf("no note ends with %q: %q", want, seen.notes)
	}
}

func TestAnObjectThatIsLeftIsNamedInARealPlane(t *testing.T) {
	t.Parallel() // each waits for the garbage collector most of the time
	o, _ := shipped(t)
	o.Timeout = 20 * time.Second
	// Nobody removes its finalizer.
	o.Scenario = &scenario.Scenario{Given: []scenario.Manifest{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "forgotten", "namespace": "default", "finalizers": []any{"example.org/forgotten"}},
	}}}}
	err := verify.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "nothing is left: these objects differ from those before the installation:\n  ConfigMap default/forgotten: it was not there before") {
		t.Errorf("%v", err)
	}
}
