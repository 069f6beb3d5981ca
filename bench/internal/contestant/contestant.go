// Package contestant finds and builds the contestants of the benchmark, which are folders
// with an etcd, a kube-apiserver and a kubectl.
package contestant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// These are the names of the contestants in tables, charts and JSON.
const (
	Stock   = "stock"
	Koboshi = "koboshi"
)

// A Contestant is one way to run a control plane that fulfills envtest's contract.
type Contestant struct {
	Name string
	// Assets is the folder with the three programs.
	Assets string
}

// programs lists the programs that envtest expects in a folder of assets.
var programs = []string{"etcd", "kube-apiserver", "kubectl"}

// Check returns an error if the contestant's folder lacks a program.
func (c Contestant) Check() error {
	for _, name := range programs {
		path := filepath.Join(c.Assets, name)
		if _, err := exec.LookPath(path); err != nil {
			return fmt.Errorf("%s cannot be measured: %w; use -%s DIR to name a folder that contains the program", c.Name, err, c.Name)
		}
	}
	return nil
}

// FromBinary runs a built koboshi to find its folder of assets.
func FromBinary(ctx context.Context, binary string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, binary, "envtest", "path")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running \"%s envtest path\": %w: %s; run \"make build\", or give the folder of the program with -koboshi DIR",
			binary, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// BuildStock builds upstream's programs without changes, in the versions that the module
// in root requires, and returns their folder. The first call takes minutes; later calls
// only check the result.
func BuildStock(ctx context.Context, root string, progress io.Writer) (string, error) {
	dir, err := filepath.Abs(filepath.Join(root, "bin", "stock"))
	if err != nil {
		return "", err
	}
	kubernetes, err := ModuleVersion(ctx, root, "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	// Like upstream's releases, the programs are built without cgo and without symbols, and
	// report their version.
	flags := "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + kubernetes
	for _, p := range []struct{ name, pkg string }{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	} {
		fmt.Fprintln(progress, "building stock", p.name)
		cmd := exec.CommandContext(ctx, "go", "build", flags, "-o", filepath.Join(dir, p.name), p.pkg)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building stock %s: %w\n%s", p.name, err, out)
		}
	}
	return dir, nil
}

// BuildReset builds the tests of the package that implements Koboshi's reset, and puts the
// binary in dir. It returns an empty path if the package does not contain the benchmark.
func BuildReset(ctx context.Context, root, dir, benchmark string) (string, error) {
	path := filepath.Join(dir, "reset.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", path, "./internal/controlplane")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the reset benchmark: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, path, "-test.list", "^"+benchmark+"$").Output()
	if err != nil {
		return "", fmt.Errorf("listing the reset benchmarks: %w", err)
	}
	if !strings.Contains(string(out), benchmark) {
		return "", nil
	}
	return path, nil
}

// ModuleVersion returns the version of another module that the module in root requires.
func ModuleVersion(ctx context.Context, root, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("reading the version of %s: %w: %s", module, err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}
