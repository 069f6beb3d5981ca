package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestInotifyInstancesAreSharedWithOtherChecks(t *testing.T) {
	for name, c := range map[string]struct{ allowed, own, others, want int }{
		"alone":                           {128, 20, 0, 128},
		"beside another check":            {128, 20, 60, 44},
		"others have the rest":            {128, 20, 108, 20},
		"more than allowed, as for root":  {128, 20, 400, 20},
		"the other check did not see us ": {128, 40, 40, 64},
	} {
		if got := watchersFor(c.allowed, c.own, c.others); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestTheInotifyInstancesOfDescendantsAreCountedAsOwn(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, parent int, targets ...string) {
		fds := filepath.Join(proc, fmt.Sprint(pid), "fd")
		if err := os.MkdirAll(fds, 0o700); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (a (b) c) S %d 1 1", pid, parent)
		if err := os.WriteFile(filepath.Join(proc, fmt.Sprint(pid), "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, target := range targets {
			if err := os.Symlink(target, filepath.Join(fds, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	const inotify = "anon_inode:inotify"
	process(1, 0, inotify)
	process(10, 1, "/dev/null")
	process(11, 10, inotify, inotify, "socket:[7]")
	process(12, 11, inotify)
	process(20, 1, inotify, inotify)
	if own, others := countWatchers(proc, 10); own != 3 || others != 3 {
		t.Errorf("%d own and %d others, want 3 and 3", own, others)
	}
}
