package cri

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// lister is the program of an image. It prints the entries of folders.
const lister = `package main

import (
	"fmt"
	"os"
)

func main() {
	for _, dir := range os.Args[1:] {
		entries, err := os.ReadDir(dir)
		if err != nil {
			fmt.Println(err)
		}
		for _, e := range entries {
			fmt.Print(e.Name(), " ")
		}
		fmt.Println()
	}
	dir, _ := os.Getwd()
	fmt.Println(dir, os.Getuid(), os.WriteFile("/etc/new", nil, 0o600))
}
`

// unpacked returns a folder with the files of an image whose program is /lister. The program needs no library.
func unpacked(t *testing.T) string {
	t.Helper()
	source, root := filepath.Join(t.TempDir(), "main.go"), t.TempDir()
	if err := os.WriteFile(source, []byte(lister), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(root, "lister"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(root, "etc", "app"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyLibraries(t, root)
	return root
}

// copyLibraries copies the libraries of the test binary, which is also the first process of a container. With the
// race detector, it is not static as koboshi is.
func copyLibraries(t *testing.T, root string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ldd", self).Output()
	if err != nil {
		return // it is static
	}
	for _, path := range strings.Fields(string(out)) {
		if !filepath.IsAbs(path) {
			continue
		}
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), content, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// entries returns the names of the entries of a folder, and more names, in their order.
func entries(t *testing.T, dir string, more ...string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		more = append(more, entry.Name())
	}
	slices.Sort(more)
	return strings.Join(more, " ")
}

func TestAContainerOfAnUnpackedImageSeesNoFileOfThisMachine(t *testing.T) {
	p := newPlane(t)
	root := unpacked(t)
	p.config.Programs = append(p.config.Programs, programs.Program{Image: "lister", Path: "/lister", Root: root})
	volume := p.volume("content", "file", "")
	config := containerConfig()
	config.Image = &runtimeapi.ImageSpec{Image: "lister"}
	config.Args = []string{"/", "/etc", "/data"}
	out, status := p.pod().run(withMounts(config, &runtimeapi.Mount{ContainerPath: "/data", HostPath: volume}))
	if want := entries(t, root, "data", "dev", "proc", "sys") + " \napp resolv.conf \nfile \n/ 65532 <nil>\n"; out != want || status.GetExitCode() != 0 {
		t.Errorf("exit code %d, and the container sees\n%s\nwant\n%s", status.GetExitCode(), out, want)
	}
}

func TestTheRootFolderOfAnUnpackedImageIsReadOnlyIfThePodSaysSo(t *testing.T) {
	p := newPlane(t)
	p.config.Programs = append(p.config.Programs, programs.Program{Image: "lister", Path: "/lister", Root: unpacked(t)})
	config := containerConfig()
	config.Image = &runtimeapi.ImageSpec{Image: "lister"}
	config.Args = []string{"/etc"}
	config.Linux.SecurityContext.ReadonlyRootfs = true
	out, _ := p.pod().run(config)
	if want := "app resolv.conf \n/ 65532 open /etc/new: read-only file system\n"; out != want {
		t.Errorf("the container sees\n%s\nwant\n%s", out, want)
	}
}
