package assets

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFolderLeadsToTheExecutable(t *testing.T) {
	t.Parallel()
	root, exe := t.TempDir(), executable(t, filepath.Join(t.TempDir(), "koboshi"), "one")
	dir, err := folder(root, exe)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if target, err := os.Readlink(filepath.Join(dir, name)); err != nil || target != exe {
			t.Errorf("%s leads to %q (%v), want %s", name, target, err, exe)
		}
	}
	again, err := folder(root, exe)
	if err != nil || again != dir {
		t.Errorf("the second time it is %s (%v), want %s", again, err, dir)
	}
	other, err := folder(root, executable(t, filepath.Join(t.TempDir(), "koboshi"), "two"))
	if err != nil || other == dir {
		t.Errorf("two executables share %s (%v)", other, err)
	}
}

func TestFolderIsMended(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string) error{
		"missing":         os.Remove,
		"leads elsewhere": func(path string) error { return symlink("elsewhere", path) },
		"a regular file":  overwrite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, exe := t.TempDir(), executable(t, filepath.Join(t.TempDir(), "koboshi"), "one")
			dir, err := folder(root, exe)
			if err != nil {
				t.Fatal(err)
			}
			if err := harm(filepath.Join(dir, "etcd")); err != nil {
				t.Fatal(err)
			}
			if _, err := folder(root, exe); err != nil {
				t.Fatal(err)
			}
			if target, err := os.Readlink(filepath.Join(dir, "etcd")); err != nil || target != exe {
				t.Errorf("etcd leads to %q (%v), want %s", target, err, exe)
			}
			if diff := cmp.Diff(Names(), list(t, dir)); diff != "" {
				t.Errorf("the folder's content (-want +got):\n%s", diff)
			}
		})
	}
}

// Test binaries of many packages start at the same time, and each calls Folder.
func TestManyMayAskForTheFolderAtOnce(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"bin", "go-build1/b001/exe"} {
		root, exe := t.TempDir(), executable(t, filepath.Join(t.TempDir(), place, "koboshi"), "one")
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				dir, err := folder(root, exe)
				if err != nil {
					t.Error(err)
					return
				}
				for _, name := range Names() {
					if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != "one" {
						t.Errorf("%s: %q (%v)", name, got, err)
					}
				}
			})
		}
		all.Wait()
	}
}

func TestWhatGoRunMadeIsKept(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"go-build123/b001/exe", "go-build/fd/fd3e-d", ".cache/go-build-user/x"} {
		root, exe := t.TempDir(), executable(t, filepath.Join(t.TempDir(), place, "koboshi"), "one")
		dir, err := folder(root, exe)
		if err != nil {
			t.Fatal(err)
		}
		// Go's build cache may hold another build under the same name.
		executable(t, exe, "two")
		built := time.Now().Add(time.Minute)
		if err := os.Chtimes(exe, built, built); err != nil {
			t.Fatal(err)
		}
		if again, err := folder(root, exe); err != nil || again != dir {
			t.Errorf("the second time it is %s (%v), want %s", again, err, dir)
		}
		if err := os.Remove(exe); err != nil {
			t.Fatal(err)
		}
		for _, name := range Names() {
			path := filepath.Join(dir, name)
			if got, err := os.ReadFile(path); err != nil || string(got) != "two" {
				t.Errorf("%s: %s holds %q (%v)", place, name, got, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%s: %s: %v (%v), want mode 0755", place, name, info.Mode(), err)
			}
		}
	}
}

func TestACopyGoesWhenItWasNotUsedForLong(t *testing.T) {
	t.Parallel()
	root, build := t.TempDir(), filepath.Join(t.TempDir(), "go-build1")
	unused := mustFolder(t, root, executable(t, filepath.Join(build, "a", "koboshi"), "one"))
	used := mustFolder(t, root, executable(t, filepath.Join(build, "b", "koboshi"), "one"))
	linked := mustFolder(t, root, executable(t, filepath.Join(t.TempDir(), "koboshi"), "one"))
	lastUse := time.Now().Add(-keepFor - time.Hour)
	for _, dir := range []string{unused, used, linked} {
		if err := os.Chtimes(dir, lastUse, lastUse); err != nil {
			t.Fatal(err)
		}
	}
	mustFolder(t, root, filepath.Join(build, "b", "koboshi"))
	mustFolder(t, root, executable(t, filepath.Join(build, "c", "koboshi"), "one"))
	if _, err := os.Stat(unused); err == nil {
		t.Errorf("%s is still there", unused)
	}
	for _, dir := range []string{used, linked} {
		if _, err := os.Stat(filepath.Join(dir, "etcd")); err != nil {
			t.Error(err)
		}
	}
}

func TestWithoutAHomeTheFolderIsATemporaryOne(t *testing.T) {
	for name, home := range map[string]string{"no HOME": "", "HOME is a file": executable(t, filepath.Join(t.TempDir(), "file"), "")} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CACHE_HOME", "")
			t.Setenv("TMPDIR", temp)
			dir, err := Folder()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(dir, temp+"/") {
				t.Errorf("%s is not in %s", dir, temp)
			}
			// Users who can write to the folder could choose which programs envtest runs.
			for at := dir; at != temp; at = filepath.Dir(at) {
				if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%s: %v (%v), want mode 0700", at, info.Mode(), err)
				}
			}
		})
	}
}

func TestAFolderThatOthersMayWriteIsRefused(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if _, err := Folder(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(temp, list(t, temp)[0]), 0o777); err != nil {
		t.Fatal(err)
	}
	dir, err := Folder()
	if err == nil {
		t.Fatalf("the folder %s was accepted", dir)
	}
	if next := "set XDG_CACHE_HOME or TMPDIR to a writable folder"; !strings.HasSuffix(err.Error(), next) {
		t.Errorf("%q does not end with %q", err, next)
	}
}

// executable writes a file that is marked executable but is not a program.
func executable(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustFolder(t *testing.T, root, exe string) string {
	t.Helper()
	dir, err := folder(root, exe)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func symlink(target, path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// overwrite replaces path itself, not the target of a link.
func overwrite(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
