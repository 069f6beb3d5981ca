// Package process runs a controller as a child process that can be killed at any time and
// leaves nothing behind.
//
//	Start ──▶ running ──exits, or Kill, or Stop──▶ swept ──▶ Exited
//
// When the child exits for any reason, every process that it started is killed, as in a
// container. The package finds these processes:
//
//   - the process group of the child;
//   - processes that left the group with setsid or setpgid, but still have the mark that
//     Start put into their environment;
//   - descendants without the mark, if all processes between them and the child were
//     still alive when Kill was called.
//
// The package misses processes that left the group, dropped the mark and lost their
// parents. If this process itself is killed, Linux kills the child but not the processes
// that the child started; other systems kill none of these processes.
//
// On Linux, a child can have a separate loopback address. A socket that the child binds to
// all addresses gets only the separate address, so that two instances can listen on the
// same port. A socket that the child binds to 127.0.0.1 keeps 127.0.0.1. See
// internal/controlplane/cri/binds for other sockets that do not get the separate address.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
)

// Spec describes a process to start.
type Spec struct {
	// Command is the program with its arguments. A program without a slash is
	// looked up in PATH.
	Command []string
	// Dir is the working directory; empty means the working directory of this process.
	Dir string
	// Env is the complete environment, apart from the mark of the process.
	Env []string
	// View is the view of the file system for the new process; nil means the view of this
	// process.
	View *view.View
	// Address is a loopback address for the new process only; zero means none.
	Address netip.Addr
	// Output receives everything that the process prints. Only one goroutine writes to it.
	// If Output is nil, only the end of the output is kept.
	Output io.Writer
}

// tailSize is the number of bytes kept from the end of the output.
const tailSize = 16 << 10

// drainTime limits how long the output is read after all processes are gone. Reading takes
// the complete drainTime only if a process was missed and still holds the output open.
const drainTime = time.Second

// Process is a child process. Its methods are safe for concurrent use.
type Process struct {
	pid     int
	mark    string
	address netip.Addr
	output  *os.File // the reading end
	drained chan struct{}
	tail    *output.Tail

	// signals ensures that no signal is sent to the ID of a process that has been reaped,
	// because the ID may belong to another process by then.
	signals sync.Mutex
	reaped  bool

	exited chan struct{}
	code   int // may be read only after exited is closed
}

// Start starts the command. When the context ends, the process is killed.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if len(s.Command) == 0 || s.Command[0] == "" {
		return nil, errors.New("starting a controller: no command is given")
	}
	program, err := lookup(s.Command[0], s.Dir)
	if err != nil {
		return nil, fmt.Errorf("starting a controller: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	p := &Process{
		mark: newMark(), output: out, tail: output.NewTail(tailSize),
		drained: make(chan struct{}), exited: make(chan struct{}),
	}
	cmd := &exec.Cmd{
		Path: program, Args: s.Command, Dir: s.Dir, Env: append(slices.Clone(s.Env), p.mark),
		Stdout: in, Stderr: in, SysProcAttr: attributes(),
	}
	if s.View != nil && !filepath.IsAbs(s.Dir) {
		// A thread that enters a view loses its working directory.
		if cmd.Dir, err = filepath.Abs(s.Dir); err != nil {
			_, _ = in.Close(), out.Close()
			return nil, fmt.Errorf("starting %s: %w", program, err)
		}
	}
	err = p.launch(cmd, s)
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	go p.drain(s.Output)
	stop := context.AfterFunc(ctx, p.Kill)
	go func() { <-p.exited; stop() }()
	return p, nil
}

// lookup finds the program as exec does. A relative path with a slash starts at dir, the
// working directory of the child.
func lookup(name, dir string) (string, error) {
	if strings.ContainsRune(name, os.PathSeparator) {
		if _, err := os.Stat(under(name, dir)); err != nil {
			return "", err
		}
		return name, nil
	}
	return exec.LookPath(name)
}

func under(name, dir string) string {
	if dir == "" || name[0] == os.PathSeparator {
		return name
	}
	return dir + string(os.PathSeparator) + name
}

// markName is the name of the environment variable that marks descendants.
const markName = "KOBOSHI_INSTANCE"

var marks atomic.Int64

func newMark() string {
	return fmt.Sprintf("%s=%d-%d-%x", markName, os.Getpid(), marks.Add(1), time.Now().UnixNano())
}

// drain forwards the output until no process is left that could write output.
func (p *Process) drain(to io.Writer) {
	defer close(p.drained)
	var all io.Writer = p.tail
	if to != nil {
		all = io.MultiWriter(p.tail, to)
	}
	if _, err := io.Copy(all, p.output); err != nil && to != nil {
		// A failing writer must not stop the controller.
		_, _ = io.Copy(p.tail, p.output)
	}
}

// finish cleans up after the child has exited, and then calls reap, which reaps the child
// and returns its exit code.
func (p *Process) finish(reap func() int) {
	p.sweep()
	p.signals.Lock()
	p.reaped = true
	p.code = reap()
	p.signals.Unlock()
	select {
	case <-p.drained:
	case <-time.After(drainTime):
	}
	_ = p.output.Close()
	<-p.drained
	close(p.exited)
}

// Kill kills the process and all processes that it started. It returns when they are gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// Terminate asks the process to exit, and returns immediately.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Await waits until the process has exited, and kills it after the grace period. It returns when
// the process and all processes that it started are gone, and reports whether the process was
// killed.
func (p *Process) Await(grace time.Duration) (killed bool) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return false
	case <-timer.C:
		p.Kill()
		return true
	}
}

// Stop asks the process to exit, and kills it if it has not exited after the grace period.
// It returns when the process and all processes that it started are gone.
func (p *Process) Stop(grace time.Duration) {
	p.Terminate()
	p.Await(grace)
}

// Exited returns a channel that is closed once the process has exited and all processes
// that it started are gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit waits until the process has exited. It returns the exit code and the end of the
// output. If a signal ended the process, the code is 128 plus the number of the signal.
func (p *Process) Exit() (code int, printed string) {
	<-p.exited
	return p.code, p.tail.String()
}

// PID returns the process ID, which is also the ID of the process group.
func (p *Process) PID() int { return p.pid }

// Address returns the separate loopback address of the process. It returns zero if no
// address was requested or the system cannot provide one; the process then listens on the
// addresses that it requests.
func (p *Process) Address() netip.Addr { return p.address }

// exitCode returns the code as a shell reports it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
