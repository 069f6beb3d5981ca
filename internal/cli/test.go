package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/envtest"
	"github.com/koboshi-dev/koboshi/internal/envtest/assets"
	"github.com/koboshi-dev/koboshi/internal/envtest/gotest"
)

// controllersVar names the environment variable that replaces --controllers for suites
// that run without koboshi test.
const controllersVar = envtest.ControllersVariable

func newTest(stdio Stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test [--controllers NAME,...] [go test flags and packages]",
		Short: "Run go test with real Kubernetes behind envtest",
		Long: `Run go test with Koboshi in place of the etcd and kube-apiserver that envtest
starts. Your suite needs no changes, and nothing is downloaded.

All packages, and all flags except --controllers, are passed to go test
unchanged. If you name no package, koboshi test tests ./... instead of only the
current folder. Put flags for the test binary, such as -ginkgo.focus, after the
packages. koboshi test exits with the exit code of go test.

No controllers run by default, as with plain envtest. Use --controllers to name
the controllers to run; the controllers that they depend on also run. Use the
names that kube-controller-manager accepts, with or without "-controller". Use
"gc" for the garbage collector, and "workloads" or "full" for all controllers of
that profile of "koboshi up". If you name kube-scheduler, there is also a
simulated node, so that Pods become Ready.

If --controllers is not given, the environment variable
` + controllersVar + ` names the controllers. If you set KOBOSHI_CONTROLLERS for
plain "go test", add -count=1, so that go does not reuse results cached for
another value of the variable.`,
		Example: `  koboshi test
  koboshi test -run TestReconcile -v ./internal/...
  koboshi test --controllers=gc,namespace,deployment
  koboshi test ./internal/controller -ginkgo.focus 'when it is deleted'`,
		// Most flags are for go test, which parses them itself.
		DisableFlagParsing:    true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			line, err := gotest.Read(args, "controllers")
			if err != nil {
				return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
			}
			if line.Help {
				return cmd.Help()
			}
			return test(line, stdio)
		},
	}
	// This definition is only for --help; package gotest parses the flag.
	cmd.Flags().StringSlice("controllers", nil, "controllers to run (default: none)")
	return cmd
}

func test(line gotest.CommandLine, stdio Stdio) error {
	environ := os.Environ()
	if given, ok := line.Own["controllers"]; ok {
		environ = with(environ, controllersVar, strings.Join(given, ","))
	}
	notes, err := suiteNotes(environ, line.Own["controllers"] != nil)
	if err != nil {
		return err
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		return errors.New("koboshi test runs go test, but there is no go command on the PATH; install Go from https://go.dev/dl")
	}
	folder, err := assets.Variant(value(environ, controllersVar))
	if err != nil {
		return err
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: %s\n", note)
	}
	cmd := exec.Command(gocmd, append([]string{"test"}, line.Args...)...)
	cmd.Env = withAssets(environ, folder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio.In, stdio.Out, stdio.Err
	return follow(cmd)
}

// suiteNotes checks the environment variables that concern Koboshi and returns
// notes for the user about their effect.
func suiteNotes(environ []string, byFlag bool) (notes []string, err error) {
	profile, err := controllers.Parse(value(environ, controllersVar))
	if err != nil {
		if !byFlag {
			err = fmt.Errorf("%s: %w", controllersVar, err)
		}
		return nil, usageError{err}
	}
	var brought []string
	for _, b := range profile.Brought {
		brought = append(brought, b.String())
	}
	if len(brought) > 0 {
		notes = append(notes, strings.Join(brought, "; "))
	}
	// envtest parses the variable in the same way.
	if strings.EqualFold(value(environ, "USE_EXISTING_CLUSTER"), "true") {
		notes = append(notes, "USE_EXISTING_CLUSTER is true, so the suite uses the cluster in your kubeconfig; unset the variable to use koboshi")
	}
	return notes, nil
}

// withAssets makes envtest find the executables in folder. A variable that names a single
// executable takes precedence over the folder, so withAssets changes it as well.
func withAssets(environ []string, folder string) []string {
	for _, name := range assets.Names() {
		variable := "TEST_ASSET_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if value(environ, variable) != "" {
			environ = with(environ, variable, filepath.Join(folder, name))
		}
	}
	return with(environ, "KUBEBUILDER_ASSETS", folder)
}

// value returns the value of a variable, or "". As in exec.Cmd, the last
// assignment wins.
func value(environ []string, name string) string {
	for _, assignment := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(assignment, name+"="); ok {
			return value
		}
	}
	return ""
}

// with returns the environment with the variable set.
func with(environ []string, name, value string) []string {
	others := slices.DeleteFunc(slices.Clone(environ), func(assignment string) bool {
		return strings.HasPrefix(assignment, name+"=")
	})
	return append(others, name+"="+value)
}

// An exitStatus is an error that only sets Koboshi's exit code. It is not printed, because
// go test or a report has already printed what went wrong.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// follow runs cmd until it ends and forwards all signals, so that only cmd reacts to
// them. A Ctrl-C at a terminal has already reached the entire process group, so cmd gets
// it twice; go test counts only one interrupt and still waits for its tests to end.
func follow(cmd *exec.Cmd) error {
	arriving := make(chan os.Signal, 8)
	signal.Notify(arriving, followed()...)
	defer signal.Stop(arriving)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-arriving:
			_ = cmd.Process.Signal(s) // fails if cmd has just ended
		case err := <-ended:
			return status(err)
		}
	}
}

// followed lists the signals with which people and CI systems end a run. SIGHUP
// stays ignored under nohup.
func followed() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// status turns the end of a program into an exitStatus. If a signal ended the program,
// the status is the number that shells use.
func status(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if wait, ok := exit.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return exitStatus(128 + int(wait.Signal()))
	}
	return exitStatus(exit.ExitCode())
}
