package shim

import (
	"os"
	"time"
)

// parent is read before anything else runs, so that one that dies soon is missed.
var parent = os.Getppid()

const parentPoll = 100 * time.Millisecond

// pollParent returns when another process has become the parent.
func pollParent() {
	for os.Getppid() == parent {
		time.Sleep(parentPoll)
	}
}
