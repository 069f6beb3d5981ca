// Package assets finds or builds the folders that envtest needs, which contain etcd,
// kube-apiserver and kubectl.
package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// programs lists the names for which envtest looks, and the packages from which the stock
// programs are built.
var programs = []struct{ name, pkg string }{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
}

// Koboshi returns Koboshi's folder: dir if it is not empty, otherwise the folder that
// the binary prints.
func Koboshi(ctx context.Context, dir, binary string) (string, error) {
	if dir != "" {
		return Complete(dir)
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, binary, "envtest", "path").Output()
	if err != nil {
		return "", fmt.Errorf("running \"%s envtest path\": %w; to build Koboshi, run \"make build\" in the root of the repository", binary, told(err))
	}
	return Complete(strings.TrimSpace(string(out)))
}

// BuildStock builds the stock programs in dir, in the versions that the go.mod in root
// requires. A cold build takes minutes, so BuildStock reports its progress.
func BuildStock(ctx context.Context, root, dir string, progress io.Writer) error {
	for i, p := range programs {
		began := time.Now()
		fmt.Fprintf(progress, "building stock program %d of %d, %s (takes minutes the first time)\n", i+1, len(programs), p.name)
		cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, p.name), p.pkg)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building stock %s: %w\n%s", p.name, err, out)
		}
		fmt.Fprintf(progress, "built stock program %d of %d in %.0f s\n", i+1, len(programs), time.Since(began).Seconds())
	}
	return nil
}

// Complete returns the folder's absolute path, because suites run in other folders. If a
// program is missing, the error names it.
func Complete(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, p := range programs {
		if info, err := os.Stat(filepath.Join(dir, p.name)); err != nil {
			return "", fmt.Errorf("checking the folder for envtest: %w", err)
		} else if info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("checking the folder for envtest: %s is not executable", filepath.Join(dir, p.name))
		}
	}
	return dir, nil
}

// told adds the standard error of the program to an error.
func told(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
