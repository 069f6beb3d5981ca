// Package process runs a controller as a child process that can be knocked over
// at any moment and leaves nothing behind.
//
//	Start ──▶ running ──exits, or Kill, or Stop──▶ swept ──▶ Exited
//
// When the child's own process ends, for whatever reason, all that it started is
// killed too, as in a container. Found are: the child's process group; what left
// the group by setsid or setpgid but still has the mark in its environment that
// Start put there; and descendants of the child without the mark, so long as one
// of their parents was alive when the killing began. Not found is what left the
// group, gave up the environment and lost its parents all three. If this process
// is killed itself, the kernel kills the child, but on other systems than Linux
// not even that, and nothing that the child started.
//
// On Linux a child can have a loopback address of its own: a socket that asks
// for all addresses gets that one, so that two instances may listen on the same
// port. See internal/controlplane/cri/binds for what is left as it is: above all
// a program that names 127.0.0.1 itself gets 127.0.0.1.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/output"
)

// Spec is what to start.
type Spec struct {
	// Command is the program with its arguments. A program without a slash is
	// looked up in PATH.
	Command []string
	// Dir is where it starts; empty means here.
	Dir string
	// Env is added to PATH, HOME, LANG and TMPDIR of this process, and wins.
	Env []string
	// Address is a loopback address of its own; zero means that it has none.
	Address netip.Addr
	// Output gets everything it prints, from one goroutine; nil means that only
	// the end of it is kept.
	Output io.Writer
}

// tailSize is how much of the output is kept for Exit, in bytes.
const tailSize = 16 << 10

// drainTime is how long output is read after all have gone; only a process that
// could not be found can make it last that long.
const drainTime = time.Second

// Process is a child that was started. Its methods may be called at any time by
// anybody.
type Process struct {
	pid     int
	mark    string
	address netip.Addr
	output  *os.File // what is read
	drained chan struct{}
	tail    *output.Tail

	// signals guards that no signal goes to the number of a process which has
	// been reaped: it may be somebody else's by then.
	signals sync.Mutex
	reaped  bool

	exited chan struct{}
	code   int // before exited is closed, nobody reads it
}

// Start starts the command. When the context ends, it is killed.
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
		Path: program, Args: s.Command, Dir: s.Dir, Env: append(environment(s.Env), p.mark),
		Stdout: in, Stderr: in, SysProcAttr: attributes(),
	}
	err = p.launch(cmd, s.Address)
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

// lookup finds the program as exec would: relative to the folder it starts in.
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

// markName is the variable by which descendants are known.
const markName = "KOBOSHI_INSTANCE"

var marks atomic.Int64

func newMark() string {
	return fmt.Sprintf("%s=%d-%d-%x", markName, os.Getpid(), marks.Add(1), time.Now().UnixNano())
}

// environment is small, so that a controller does the same on every machine.
func environment(more []string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok && !slices.ContainsFunc(more, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env = append(env, name+"="+value)
		}
	}
	return append(env, more...)
}

// drain passes the output on until nobody is left who could write any.
func (p *Process) drain(to io.Writer) {
	defer close(p.drained)
	var all io.Writer = p.tail
	if to != nil {
		all = io.MultiWriter(p.tail, to)
	}
	if _, err := io.Copy(all, p.output); err != nil && to != nil {
		// A writer that fails must not stop the controller.
		_, _ = io.Copy(p.tail, p.output)
	}
}

// finish is called once the child has ended and before it is reaped; reap
// returns its exit code.
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

// Kill kills it and all that it started, and returns when they are gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// Stop asks it to end, and kills it if it has not after the time given. It
// returns when it is gone, and all that it started.
func (p *Process) Stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.Kill()
	}
}

// Exited is closed when it has ended, however, and all that it started is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit waits for the end of it and returns its exit code, 128 and the number of
// the signal if one ended it, and the end of what it printed.
func (p *Process) Exit() (code int, printed string) {
	<-p.exited
	return p.code, p.tail.String()
}

// PID is its number, which is also that of its process group.
func (p *Process) PID() int { return p.pid }

// Address is its own loopback address, or zero if it has none: none was asked
// for, or the system has no way to give it one. Then it listens on the addresses
// that it asks for.
func (p *Process) Address() netip.Addr { return p.address }

// exitCode is as a shell has it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
