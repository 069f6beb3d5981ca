package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/container"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/terminal"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/thread"
)

// maxOutput is the maximum number of bytes that ExecSync returns from each
// stream; the rest is read and dropped. Probes use only 10 kB of the output,
// and hooks use it only in error messages.
const maxOutput = 1 << 20

// ExecSync runs a command and returns its output. A timeout of zero means no
// timeout.
func (r *Runtime) ExecSync(ctx context.Context, id string, argv []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	p, err := r.live(id)
	if err != nil {
		return nil, nil, err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out, errs := &head{}, &head{}
	err = r.exec(ctx, p, &exec.Cmd{Args: argv, Stdout: out, Stderr: errs}, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(argv, " "), timeout)
	}
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) && len(errs.kept) > 0 {
		exit.Err = fmt.Errorf("%w: %s", exit.Err, errs.kept)
		err = exit
	}
	return out.kept, errs.kept, err
}

// head keeps the first maxOutput bytes.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), maxOutput-len(h.kept))]...)
	return len(p), nil
}

// exec runs a command in the container. A non-zero exit code is returned as a
// CodeExitError. When the context ends, the command and its process group are
// killed. If inside is not nil, it is called before the command starts, on a
// thread that sees the container's files.
func (r *Runtime) exec(ctx context.Context, p *process, command *exec.Cmd, inside func() error) error {
	if len(command.Args) == 0 {
		return errors.New("there is no command")
	}
	argv := command.Args
	if err := r.enter(p, command, inside); err != nil {
		return err
	}
	waited := make(chan struct{})
	defer close(waited)
	go func() {
		select {
		case <-ctx.Done():
			_ = unix.Kill(-command.Process.Pid, unix.SIGKILL)
			_ = command.Process.Kill()
		case <-waited:
		}
	}()
	err := command.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if command.ProcessState == nil {
		return err
	}
	// Any other error of Wait concerns the streams: the client has
	// disconnected, or a process that the command left behind is still writing.
	if code := exitCode(command.ProcessState, nil); code != 0 {
		return exited(fmt.Errorf("command '%s' exited with %d", strings.Join(argv, " "), code), int(code))
	}
	return nil
}

func exited(err error, code int) error { return utilexec.CodeExitError{Err: err, Code: code} }

// enter starts the command in the container's namespaces, as the container's
// user.
func (r *Runtime) enter(p *process, command *exec.Cmd, inside func() error) error {
	handle, err := r.open(p)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(handle) }()
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	spec := p.spec(command.Args)
	sys := newUser(spec.Capabilities)
	sys.Setctty = command.SysProcAttr != nil && command.SysProcAttr.Setctty
	command.Path, command.Args, command.Env = r.config.Init[0], r.config.Init, []string{}
	command.SysProcAttr, command.WaitDelay = sys, lingering
	command.ExtraFiles = []*os.File{container.SpecFile - 3: theirs}
	err = thread.Run(func() (err error) {
		defer func() { _ = theirs.Close() }()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("unsharing the working directory: %w", err)
		}
		if err := unix.Setns(handle, unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("joining the container: %w", err)
		}
		unix.Umask(0o022)
		if spec.Path, err = p.find(spec.Args[0], spec.Env); err != nil {
			return err
		}
		if command.Dir, err = r.workingDir(p); err != nil {
			return err
		}
		if err := r.filter(p); err != nil {
			return err
		}
		if inside != nil {
			if err := inside(); err != nil {
				return err
			}
		}
		return command.Start()
	})
	var unfit complaint
	if errors.As(err, &unfit) {
		return exited(unfit, container.ExitNotFound)
	} else if err != nil {
		return err
	}
	if err = p.user.adopt(command.Process.Pid); err == nil {
		err = tell(ours, spec)
	}
	if err == nil {
		return nil
	}
	if errors.As(err, &unfit) {
		_ = command.Wait()
		return exited(unfit, int(exitCode(command.ProcessState, nil)))
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	return err
}

// open returns a handle of a running container. Even after the container has
// ended, the handle never refers to another process.
func (r *Runtime) open(p *process) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := p.config.GetMetadata().GetName()
	if !p.runs() {
		return 0, fmt.Errorf("container %s is not running", name)
	}
	handle, err := unix.PidfdOpen(p.main.Pid, 0)
	if err != nil {
		return 0, fmt.Errorf("finding the program of container %s: %w", name, err)
	}
	// The process ID may already belong to another process if the program has
	// just ended and been reaped; os.Process detects that.
	if err = p.main.Signal(syscall.Signal(0)); err != nil {
		_ = unix.Close(handle)
		return 0, fmt.Errorf("container %s is no longer running: %w", name, err)
	}
	return handle, nil
}

// stream runs a command for a client of the streaming server.
func (r *Runtime) stream(ctx context.Context, p *process, argv []string, in io.Reader, out, errs io.Writer) error {
	command := &exec.Cmd{Args: argv, Stdout: out, Stderr: errs}
	if in != nil {
		// The client's input must not become command.Stdin itself, because Wait
		// would then wait until the client ends this input.
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err
		}
		defer func() { _ = theirs.Close() }()
		go func() {
			_, _ = io.Copy(ours, in)
			_ = ours.Close()
		}()
		command.Stdin = theirs
	}
	return unfitFirst(r.exec(ctx, p, command, nil))
}

// unfitFirst drops the exit code from the error of a command that could not
// start, because a client shows either the exit code or the reason, not both.
func unfitFirst(err error) error {
	var exit utilexec.CodeExitError
	var unfit complaint
	if errors.As(err, &exit) && errors.As(exit.Err, &unfit) {
		return unfit
	}
	return err
}

// streamTerminal does the same as stream, but with a terminal.
func (r *Runtime) streamTerminal(ctx context.Context, p *process, argv []string, in io.Reader, out io.Writer, sizes <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var controlling, end *os.File
	written := make(chan struct{})
	command := &exec.Cmd{Args: argv, SysProcAttr: &syscall.SysProcAttr{Setctty: true}}
	err := r.exec(ctx, p, command, func() (err error) {
		if controlling, end, err = terminal.Open(); err != nil {
			return err
		}
		command.Stdin, command.Stdout, command.Stderr = end, end, end
		go resize(ctx, controlling, sizes)
		if in != nil {
			go func() { _, _ = io.Copy(controlling, in) }()
		}
		go func() {
			if out != nil {
				_, _ = io.Copy(out, controlling)
			}
			_, _ = io.Copy(io.Discard, controlling)
			close(written)
		}()
		return nil
	})
	if end == nil {
		return unfitFirst(err)
	}
	_ = end.Close()
	select {
	case <-written:
	case <-time.After(lingering): // a process that was left behind keeps the terminal open
	}
	_ = controlling.Close()
	return err
}

func resize(ctx context.Context, controlling *os.File, sizes <-chan remotecommand.TerminalSize) {
	for {
		select {
		case size, more := <-sizes:
			if !more {
				return
			}
			_ = terminal.Resize(controlling, size.Width, size.Height)
		case <-ctx.Done():
			return
		}
	}
}
