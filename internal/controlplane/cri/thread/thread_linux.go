package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Run calls f on a separate thread that ends afterwards, so that f may join
// namespaces, change the root directory and install filters. Processes that f
// starts inherit the state of the thread; goroutines that f starts do not,
// because Go never clones a thread from a locked thread.
//
// PR_SET_PDEATHSIG must not be used in a process that f starts: the parent of
// the process is the thread, which soon ends.
func Run(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it is not unlocked, so the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			// The main thread cannot end, and /proc/self refers to it. While
			// this goroutine holds the main thread, the next goroutine gets
			// another thread.
			defer runtime.UnlockOSThread()
			done <- Run(f)
			return
		}
		done <- f()
	}()
	return <-done
}
