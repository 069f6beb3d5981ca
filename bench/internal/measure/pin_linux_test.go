package measure

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAPinnedThreadMayRunOnSoManyCores(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends here
		if err := pin(1); err != nil {
			t.Error(err)
			return
		}
		var may unix.CPUSet
		if err := unix.SchedGetaffinity(0, &may); err != nil || may.Count() != 1 {
			t.Errorf("pinned to one, it may run on %d cores, %v", may.Count(), err)
		}
	}()
	<-done
}
