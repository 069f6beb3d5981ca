package cri

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/binds"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/container"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/logs"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/rootfs"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/terminal"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/thread"
)

// started is a running program.
type started struct {
	main    *os.Process
	streams *streams
	log     *logs.File // nil if there is no log
}

// start creates the container's namespaces and starts the program in them.
func (r *Runtime) start(p *process) (*started, error) {
	running := &started{}
	var err error
	if p.logPath != "" {
		if running.log, err = logs.Open(p.logPath); err != nil {
			return nil, err
		}
	}
	if err = r.launch(p, running); running.streams != nil {
		running.streams.started(running.log)
	}
	if err == nil {
		return running, nil
	}
	if running.streams != nil {
		running.streams.finish()
	}
	if running.log != nil {
		_ = running.log.Close()
	}
	return nil, err
}

// launch starts the init and returns when the program has replaced it.
func (r *Runtime) launch(p *process, running *started) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	spec := p.spec(p.argv())
	spec.MountProc = true
	err = thread.Run(func() (err error) {
		defer func() { _ = theirs.Close() }()
		if err := r.isolate(p, r.staging()); err != nil {
			return err
		}
		if spec.Path, err = p.find(spec.Args[0], spec.Env); err != nil {
			return err
		}
		dir, err := r.workingDir(p)
		if err != nil {
			return err
		}
		if err := r.filter(p); err != nil {
			return err
		}
		// The streams are opened on this thread, because the terminal must belong
		// to the container.
		io, err := openStreams(p.config.GetTty(), p.config.GetStdin())
		if err != nil {
			return err
		}
		running.streams = io
		if io.terminal != nil {
			if spec.Terminal, err = terminal.Name(io.terminal); err != nil {
				return err
			}
		}
		sys := newUser(spec.Capabilities)
		sys.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS
		sys.Setctty = p.config.GetTty()
		running.main, err = os.StartProcess(r.config.Init[0], r.config.Init, &os.ProcAttr{
			Dir: dir, Env: []string{}, Sys: sys,
			Files: []*os.File{io.in, io.out, io.err, container.SpecFile: theirs},
		})
		if errors.Is(err, fs.ErrNotExist) && p.program.Root != "" {
			return fmt.Errorf("the image lacks the libraries with which koboshi was built: build koboshi with CGO_ENABLED=0: %w", err)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err = p.user.adopt(running.main.Pid); err == nil {
		err = tell(ours, spec)
	}
	if err != nil {
		_ = running.main.Kill()
		_, _ = running.main.Wait()
	}
	return err
}

// newUser returns the attributes to clone an init into a new user namespace, in which the
// init has no user until adopt assigns one. The init keeps the capabilities that package
// container needs, and those that the program may have as root.
func newUser(granted []int) *syscall.SysProcAttr {
	kept := []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	for _, c := range granted {
		kept = append(kept, uintptr(c))
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		AmbientCaps: kept,
		// A signal to the process group of the plane, for example from Ctrl-C,
		// must not reach containers.
		Setsid: true,
	}
}

func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "runtime"), os.NewFile(uintptr(pair[1]), "container")
	defer func() { _ = ours.Close() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// tell sends the init its Spec and waits until exec closes the socket.
func tell(init *net.UnixConn, spec container.Spec) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	_, err = init.Write(text)
	if err = errors.Join(err, init.CloseWrite()); err != nil {
		return fmt.Errorf("sending the command to the container's first process: %w", err)
	}
	if text, err = io.ReadAll(init); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	if len(text) > 0 {
		return complaint(text)
	}
	return nil
}

// A complaint reports why the init could not become the program.
type complaint string

func (c complaint) Error() string { return string(c) }

// spec returns the Spec for the init. The Path of the Spec is resolved later.
func (p *process) spec(argv []string) container.Spec {
	security := p.config.GetLinux().GetSecurityContext()
	granted, _ := capabilities(security.GetCapabilities()) // refuseContainer has already returned the error
	return container.Spec{
		Args: argv, Env: p.environment(), NoNewPrivs: security.GetNoNewPrivs(), Capabilities: granted,
	}
}

// argv returns the command line. As in Kubernetes, a command in the Pod replaces
// both the program and its arguments.
func (p *process) argv() []string {
	command, args := p.config.GetCommand(), p.config.GetArgs()
	if len(command) == 0 {
		command = []string{p.program.Path}
		if len(args) == 0 {
			args = p.program.Args
		}
	}
	return slices.Concat(command, args)
}

// resolver names the servers that resolve host names. Container runtimes add this file to every image.
const resolver = "/etc/resolv.conf"

// isolate gives the calling thread the container's files and host name.
func (r *Runtime) isolate(p *process, staging string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("leaving the namespaces: %w", err)
	}
	unix.Umask(0o022)
	if name := p.sandbox.config.GetHostname(); name != "" && !p.sandbox.host {
		if err := unix.Sethostname([]byte(name)); err != nil {
			return fmt.Errorf("setting the host name: %w", err)
		}
	}
	plan := rootfs.Plan{
		Staging: staging, Image: p.program.Root, ReadOnly: p.config.GetLinux().GetSecurityContext().GetReadonlyRootfs(),
		Program: p.program.Path, Names: p.names(),
	}
	if dir := p.config.GetWorkingDir(); dir != "" {
		plan.Dirs = []string{dir}
	}
	for _, m := range p.config.GetMounts() {
		plan.Mounts = append(plan.Mounts, rootfs.Mount{
			Source: m.GetHostPath(), Target: m.GetContainerPath(),
			ReadOnly: m.GetReadonly(), Recursive: m.GetRecursiveReadOnly(),
			Slave: m.GetPropagation() == runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER,
		})
	}
	if _, err := os.Stat(resolver); err == nil && p.program.Root != "" {
		plan.Mounts = append(plan.Mounts, rootfs.Mount{Source: resolver, Target: resolver, ReadOnly: true})
	}
	hidden, err := r.hidden(p)
	if err != nil {
		return err
	}
	plan.Mounts = append(plan.Mounts, hidden...)
	return plan.Apply()
}

// names returns the paths at which the program appears in the container. In an image, it is where it is.
func (p *process) names() []string {
	if p.program.Root != "" {
		return nil
	}
	names := []string{"/" + filepath.Base(p.program.Path)}
	if command := p.config.GetCommand(); len(command) > 0 && filepath.IsAbs(command[0]) {
		names = append(names, command[0])
	}
	return names
}

// workingDir returns the working directory, resolved in the root directory of the
// calling thread. If a volume hides the runtime's default directory, workingDir
// returns "/" without an error, since no Pod asked for the default.
func (r *Runtime) workingDir(p *process) (string, error) {
	for _, dir := range []string{p.config.GetWorkingDir(), p.program.WorkingDir} {
		if dir == "" {
			continue
		}
		if info, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("workingDir: %w", err)
		} else if !info.IsDir() {
			return "", fmt.Errorf("workingDir %s is not a folder: choose another one", dir)
		}
		return dir, nil
	}
	if info, err := os.Stat(r.cwd); p.program.Root != "" || err != nil || !info.IsDir() {
		return "/", nil
	}
	return r.cwd, nil
}

// filter installs the filter that makes programs started on this thread listen at the Pod's
// address.
func (r *Runtime) filter(p *process) error {
	if p.sandbox.host {
		return nil
	}
	notifications, err := binds.Install()
	if errors.Is(err, binds.ErrUnavailable) {
		r.unfiltered.Do(func() {
			r.config.Log.Warn("Pods on this machine share its ports: two Pods cannot listen on the same port", "error", err)
		})
		return nil
	} else if err != nil {
		return err
	}
	go r.serveBinds(notifications, p.sandbox.listeners)
	return nil
}

func (r *Runtime) serveBinds(notifications *os.File, pod *binds.Pod) {
	if err := binds.Serve(notifications, pod); err != nil {
		r.config.Log.Error("Programs at this address cannot listen", "address", pod.Address(), "error", err)
	}
}

// exitCode returns the exit code of the program. If a signal ended the program, exitCode
// returns the code that a shell would report.
func exitCode(state *os.ProcessState, err error) int32 {
	if err != nil {
		return container.ExitFailed
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(state.ExitCode())
}
