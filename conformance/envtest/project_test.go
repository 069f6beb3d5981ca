package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/assets"
)

// The tests read two environment variables:
//
//	KOBOSHI          the binary to test (default: bin/koboshi)
//	CONTRACT_ASSETS  the folder to test instead of Koboshi's, such as stock's

// toolsVersion is the version of setup-envtest, which is not released with every
// release of controller-runtime.
const toolsVersion = "v0.25.1"

func koboshi(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("KOBOSHI")
	if binary == "" {
		binary = filepath.Join(root, "bin", "koboshi")
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// koboshiOnly returns the binary, for tests of features that only Koboshi has.
func koboshiOnly(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("CONTRACT_ASSETS"); dir != "" {
		t.Skip("CONTRACT_ASSETS names other programs than Koboshi's")
	}
	return koboshi(t)
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := assets.Koboshi(t.Context(), os.Getenv("CONTRACT_ASSETS"), koboshi(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A project is a copy of the project in testdata, which has kubebuilder's layout.
type project struct {
	dir string
	env []string
}

func newProject(t *testing.T, env ...string) project {
	t.Helper()
	p := project{dir: t.TempDir()}
	if err := os.CopyFS(p.dir, os.DirFS(filepath.Join("testdata", "project"))); err != nil {
		t.Fatal(err)
	}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "TEST_ASSET_"), strings.HasPrefix(name, "ENVTEST_"), strings.HasPrefix(name, "KOBOSHI"),
			strings.HasPrefix(name, "MAKE"), // set by a make that runs these tests, for its own sub-makes
			name == "KUBEBUILDER_ASSETS", name == "USE_EXISTING_CLUSTER", name == "MFLAGS":
		default:
			p.env = append(p.env, e)
		}
	}
	// The project is built without cgo, like everything else that does not use the race
	// detector, so that nothing is compiled twice. Without -vet=off, go test would vet all
	// dependencies.
	p.env = append(p.env, "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS="+goflags())
	p.env = append(p.env, env...)
	return p
}

// goflags returns the value of GOFLAGS with -vet=off added.
func goflags() string { return strings.TrimSpace(os.Getenv("GOFLAGS") + " -vet=off") }

// run runs a command in the project, and fails the test if the command fails.
func (p project) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := p.try(t.Context(), name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (p project) try(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ran matches a package whose tests really ran, so that the result is not from go test's
// cache.
var ran = regexp.MustCompile(`(?m)^ok\s+example\.com/post/internal/(controller|webhook/v1)\s+[\d.]+s`)

// wantBothSuites fails unless the project's two suites have just passed.
func wantBothSuites(t *testing.T, output string) {
	t.Helper()
	if found := ran.FindAllString(output, -1); len(found) != 2 {
		t.Errorf("%d of the 2 suites passed:\n%s", len(found), output)
	}
}

func TestAProjectPassesWithKoboshiTest(t *testing.T) {
	binary := koboshiOnly(t)
	wantBothSuites(t, newProject(t).run(t, binary, "test", "-count=1", "./..."))
}

func TestAProjectPassesWithGoTestAndTheVariable(t *testing.T) {
	p := newProject(t, "KUBEBUILDER_ASSETS="+folder(t))
	wantBothSuites(t, p.run(t, "go", "test", "-count=1", "./..."))
}

func TestAProjectPassesWithMakeTestAndTheVariable(t *testing.T) {
	dir := folder(t)
	p := newProject(t, "KUBEBUILDER_ASSETS="+dir, "ENVTEST_USE_ENV=true", "ENVTEST_VERSION="+toolsVersion)
	output := p.run(t, "make", "test", "GOFLAGS=-count=1 "+goflags())
	wantBothSuites(t, output)
	if !strings.Contains(output, fmt.Sprintf("KUBEBUILDER_ASSETS=%q", dir)) {
		t.Errorf("setup-envtest led make to other programs than those in %s:\n%s", dir, output)
	}
	// setup-envtest always creates its folder.
	if fetched, err := os.ReadDir(filepath.Join(p.dir, "bin", "k8s")); len(fetched) > 0 || err != nil {
		t.Errorf("setup-envtest has fetched programs of its own: %v, %v", fetched, err)
	}
}

// offline returns variables that keep Go and setup-envtest from using the network. Without
// the network, Go and setup-envtest fail if something is not in the module cache.
func offline() []string { return []string{"GOPROXY=off", "HTTPS_PROXY=http://127.0.0.1:1"} }

func TestAProjectPassesWithoutAVariableOnceInstalled(t *testing.T) {
	binary := koboshiOnly(t)
	p := newProject(t)
	p.run(t, binary, "envtest", "install")
	t.Run("go test", func(t *testing.T) { wantBothSuites(t, p.run(t, "go", "test", "-count=1", "./...")) })
	t.Run("make test", func(t *testing.T) { testMakeFindsTheProgramsInBin(t, p) })
}

// This test does not use koboshi envtest install, to show that the project finds programs
// in its bin folder no matter how they got there.
func TestAProjectPassesWithProgramsInItsBinFolder(t *testing.T) {
	p := newProject(t)
	installed := filepath.Join(p.dir, "bin", "k8s", "1.37.0-"+runtime.GOOS+"-"+runtime.GOARCH)
	if err := os.MkdirAll(installed, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := folder(t)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(installed, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("go test", func(t *testing.T) { wantBothSuites(t, p.run(t, "go", "test", "-count=1", "./...")) })
	t.Run("make test", func(t *testing.T) { testMakeFindsTheProgramsInBin(t, p) })
}

// testMakeFindsTheProgramsInBin acts as a user who sets no variables. It fetches the
// generators before it turns off the network.
func testMakeFindsTheProgramsInBin(t *testing.T, p project) {
	p.run(t, "make", "controller-gen", "envtest", "ENVTEST_VERSION="+toolsVersion)
	p.env = append(p.env, offline()...)
	output := p.run(t, "make", "test", "GOFLAGS=-count=1 "+goflags())
	wantBothSuites(t, output)
	if !strings.Contains(output, `KUBEBUILDER_ASSETS="`+filepath.Join(p.dir, "bin", "k8s")) {
		t.Errorf("make used other programs than those in the project's bin folder:\n%s", output)
	}
}

func TestGeneratedFilesOfTheProjectAreCurrent(t *testing.T) {
	p := newProject(t)
	p.run(t, "make", "manifests", "generate", "fmt")
	fresh, committed := os.DirFS(p.dir), os.DirFS(filepath.Join("testdata", "project"))
	if err := sameFiles(committed, fresh); err != nil {
		t.Errorf("make manifests generate fmt in testdata/project changes: %v; commit the outcome", err)
	}
}
