package assets

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestVariantsLeadToTheSameExecutableByDifferentPaths(t *testing.T) {
	exe := executable(t, filepath.Join(t.TempDir(), "koboshi"), "one")
	base, err := folder(t.TempDir(), exe)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, key := range []string{"", "gc", "gc", "gc,namespace"} {
		dir, err := variant(base, key)
		if err != nil {
			t.Fatal(err)
		}
		seen[dir] = true
		for _, name := range Names() {
			if target, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err != nil || target != exe {
				t.Errorf("%q: %s leads to %s (%v), want %s", key, name, target, err, exe)
			}
		}
	}
	if len(seen) != 3 || seen[base] {
		t.Errorf("three uses have the folders %v, want one each and not %s", seen, base)
	}
}

func TestAVariantThatIsNoLongerUsedIsRemoved(t *testing.T) {
	base, err := folder(t.TempDir(), executable(t, filepath.Join(t.TempDir(), "koboshi"), "one"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := variant(base, "old")
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * keepFor)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	recent, err := variant(base, "recent")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := variant(base, "now"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{old: false, recent: true, base: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", dir, err, want)
		}
	}
}
