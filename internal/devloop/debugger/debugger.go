// Package debugger runs a program under Delve, to which an editor or "dlv connect" connects
// without stopping the program.
//
//	koboshi ──▶ dlv exec --headless ──ptrace──▶ program
//	                  ▲
//	               editor
//
// Delve does not exit when the program does, and passes no signal on to it. So this package
// finds the process of the program, which works on Linux only. On other systems, the program
// is killed together with Delve.
package debugger

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/freeport"
)

const (
	// usualPort is the port that Delve's documentation uses, and editors suggest.
	usualPort = 2345
	poll      = 100 * time.Millisecond
	// startPoll is the interval of polls until the program is found. Before it runs a program,
	// Delve reads its symbols, which takes longer than that.
	startPoll = 10 * time.Millisecond
	// stoppedPolls is the number of polls in a row after which a program counts as stopped.
	// Under a debugger, every program stops for moments.
	stoppedPolls = 10
	// loadPolls applies instead until the program has been seen running, because it is also
	// stopped while Delve reads its symbols.
	loadPolls = 100
	// exitGrace is the time that Delve has to exit after the program.
	exitGrace = 2 * time.Second
)

// ErrNotInstalled reports that Delve is not in PATH.
var ErrNotInstalled = errors.New("Delve is not installed; install it with: go install github.com/go-delve/delve/cmd/dlv@latest")

// Delve is an installed Delve.
type Delve struct {
	path string
	// Address is the loopback address at which Delve listens. Delve accepts only connections
	// of the same user.
	Address string
}

// Find returns the installed Delve, or ErrNotInstalled. Delve listens on port 2345 if this port
// is free now, and otherwise on another port, which stays the same.
func Find() (*Delve, error) {
	path, err := exec.LookPath("dlv")
	if err != nil {
		return nil, ErrNotInstalled
	}
	listener, err := freeport.Listen(usualPort)
	if err != nil {
		listener, err = freeport.Listen(0)
	}
	if err != nil {
		return nil, fmt.Errorf("finding a port for Delve: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	return &Delve{path: path, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, nil
}

// Command returns the command that runs a program under Delve.
func (d *Delve) Command(program []string) []string {
	return append([]string{
		d.path, "exec", "--headless", "--listen=" + d.Address, "--accept-multiclient", "--continue", "--api-version=2", program[0], "--",
	}, program[1:]...)
}

// Terminate asks the program under Delve to exit, and waits until it has, but not longer than
// the grace period, and not for a program that is stopped in the debugger.
func (d *Delve) Terminate(p *process.Process, grace time.Duration) {
	pid, found := d.program(p)
	if !found || syscall.Kill(pid, syscall.SIGTERM) != nil {
		return
	}
	end := time.After(grace)
	for stopped := 0; stopped < stoppedPolls; {
		select {
		case <-end:
			return
		case <-p.Exited():
			return
		case <-time.After(poll):
		}
		switch state(pid) {
		case gone:
			return
		case tracing:
			stopped++
		default:
			stopped = 0
		}
	}
}

// Watch returns when Delve has exited. It ends Delve once the program has exited, and calls
// stopped each time the program stops in the debugger. It must be called as soon as Delve has
// been started.
func (d *Delve) Watch(p *process.Process, stopped func()) {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	pid, polls, ran := 0, 0, false
	for {
		select {
		case <-p.Exited():
			return
		case <-tick.C:
		}
		if pid == 0 {
			if pid, _ = d.program(p); pid != 0 {
				tick.Reset(poll)
			}
			continue
		}
		switch state(pid) {
		case gone:
			p.Stop(exitGrace)
			return
		case tracing:
			if polls++; polls == stoppedPolls && ran || polls == loadPolls && !ran {
				stopped()
			}
		default:
			polls, ran = 0, true
		}
	}
}

// program returns the process that Delve debugs: its child that runs another program.
func (d *Delve) program(p *process.Process) (pid int, found bool) {
	delve, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return 0, false
	}
	for _, pid := range p.Descendants() {
		// Before it becomes the program, a child of Delve still runs Delve.
		if path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && path != delve {
			return pid, true
		}
	}
	return 0, false
}

// These are the states of a process that matter here, as in proc(5).
const (
	gone    = 0
	tracing = 't'
)

// state returns the state of a process.
func state(pid int) byte {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return gone
	}
	// The name before the state is in parentheses, and may contain any characters.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) == 0 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return gone
	}
	return fields[0][0]
}
