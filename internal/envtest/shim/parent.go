package shim

import (
	"os"
	"time"
)

// parent is read as early as can be: if it has ended before, another process has
// its place already, and its end is never noticed.
var parent = os.Getppid()

const parentPoll = 100 * time.Millisecond

// pollParent returns when another process has become the parent.
func pollParent() {
	for os.Getppid() == parent {
		<-time.After(parentPoll)
	}
}
