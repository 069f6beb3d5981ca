package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sweeps limits how many times sweep searches for processes. sweep searches again after
// finding a process, because a process that is being killed may just have started another.
const sweeps = 100

// goneWithin is the maximum time, in milliseconds, for which end waits for a killed
// process to disappear. Only a process that sleeps in the kernel takes longer.
const goneWithin = 1000

// sweep kills all processes that the child started and waits until they are gone. The
// child has exited but has not been reaped, so its ID is still reserved.
func (p *Process) sweep() {
	for range sweeps {
		found := p.leftovers()
		if len(found) == 0 {
			return
		}
		_ = unix.Kill(-p.pid, unix.SIGKILL)
		end(found)
	}
}

// end kills the processes, waits until they are gone, and closes their handles.
func end(handles []int) {
	for _, handle := range handles {
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
	}
	for _, handle := range handles {
		awaitGone(handle)
		_ = unix.Close(handle)
	}
}

func awaitGone(handle int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, goneWithin)
		if err != unix.EINTR {
			return
		}
	}
}

// handlesOf returns handles of those processes that still exist.
func handlesOf(pids []int) []int {
	var handles []int
	for _, pid := range pids {
		if handle, err := unix.PidfdOpen(pid, 0); err == nil {
			handles = append(handles, handle)
		}
	}
	return handles
}

// leftovers returns handles of all live processes that are in the process group of the
// child or have its mark.
func (p *Process) leftovers() []int {
	var handles []int
	for _, pid := range processes() {
		if pid == p.pid || !p.owns(pid) {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // the process is gone
		}
		// Check again, because the ID may have been reused.
		if !p.owns(pid) {
			_ = unix.Close(handle)
			continue
		}
		handles = append(handles, handle)
	}
	return handles
}

func (p *Process) owns(pid int) bool {
	// The environment of another user's process cannot be read. The environment of a
	// zombie is empty.
	environment, err := os.ReadFile(proc(pid, "environ"))
	if err != nil {
		return false
	}
	if marked(environment, p.mark) {
		return true
	}
	state, group := stat(pid)
	return group == p.pid && state != 'Z' && state != 'X'
}

func marked(environment []byte, mark string) bool {
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if string(variable) == mark {
			return true
		}
	}
	return false
}

// processes returns the IDs of all processes.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Descendants returns the IDs of the processes that the child and its descendants have
// started, without those whose parents have exited. On other systems than Linux, it returns
// none.
func (p *Process) Descendants() []int { return descendants(p.pid) }

// descendants returns the children of a process, their children, and so on.
func descendants(pid int) []int {
	lists, _ := filepath.Glob(proc(pid, "task/*/children"))
	var all []int
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(append(all, n), descendants(n)...)
			}
		}
	}
	return all
}

// stat returns the state and the process group of a process, or zeros if it does not
// exist.
func stat(pid int) (state byte, group int) {
	line, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return 0, 0
	}
	// The name before these fields is in parentheses, and may contain any characters.
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 3 {
		return 0, 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0][0], group
}

func proc(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }
