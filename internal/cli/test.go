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
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// controllersVar names the environment variable that replaces --controllers for suites
// that run without koboshi test.
const controllersVar = envtest.ControllersVariable

func newTest(stdio Stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test [flags] [go test flags and packages | -- command args...]",
		Short: "Run go test, or any other command, with real Kubernetes",
		Long: `Run go test with Koboshi in place of the etcd and kube-apiserver that envtest
starts. Your suite needs no changes, and nothing is downloaded.

All packages, and all flags except those below, are passed to go test
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
` + controllersVar + ` names the controllers, and ` + envtest.KubernetesVariable + ` replaces
--kubernetes. If you set these variables for plain "go test", add -count=1, so
that go does not reuse results cached for other values.

After --, name any other command, such as pytest or kubectl kuttl. Koboshi
starts a cluster, runs the command with KUBECONFIG and the variables of envtest
set, removes the cluster, and exits with the exit code of the command. The
cluster has the profile of --profile. The default is workloads: it is the
smallest profile in which Pods run, claims are bound, owned objects are
collected and namespaces disappear, as most suites for a cluster expect. Here,
--controllers adds to the profile, and -NAME removes from it. The profile also
applies to the control planes that the command starts through envtest, if
--profile or --controllers is given. Otherwise, ` + controllersVar + ` names
the controllers of these control planes, but not those of the cluster.`,
		Example: `  koboshi test
  koboshi test -run TestReconcile -v ./internal/...
  koboshi test --controllers=gc,namespace,deployment
  koboshi test ./internal/controller -ginkgo.focus 'when it is deleted'
  koboshi test -- pytest tests/
  koboshi test --profile gc -- cargo test
  koboshi test --kubernetes ` + kubeversion.Minors()[0] + ` -- chainsaw test e2e/`,
		// Most flags are for go test, which parses them itself.
		DisableFlagParsing:    true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			line, err := gotest.Read(args, "controllers", "profile", "kubernetes")
			if err != nil {
				return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
			}
			if line.Help {
				return cmd.Help()
			}
			minor, err := emulatedBySuite(line.Own["kubernetes"], stdio)
			switch {
			case err != nil:
				return err
			case line.Command != nil:
				return testCommand(cmd.Context(), line, minor, stdio)
			case line.Own["profile"] != nil:
				return usageError{errors.New("--profile applies only to a command after --; for go test, name controllers with --controllers, such as --controllers=workloads")}
			}
			return test(line, minor, stdio)
		},
	}
	// These definitions are only for --help; package gotest parses the flags.
	cmd.Flags().SortFlags = false
	cmd.Flags().StringSlice("controllers", nil, "controllers to run (default: none)")
	cmd.Flags().String("profile", "", "profile of the cluster for a command after --")
	cmd.Flags().String("kubernetes", "", kubernetesUsage())
	return cmd
}

func test(line gotest.CommandLine, minor string, stdio Stdio) error {
	environ := os.Environ()
	if minor != "" {
		environ = with(environ, envtest.KubernetesVariable, minor)
	}
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
	folder, err := assetFolder(environ)
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

// assetFolder returns the folder of envtest's executables. The folder's path depends on the
// environment variables that change how these executables behave.
func assetFolder(environ []string) (string, error) {
	purpose := value(environ, controllersVar)
	if minor := value(environ, envtest.KubernetesVariable); minor != "" {
		purpose += " on " + minor
	}
	return assets.Variant(purpose)
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
		variable := assetVariable(name)
		if value(environ, variable) != "" {
			environ = with(environ, variable, filepath.Join(folder, name))
		}
	}
	return with(environ, "KUBEBUILDER_ASSETS", folder)
}

// assetVariable returns the variable that names one of envtest's executables.
func assetVariable(name string) string {
	return "TEST_ASSET_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
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
	return followWith(cmd, nil, func(s os.Signal) { _ = cmd.Process.Signal(s) }) // fails if cmd has just ended
}

// followWith runs cmd until it ends, and calls forward for each signal that arrives. When
// failed is closed, followWith calls forward with SIGTERM.
func followWith(cmd *exec.Cmd, failed <-chan struct{}, forward func(os.Signal)) error {
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
			forward(s)
		case <-failed:
			failed = nil
			forward(syscall.SIGTERM)
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
