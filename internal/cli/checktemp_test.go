package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolderOfAKilledCheckIsDeletedByTheNextOne(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	running, remove, err := temporary(checkTemp)
	if err != nil {
		t.Fatal(err)
	}
	killed, unlocked := filepath.Join(base, checkTemp+"killed"), filepath.Join(base, checkTemp+"new")
	for _, dir := range []string{killed, unlocked} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(killed, tempLock), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, removeSecond, err := temporary(checkTemp)
	if err != nil {
		t.Fatal(err)
	}
	defer removeSecond()
	for dir, want := range map[string]bool{running: true, unlocked: true, killed: false} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s exists: %t, want %t", filepath.Base(dir), err == nil, want)
		}
	}
	remove()
	if _, err := os.Stat(running); err == nil {
		t.Error("an ended check leaves its folder")
	}
}
