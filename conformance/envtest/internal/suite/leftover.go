package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// killMarked kills the processes that have the variable in their environment. These are
// servers that a suite started but did not stop; they would slow down the next suites. On
// systems without /proc, killMarked does nothing.
func killMarked(variable string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), variable) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // the process may have ended by itself
		}
	}
}
