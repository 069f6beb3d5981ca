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
	sysPidfdOpen = 434 // the same on every architecture that Go supports
	pollIn       = 0x1
)

// awaitParentsEnd waits until the parent has ended. PR_SET_PDEATHSIG would not work: it
// applies to the thread that forked, and Go ends threads.
func awaitParentsEnd() {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(parent), 0, 0)
	if errno != 0 || os.Getppid() != parent {
		// The parent has already ended, or the kernel is older than 5.3.
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

// sessionOf returns the session of a process; 0 stands for this process.
func sessionOf(pid int) int {
	id, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(id)
}

const (
	tidyPoll = 5 * time.Millisecond
	// tidyFor is more time than envtest needs to remove a folder after its server has
	// ended.
	tidyFor = 5 * time.Second
)

// startTidying starts a process that removes the server's folder if the suite is killed
// between stopping the server and removing the folder. The server itself cannot wait until
// the folder is removed, because the suite first waits for the server to end.
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

// tidy runs in the process that startTidying starts, and returns when the folder is gone.
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
