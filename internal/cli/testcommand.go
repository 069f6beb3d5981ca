package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/envtest"
	"github.com/koboshi-dev/koboshi/internal/envtest/assets"
	"github.com/koboshi-dev/koboshi/internal/envtest/gotest"
	"github.com/koboshi-dev/koboshi/internal/memory"
)

const (
	// defaultCommandProfile is the smallest profile in which a cluster behaves as most test suites
	// expect: namespaces disappear, owned objects are collected, Pods run and claims are bound.
	defaultCommandProfile = "workloads"
	// notFound is the exit code of shells for a command that does not exist.
	notFound = 127
)

// commandTest is a command to run against a plane of its own.
type commandTest struct {
	command []string
	plane   controlplane.Options
	// controllers lists the controllers of planes that the command itself starts through
	// envtest. It is nil if the flags do not select controllers.
	controllers []string
	minor       string // the version of these planes; empty means the usual one
}

// testCommand runs the command that the user has passed to koboshi test.
func testCommand(ctx context.Context, line gotest.CommandLine, minor string, stdio Stdio) error {
	profile, names, err := selection(line.Own)
	if err != nil {
		return usageError{err}
	}
	if names == nil {
		if _, err := controllers.Parse(os.Getenv(controllersVar)); err != nil {
			return usageError{fmt.Errorf("%s: %w", controllersVar, err)}
		}
	}
	c := commandTest{command: line.Command, controllers: names, minor: minor}
	c.plane = controlplane.Options{
		Profile: profile, Kubernetes: minor, LastWords: stdio.Err,
		Waiting: func(what string) { _, _ = fmt.Fprintf(stdio.Err, "koboshi: still waiting for %s\n", what) },
	}
	if profile.Has(controllers.Scheduler) {
		c.plane.Nodes = 1
	}
	return c.run(ctx, stdio)
}

// run starts a plane, runs the command, and stops the plane. Its error carries the exit
// code of the command.
func (c commandTest) run(ctx context.Context, stdio Stdio) error {
	environ, folder, err := c.environment(os.Environ())
	if err != nil {
		return err
	}
	program, err := lookPath(c.command[0], folder)
	if err != nil {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: %v\n", err)
		return exitStatus(notFound)
	}
	memory.Starting()
	plane, err := controlplane.Start(ctx, c.plane)
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx) // before the command started
		}
		return classify(err)
	}
	settling, settled := context.WithCancel(context.WithoutCancel(ctx))
	go memory.Settle(settling)
	cmd := exec.Command(program, c.command[1:]...)
	cmd.Args[0] = c.command[0]
	cmd.Env = with(environ, "KUBECONFIG", plane.Kubeconfig())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.In, stdio.Out, stdio.Err
	err = followGroup(cmd, plane.Failed(), atTerminal(stdio.In))
	settled()
	if failure := plane.Stop(); failure != nil {
		return failure // this is why the command failed, if it failed
	}
	return err
}

// environment returns the environment of the command, except KUBECONFIG, and the folder of
// envtest's programs. The folder is also the last one on the PATH, so that there is always
// a kubectl.
func (c commandTest) environment(environ []string) (all []string, folder string, err error) {
	if c.controllers != nil {
		environ = with(environ, controllersVar, strings.Join(c.controllers, ","))
	}
	if c.minor != "" {
		environ = with(environ, envtest.KubernetesVariable, c.minor)
	}
	if folder, err = assetFolder(environ); err != nil {
		return nil, "", err
	}
	for _, name := range assets.Names() {
		environ = with(environ, assetVariable(name), filepath.Join(folder, name))
	}
	path := folder
	if given := value(environ, "PATH"); given != "" {
		path = given + string(filepath.ListSeparator) + folder
	}
	return with(with(environ, "KUBEBUILDER_ASSETS", folder), "PATH", path), folder, nil
}

// lookPath finds a program on the PATH, or in folder.
func lookPath(name, folder string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !strings.ContainsRune(name, filepath.Separator) {
		if own := filepath.Join(folder, name); isFile(own) {
			return own, nil
		}
		return "", fmt.Errorf("there is no program %s on the PATH; install it, or write its path", name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no program %s; correct the path, which is relative to the current folder", name)
	case err != nil:
		return "", fmt.Errorf("%s cannot be run: %w; name an executable file", name, errors.Unwrap(err))
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// followGroup runs cmd until it ends and forwards all signals to it and to the processes
// that it starts. When failed is closed, followGroup asks cmd and these processes to end.
//
// At a terminal, the command stays in the process group of koboshi: the terminal itself sends its
// signals to the whole group, and would stop a command in another group that reads from the
// terminal.
func followGroup(cmd *exec.Cmd, failed <-chan struct{}, terminal bool) error {
	if terminal {
		return followWith(cmd, failed, func(s os.Signal) {
			if s != os.Interrupt && s != syscall.SIGQUIT { // the terminal has sent these already
				_ = cmd.Process.Signal(s)
			}
		})
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return followWith(cmd, failed, func(s os.Signal) {
		if number, ok := s.(syscall.Signal); ok {
			_ = syscall.Kill(-cmd.Process.Pid, number) // fails if all have just ended
		}
	})
}

// selection returns the profile for the flags --profile and --controllers, and the names of its
// controllers if either flag was given.
func selection(own map[string][]string) (controllers.Profile, []string, error) {
	name := defaultCommandProfile
	if given := own["profile"]; len(given) > 0 {
		name = given[len(given)-1]
	}
	profile, err := controllers.Lookup(name)
	if err != nil {
		return profile, nil, err
	}
	var changes []string
	for _, list := range own["controllers"] {
		for change := range strings.SplitSeq(list, ",") {
			if change != "" {
				changes = append(changes, change)
			}
		}
	}
	profile, err = profile.Select(changes)
	if own["profile"] == nil && own["controllers"] == nil {
		return profile, nil, err
	}
	return profile, append([]string{}, profile.Controllers...), err
}
