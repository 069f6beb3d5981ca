package fleet

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// watchersFor returns how many inotify instances the labs of this process may have, of those that the system allows a
// user. Half of the free ones are left to others, such as another check that is about to start labs as well.
func watchersFor(allowed, own, others int) int {
	free := max(allowed-own-others, 0)
	if others > 0 {
		free /= 2
	}
	return own + free
}

// watchers returns how many inotify instances the labs of this process may have, or 0 if that is unknown.
func watchers() int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0
	}
	allowed, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	own, others := countWatchers("/proc", os.Getpid())
	return watchersFor(allowed, own, others)
}

// countWatchers counts the inotify instances of a process and its descendants, and those of all other processes whose
// files can be read. These are the processes of the same user; for root, they are all processes.
func countWatchers(proc string, self int) (own, others int) {
	folders, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	parents, instances := map[int]int{}, map[int]int{}
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		parents[pid] = parentOf(folder)
		instances[pid] = instancesOf(folder)
	}
	for pid, n := range instances {
		if descends(pid, self, parents) {
			own += n
		} else {
			others += n
		}
	}
	return own, others
}

// parentOf reads the parent's ID from the file stat, as described in proc_pid_stat(5), or returns 0.
func parentOf(folder string) (parent int) {
	text, _ := os.ReadFile(filepath.Join(folder, "stat"))
	afterName := string(text[bytes.LastIndexByte(text, ')')+1:]) // the name of the program may contain anything
	var state string
	_, _ = fmt.Sscan(afterName, &state, &parent)
	return parent
}

// instancesOf counts the open inotify instances of a process. A process that has ended has none.
func instancesOf(folder string) (n int) {
	fds := filepath.Join(folder, "fd")
	entries, _ := fs.ReadDir(os.DirFS(fds), ".")
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(fds, entry.Name())); err == nil && target == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// descends reports whether a process is the given one, or descends from it.
func descends(pid, from int, parents map[int]int) bool {
	for range len(parents) {
		if pid == from || pid == 0 {
			break
		}
		pid = parents[pid]
	}
	return pid == from
}
