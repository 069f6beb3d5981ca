package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Run calls f on a separate thread that ends afterwards, so that f may join
// namespaces, change the root directory and install filters. Processes that f
// starts inherit these; goroutines that it starts do not: Go never clones a
// thread from one that is locked.
//
// PR_SET_PDEATHSIG must not be used in such a process: the thread is its parent.
func Run(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // without an unlock the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			// The main thread cannot end, and /proc/self refers to it. While
			// this goroutine holds it, the next one gets another thread.
			defer runtime.UnlockOSThread()
			done <- Run(f)
			return
		}
		done <- f()
	}()
	return <-done
}
