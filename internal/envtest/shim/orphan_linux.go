package shim

import (
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

const (
	sysPidfdOpen = 434 // on every architecture that Go runs on
	pollIn       = 0x1
)

// awaitParentsEnd returns when the parent has ended. PR_SET_PDEATHSIG would not do: it
// is about the thread that forked, and Go ends threads.
func awaitParentsEnd() {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(parent), 0, 0)
	if errno != 0 || os.Getppid() != parent {
		// Gone already, or a kernel older than 5.3.
		pollParent()
		return
	}
	for {
		poll := struct {
			fd              int32
			events, revents int16
		}{fd: int32(fd), events: pollIn}
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, 0, 0, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// sessionOf returns the session of a process; 0 is this one.
func sessionOf(pid int) int {
	id, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(id)
}

const (
	tidyPoll = 5 * time.Millisecond
	// tidyFor is ample for envtest to remove a folder after its server has ended.
	tidyFor = 5 * time.Second
)

// startTidying starts a process that removes the server's folder if the suite is killed
// after it has stopped the server and before it has removed the folder itself. The
// server has to end first, so it cannot wait for that.
func startTidying(name string) {
	if leftover(name, os.Args[1:]) == "" || os.Getenv(KeepVariable) != "" {
		return
	}
	p, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Dir: "/",
		Env: append(os.Environ(), TidyVariable+"="+strconv.Itoa(parent)),
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err == nil {
		_ = p.Release()
	}
}

// tidy is the life of that process. It ends when the folder is gone.
func tidy(name string, suite int) {
	dir, reservation := leftover(name, os.Args[1:]), freeport.Find(servedPort(name, os.Args[1:]))
	gone := func() bool {
		if reservation != nil {
			return !reservation.Held()
		}
		return syscall.Kill(suite, 0) == syscall.ESRCH
	}
	for end := time.Now().Add(tidyFor); time.Now().Before(end); {
		if _, err := os.Lstat(dir); err != nil {
			return
		}
		if gone() {
			RemoveLeftover(name)
			return
		}
		<-time.After(tidyPoll)
	}
}
