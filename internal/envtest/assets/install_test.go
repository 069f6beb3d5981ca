package assets

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstallWritesRegularFilesThatShareTheirSpace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "k8s", "1.0.0-linux-amd64")
	done, err := Install(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	want := Installation{Dir: dir, Files: Names(), Replaced: []string{}, Linked: true}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkInstalled(t, dir, true)
}

// This test is not parallel, because the umask applies to the entire process.
func TestOthersMayRunWhatIsInstalledWhateverTheUmask(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	dir := t.TempDir()
	if _, err := Install(dir, false); err != nil {
		t.Fatal(err)
	}
	checkInstalled(t, dir, true)
}

func TestInstallCopiesWhereLinksCannotBeMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refuse := func(from, to string) error { return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EPERM} }
	done, err := install(self(t), dir, false, refuse)
	if err != nil || done.Linked {
		t.Errorf("linked: %t (%v)", done.Linked, err)
	}
	checkInstalled(t, dir, false)
}

func TestInstallReplacesItsOwnWithoutBeingAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		if _, err := Install(dir, false); err != nil {
			t.Fatal(err)
		}
	}
	// A link to our program is treated as our file. The link is replaced, not its target.
	if err := symlink(self(t), filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	done, err := Install(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Names(), done.Replaced); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	checkInstalled(t, dir, true)
}

func TestInstallSparesOtherProgramsUnlessForced(t *testing.T) {
	t.Parallel()
	stock := otherProgram(t)
	for name, put := range map[string]func(path string) error{
		"another Go program": func(path string) error { return copyFile(stock, path) },
		"a script":           func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700) },
		"a broken link":      func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := put(filepath.Join(dir, "kubectl")); err != nil {
				t.Fatal(err)
			}
			_, err := Install(dir, false)
			var foreign *ForeignError
			if !errors.As(err, &foreign) {
				t.Fatalf("%v, want a *ForeignError", err)
			}
			if diff := cmp.Diff(&ForeignError{Dir: dir, Files: []string{"kubectl"}}, foreign); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"kubectl"}, list(t, dir)); diff != "" {
				t.Errorf("a refused folder's content (-want +got):\n%s", diff)
			}
			done, err := Install(dir, true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"kubectl"}, done.Replaced); diff != "" {
				t.Errorf("replaced (-want +got):\n%s", diff)
			}
			checkInstalled(t, dir, true)
		})
	}
}

func TestInstallRemovesNoFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside := executable(t, filepath.Join(dir, "etcd", "file"), "")
	if done, err := Install(dir, true); err == nil {
		t.Errorf("%+v", done)
	}
	if _, err := os.Stat(inside); err != nil {
		t.Error(err)
	}
}

func TestARunningProgramMayBeReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The program is moved, not copied: a child process of another test could still hold a
	// copy open for writing, and a program that is open for writing cannot be started.
	if err := os.Rename(otherProgram(t), filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	running := exec.CommandContext(t.Context(), filepath.Join(dir, "etcd"))
	stdin, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, true); err != nil {
		t.Error(err)
	}
	if err := errors.Join(stdin.Close(), running.Wait()); err != nil {
		t.Errorf("the old program: %v", err)
	}
	checkInstalled(t, dir, true)
}

func TestAFailedInstallChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Install(dir, false); err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, dir)
	// The source is a folder, so opening it succeeds and reading it fails.
	if done, err := install(t.TempDir(), dir, false, os.Link); err == nil {
		t.Errorf("%+v", done)
	}
	if diff := cmp.Diff(before, fingerprint(t, dir)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestInstallRemovesWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, young := executable(t, tempName(dir), "half"), executable(t, tempName(dir), "half")
	killed := time.Now().Add(-stale - time.Minute)
	if err := os.Chtimes(old, killed, killed); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, false); err != nil {
		t.Fatal(err)
	}
	// The newer file may belong to a running installation.
	if diff := cmp.Diff(append([]string{filepath.Base(young)}, Names()...), list(t, dir)); diff != "" {
		t.Errorf("the folder's content (-want +got):\n%s", diff)
	}
}

// checkInstalled compares each file with the running executable and, if linked is true,
// with the other files.
func checkInstalled(t *testing.T, dir string, linked bool) {
	t.Helper()
	want, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Names(), list(t, dir)); diff != "" {
		t.Errorf("the folder's content (-want +got):\n%s", diff)
	}
	for _, name := range Names() {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o755 {
			t.Errorf("%s has mode %v, want a regular file with 0755", name, info.Mode())
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s (%d bytes, %v) is not the running executable (%d bytes)", name, len(got), err, len(want))
		}
		first, err := os.Lstat(filepath.Join(dir, Names()[0]))
		if err != nil {
			t.Fatal(err)
		}
		if got := os.SameFile(first, info); got != (linked || name == first.Name()) {
			t.Errorf("%s is the same file as %s: %t, want linked: %t", name, first.Name(), got, linked)
		}
	}
}

func fingerprint(t *testing.T, dir string) map[string]uint64 {
	t.Helper()
	inodes := map[string]uint64{}
	for _, name := range list(t, dir) {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		inodes[name] = info.Sys().(*syscall.Stat_t).Ino
	}
	return inodes
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// otherProgram builds a program that waits for the end of its input.
func otherProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const source = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdin.Read(make([]byte, 1)) }\n"
	for name, content := range map[string]string{"main.go": source, "go.mod": "module example.com/stock\n\ngo 1.26\n"} {
		executable(t, filepath.Join(dir, name), content)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "stock", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "stock")
}
