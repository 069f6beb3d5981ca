package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// krew and the packages install the program under the name of a plugin, and kubectl starts it by that
// name.
func TestKubectlStartsTheProgramAsItsPlugin(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(koboshi, filepath.Join(dir, "kubectl-koboshi")); err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command(koboshi, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(koboshi, "kubectl", "koboshi", "version")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir, "KUBECONFIG="+filepath.Join(dir, "none"))
	if got, err := cmd.CombinedOutput(); err != nil || string(got) != string(want) {
		t.Errorf("kubectl koboshi version printed %q (%v), want %q", got, err, want)
	}
}
