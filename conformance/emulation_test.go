package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

// emulationNote is the beginning of the note that koboshi prints for an emulated version.
// laterAPI was introduced after version 1.34, and is on by default in the version of the
// program.
const (
	emulationNote = "koboshi: Kubernetes 1.37.0 emulates 1.34: "
	laterAPI      = "/apis/storagemigration.k8s.io/v1"
)

func TestPlaneEmulatesAnOlderMinorVersion(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--ephemeral", "--profile=workloads", "--kubernetes=1.34")
	requireEmulation(t, []byte(p.kubectl(t, "get", "--raw", "/version")))
	if !strings.Contains(p.output.String(), emulationNote) {
		t.Errorf("no note says what is not emulated:\n%s", p.output)
	}
	// The other components work with the emulated server.
	ns := p.namespace(t)
	p.applyIn(t, ns, nginxDeployment)
	p.waitForReadyPods(t, ns, 3)
	if out, err := p.tryKubectl("", "get", "--raw", laterAPI); err == nil {
		t.Errorf("%s is served: %s", laterAPI, out)
	}
	if out, err := sharedPlane(t).tryKubectl("", "get", "--raw", laterAPI); err != nil {
		t.Errorf("without an emulation: %v\n%s", err, out)
	}
}

func TestCheckRunsTheControllerOnAnEmulatedVersion(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "version.json")
	ask := `"$0" kubectl get --raw /version > "$1" && exec "$2"`
	c := check(t, t.TempDir(), 0, "--crds=widgets.yaml", "--scenario=create.yaml", "--workers=1", "--seed=7", "--plan", "--kubernetes=1.34",
		"--", "sh", "-c", ask, koboshi, seen, checked(t))
	if !strings.HasPrefix(c.stderr.String(), emulationNote) {
		t.Errorf("no note says what is not emulated:\n%s", c.stderr)
	}
	requireEmulationIn(t, seen)
}

func TestCommandRunsOnAnEmulatedVersion(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "version.json")
	got := testCommand(t, "", "--kubernetes=1.34", "--profile=api", "--", "sh", "-c", `"$TEST_ASSET_KUBECTL" get --raw /version > "$0"`, seen)
	if got.code != 0 || !strings.HasPrefix(got.stderr, emulationNote) {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	requireEmulationIn(t, seen)
}

func TestAVersionThatCannotBeEmulatedIsRefusedWithTheChoice(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"up", "--kubernetes=1.20"},
		{"check", "--kubernetes=1.20"},
		{"test", "--kubernetes=1.20"},
		{"test", "--kubernetes", "1.20", "--", "true"},
	} {
		out, err := exec.CommandContext(t.Context(), koboshi, args...).CombinedOutput()
		want := "koboshi: --kubernetes: version \"1.20\" cannot be emulated; choose one of: 1.34, 1.35, 1.36, 1.37\n"
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || string(out) != want {
			t.Errorf("koboshi %s: %v\ngot  %swant %s", strings.Join(args, " "), err, out, want)
		}
	}
}

func requireEmulationIn(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	requireEmulation(t, data)
}

func requireEmulation(t *testing.T, data []byte) {
	t.Helper()
	var got version.Info
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if got.GitVersion != "v1.37.0" || got.EmulationMajor != "1" || got.EmulationMinor != "34" {
		t.Errorf("/version is %s", data)
	}
}
