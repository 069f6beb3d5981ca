package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const running = "1.37.0"

func TestOpenTakesAFolderThatIsNewOrEmpty(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, path string){
		"new":   func(*testing.T, string) {},
		"empty": func(t *testing.T, path string) { mkdir(t, path) },
		"killed between lock and marker": func(t *testing.T, path string) {
			mkdir(t, path)
			write(t, filepath.Join(path, lockName), "12345\n")
			write(t, filepath.Join(path, "."+markerName+"-871"), `{"form`)
		},
		"used by koboshi check and a killed koboshi dev": func(t *testing.T, path string) {
			for _, folder := range []string{"findings", "journal", "dev"} {
				mkdir(t, filepath.Join(path, folder))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "deep", "data")
			prepare(t, path)
			d := open(t, path)
			want := Marker{Format: Format, Kubernetes: running}
			if diff := cmp.Diff(want, d.Marker()); diff != "" {
				t.Errorf("Marker() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, onDisk(t, path)); diff != "" {
				t.Errorf("marker file (-want +got):\n%s", diff)
			}
			if got := read(t, filepath.Join(path, ".gitignore")); got != "*\n" {
				t.Errorf(".gitignore is %q; the secrets in the folder could be committed", got)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if name == "new" && info.Mode().Perm() != 0o700 {
				t.Errorf("the folder has mode %v; others may read the keys in it", info.Mode().Perm())
			}
		})
	}
}

func TestOpenKeepsWhatTheMarkerSays(t *testing.T) {
	t.Parallel()
	for _, written := range []string{"1.37.0", "1.37.9", "1.36.4", "0.9.0"} {
		t.Run(written, func(t *testing.T) {
			t.Parallel()
			path := dataDir(t, Marker{Format: Format, Kubernetes: written, Initialized: true, Port: 6443})
			want := Marker{Format: Format, Kubernetes: running, Initialized: true, Port: 6443}
			if diff := cmp.Diff(want, open(t, path).Marker()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenRefusesWhatItMustNotTouch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		what    string // part of the message
	}{
		"locked by another open": {
			prepare: func(t *testing.T, path string) { open(t, path) },
			what:    fmt.Sprintf("is in use by process %d", os.Getpid()),
		},
		"newer format": {
			prepare: func(t *testing.T, path string) { write(t, marker(t, path), `{"format":2,"kubernetes":"1.37.0"}`) },
			what:    "newer version (Kubernetes 1.37.0, format 2)",
		},
		"newer Kubernetes minor": {
			prepare: func(t *testing.T, path string) { write(t, marker(t, path), `{"format":1,"kubernetes":"1.38.0"}`) },
			what:    "newer version (Kubernetes 1.38.0, format 1)",
		},
		"newer Kubernetes major": {
			prepare: func(t *testing.T, path string) { write(t, marker(t, path), `{"format":1,"kubernetes":"2.0.0"}`) },
			what:    "newer version",
		},
		"garbage marker": {
			prepare: func(t *testing.T, path string) { write(t, marker(t, path), "\x00\x00\x00") },
			what:    "is damaged: koboshi.json cannot be read",
		},
		"empty marker": {
			prepare: func(t *testing.T, path string) { write(t, marker(t, path), "") },
			what:    "is damaged: koboshi.json cannot be read",
		},
		"marker of something else": {
			prepare: func(t *testing.T, path string) { write(t, marker(t, path), `{"name":"x"}`) },
			what:    "is damaged: koboshi.json has no format number",
		},
		"not ours": {
			prepare: func(t *testing.T, path string) { mkdir(t, path); write(t, filepath.Join(path, "thesis.tex"), "") },
			what:    "so Koboshi did not create it",
		},
		"a file": {
			prepare: func(t *testing.T, path string) { write(t, path, "") },
			what:    "is not a directory",
		},
		"below a file": {
			prepare: func(t *testing.T, path string) { write(t, filepath.Dir(path), "") },
			what:    "is not a directory",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			path := filepath.Join(top, "parent", "data")
			if name != "below a file" {
				mkdir(t, filepath.Dir(path))
			}
			test.prepare(t, path)
			before := tree(t, top)
			_, err := Open(path, running)
			var problem *Problem
			if !errors.As(err, &problem) {
				t.Fatalf("Open: %v, want a *Problem", err)
			}
			if !strings.Contains(problem.What, test.what) {
				t.Errorf("the problem is %q, want it to contain %q", problem.What, test.what)
			}
			if problem.Dir != path || problem.Next == "" || strings.Contains(problem.Error(), "\n") {
				t.Errorf("%q does not name the folder and the next action in one line", problem)
			}
			after := tree(t, top)
			delete(after, filepath.Join("parent", "data", lockName)) // names the last process that tried
			delete(before, filepath.Join("parent", "data", lockName))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("a refused folder was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestOfManyWhoOpenAtOnceOneSucceeds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		taken []*Dir
	)
	for range 8 {
		wg.Go(func() {
			d, err := Open(path, running)
			var problem *Problem
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, d)
				// After opening the data directory, a plane creates a
				// subfolder, which must not affect later attempts to open the
				// directory.
				mkdir(t, d.Path("etcd"))
			case !errors.As(err, &problem) || !strings.Contains(problem.What, "is in use by"):
				t.Errorf("Open: %v, want the error that the folder is in use", err)
			}
		})
	}
	wg.Wait()
	if len(taken) != 1 {
		t.Errorf("%d opened the folder, want 1", len(taken))
	}
	for _, d := range taken {
		closeDir(t, d)
	}
}

// Between the check and the lock, another process may have started, written to
// the folder and ended.
func TestOpenNeverResetsAMarkerThatAppearedMeanwhile(t *testing.T) {
	t.Parallel()
	want := Marker{Format: Format, Kubernetes: running, Initialized: true, Port: 6443}
	path := dataDir(t, want)
	late := &Dir{path: path} // has seen no marker
	if err := late.takeLock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDir(t, late) })
	if err := late.adopt(running); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, onDisk(t, path)); diff != "" {
		t.Errorf("acknowledged state was forgotten (-want +got):\n%s", diff)
	}
}

func TestCloseLetsTheNextOneIn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	for range 3 {
		d, err := Open(path, running)
		if err != nil {
			t.Fatal(err)
		}
		closeDir(t, d)
	}
}

func TestUpdateIsSeenByTheNextOpenAndOnlyWhenItSucceeds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path)
	if err := d.Update(func(m *Marker) { m.Port = 6443 }); err != nil {
		t.Fatal(err)
	}
	if got := onDisk(t, path); got != d.Marker() || got.Port != 6443 {
		t.Errorf("on disk %+v, in memory %+v, want port 6443 in both", got, d.Marker())
	}
	// If there is a folder in place of the marker, a file cannot replace it.
	if err := os.Remove(filepath.Join(path, markerName)); err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Join(path, markerName))
	if err := d.Update(func(m *Marker) { m.Port = 1 }); err == nil {
		t.Error("Update: no error, though the marker could not be written")
	}
	if got := d.Marker().Port; got != 6443 {
		t.Errorf("after a failed Update the port is %d, want 6443", got)
	}
}

func TestWriteFileReplacesInOneStep(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	contents := []string{strings.Repeat("old", 1<<15), strings.Repeat("new", 1<<15)}
	writeFile(t, path, contents[0])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != contents[0] && string(data) != contents[1] {
				t.Errorf("a reader saw %d bytes and error %v", len(data), err)
				return
			}
		}
	})
	for i := range 100 {
		writeFile(t, path, contents[i%2])
	}
	close(stop)
	wg.Wait()
}

func TestWriteFileSetsThePermissionsAndLeavesNothingBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "readable by all")
	writeFile(t, path, "secret")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
	mkdir(t, filepath.Join(dir, "folder"))
	if err := WriteFile(filepath.Join(dir, "folder"), nil, 0o600); err == nil {
		t.Error("WriteFile replaced a folder")
	}
	if err := WriteFile(filepath.Join(dir, "none", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("WriteFile into a folder that does not exist: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"file": "secret", "folder": "/"}, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamageNamesTheFolderAndTheNextAction(t *testing.T) {
	t.Parallel()
	d := &Dir{path: "/data"}
	want := "data directory /data is damaged: etcd is gone; restore it from a backup, or move it away to start over"
	if got := d.Damaged("etcd is gone").Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// open opens path and closes it when the test ends.
func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path, running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDir(t, d) })
	return d
}

func closeDir(t *testing.T, d *Dir) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// dataDir creates a data directory in the state in which a finished run leaves
// it.
func dataDir(t *testing.T, m Marker) string {
	t.Helper()
	path := t.TempDir()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, markerName), string(data))
	write(t, filepath.Join(path, lockName), "")
	return path
}

func marker(t *testing.T, path string) string {
	t.Helper()
	mkdir(t, path)
	return filepath.Join(path, markerName)
}

func onDisk(t *testing.T, path string) (m Marker) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, filepath.Join(path, markerName))), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// tree maps each path below dir to its content, or to "/" for a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil || name == "." {
			return errors.Join(err, relErr)
		}
		found[name] = "/"
		if !entry.IsDir() {
			found[name] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
