package watch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// folders returns all folders below dir.
func folders(dir string) func() ([]string, error) {
	return func() (all []string, err error) {
		err = filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				all = append(all, at)
			}
			return err
		})
		return all, err
	}
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, w *Watcher, what string) {
	t.Helper()
	select {
	case <-w.Hints():
	case <-time.After(5 * time.Minute):
		t.Fatalf("no hint after %s", what)
	}
}

func TestAHintFollowsEachChange(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "file"))
	w, err := Start(t.Context(), folders(dir))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a", "file"))
	await(t, w, "a write")
	write(t, filepath.Join(dir, "new", "deep", "file"))
	await(t, w, "a new folder")
	// Once the hint has been given, the new folder is watched.
	write(t, filepath.Join(dir, "new", "deep", "other"))
	await(t, w, "a file in a new folder")
	if err := os.RemoveAll(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	await(t, w, "a deletion")
	write(t, filepath.Join(dir, "new", "file"))
	await(t, w, "a folder that was created again")
	write(t, filepath.Join(dir, "new", "file"))
	await(t, w, "a file in a folder that was created again")
}

func TestHintsComeWithoutEventsIfFoldersCannotBeWatched(t *testing.T) {
	w, err := Start(t.Context(), func() ([]string, error) { return nil, errors.New("too many") })
	if err == nil {
		t.Fatal("no error")
	}
	await(t, w, "a second")
}

func TestAWatcherEndsWithItsContext(t *testing.T) {
	for name, all := range map[string]func() ([]string, error){
		"with events":    folders(t.TempDir()),
		"without events": func() ([]string, error) { return nil, errors.New("too many") },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w, _ := Start(ctx, all)
		cancel()
		select {
		case <-w.Ended():
		case <-time.After(5 * time.Minute):
			t.Errorf("%s: it has not ended", name)
		}
	}
}
