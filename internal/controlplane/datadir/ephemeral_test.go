package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenEphemeralIsGoneAfterRemove(t *testing.T) {
	t.Parallel()
	d, err := OpenEphemeral(running)
	if err != nil {
		t.Fatal(err)
	}
	other, err := OpenEphemeral(running)
	if err != nil {
		t.Fatal(err)
	}
	if d.Path() == other.Path() {
		t.Errorf("two data directories share the folder %s", d.Path())
	}
	for _, d := range []*Dir{d, other} {
		if _, err := os.Stat(d.Path(markerName)); err != nil {
			t.Error(err)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.Path()); !os.IsNotExist(err) {
			t.Errorf("after Remove: %v, want that it does not exist", err)
		}
	}
}

func TestSweepTakesOnlyWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	folder := func(name string) string { return filepath.Join(base, name) }
	open(t, folder(ephemeralPattern+"held"))
	for _, name := range []string{ephemeralPattern + "killed", "my-own"} {
		d, err := Open(folder(name), running)
		if err != nil {
			t.Fatal(err)
		}
		closeDir(t, d)
	}
	// A folder that is being created has no marker yet, and a folder without a
	// lock does not belong to Koboshi.
	mkdir(t, folder(ephemeralPattern+"starting"))
	write(t, marker(t, folder(ephemeralPattern+"unlockable")), "{}")

	sweep(base)

	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{ephemeralPattern + "held", ephemeralPattern + "starting", ephemeralPattern + "unlockable", "my-own"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
