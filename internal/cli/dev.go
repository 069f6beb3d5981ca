package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/bmatcuk/doublestar/v4"
	"github.com/joho/godotenv"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/forwarding"
	"github.com/koboshi-dev/koboshi/internal/devloop/checking"
	"github.com/koboshi-dev/koboshi/internal/devloop/debugger"
	"github.com/koboshi-dev/koboshi/internal/devloop/logs"
	"github.com/koboshi-dev/koboshi/internal/devloop/session"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/memory"
	"github.com/koboshi-dev/koboshi/internal/programs/unpack"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// devFlags holds the flags of koboshi dev as given.
type devFlags struct {
	project    project.Options
	watch      []string
	profile    string
	cluster    devCluster
	run        []string
	debug      bool
	instrument bool
	lose       bool
	log        string
	check      time.Duration // 0 without --check
}

func newDev(stdio Stdio) *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev [flags] [-- manager args...]",
		Short: "Run a project's manager against a cluster, and apply every saved change",
		Long: `Run a project's manager against a cluster, and apply every saved change.

Koboshi starts a cluster in this process with its state in memory, applies the
CRDs, RBAC and webhooks from config/, builds the manager, starts it as a process
with the permissions of its service account, and applies the samples from
config/samples. It then waits for edits:

  the body of a function    builds the manager, and starts it again
  a type or a marker        also generates, and applies what has changed
  a manifest or a sample    applies it; what was removed from it is deleted
  .env                      starts the manager again

Code that does not compile changes nothing: the old process keeps running. A
change of a CRD that would lose data of stored objects is applied only if you
agree.

Webhooks and conversions are called through a listener of Koboshi, which holds
requests while the manager restarts, so that no request is refused. They need
neither cert-manager nor a tunnel.

Everything that the manager reads, writes and prints is recorded. A page on
127.0.0.1 shows why it reconciled, and what is unusual; koboshi inspect
answers the same questions. Values of Secrets are removed. Why a reconcile
happened is inferred from events. With --instrument, Koboshi builds the manager
with a changed copy of controller-runtime, which reports the cause and the state
of the queue. Your files are not changed.

With --kubeconfig or --context, the manager runs against that cluster instead,
with your rights. The Deployment of the manager there is scaled to 0, and restored
at the end of the session, or, after a crash, by the next start of koboshi dev in
this project. Only CRDs are applied: the CRDs that the cluster does not have, and
the CRDs that you change.

With --check, koboshi check runs in the background with low priority while no file
is edited. What an edit has broken is reported together with that edit.

The manager has your environment and the variables in .env. Arguments after --
are added to those of the manager.

The manager prints to standard output, and Koboshi to standard error. On a
terminal, the manager's log is shown in short lines: fields that
controller-runtime adds to each line are folded, and long values are cut.
--log=full shows all fields, and --log=plain shows what the manager prints.

Give a program in any other language as a command after --, and patterns of its
files with --watch. A change of such a file starts the command again. The command
finds the cluster through KUBECONFIG.`,
		Example: `  koboshi dev
  koboshi dev -- --zap-log-level=debug
  koboshi dev --context kind-test           # run against an existing cluster
  koboshi dev --run web=./bin/web           # Pods with image web run this program
  koboshi dev --watch 'src/**' --crds crds/ --samples cr/ -- python3 src/main.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return usageError{fmt.Errorf("%q is not a flag; put the manager's arguments after -- (see %s --help)", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(args)
			if err != nil {
				return usageError{err}
			}
			return dev(cmd.Context(), o, &f, stdio)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *devFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.project.Dir, "dir", ".", "folder of the project")
	fs.StringVar(&f.project.Main, "main", "", "folder of the manager's main package (default: detected automatically)")
	fs.StringArrayVar(&f.watch, "watch", nil, "pattern of files; a change of such a file starts the command after -- again, such as 'src/**'; may be repeated")
	fs.StringVar(&f.profile, "profile", "", "controllers to run in the cluster: api, gc, workloads or full (default: chosen from the manager's RBAC rules)")
	fs.StringVar(&f.cluster.kubeconfig, "kubeconfig", "", "kubeconfig of an existing cluster to run the manager against")
	fs.StringVar(&f.cluster.context, "context", "", "context in the kubeconfig that names the cluster to run the manager against")
	fs.StringArrayVar(&f.run, "run", nil, "IMAGE=PATH: run the program PATH for Pods with this image, as koboshi up does; may be repeated")
	fs.StringVar(&f.project.Kustomization, "kustomization", "", "folder of the kustomization that installs the whole project (default: config/default)")
	fs.StringArrayVar(&f.project.Manifests, "manifests", nil, "file or folder with the complete installation; may be repeated")
	fs.StringVar(&f.project.Deployment, "deployment", "", "workload that runs the manager, as NAME or NAMESPACE/NAME (default: detected automatically)")
	fs.StringVar(&f.project.CRDs, "crds", "", "file or folder with CustomResourceDefinitions, instead of those of the installation")
	fs.StringVar(&f.project.RBAC, "rbac", "", "file or folder with the manager's service account, roles and bindings, instead of those of the installation")
	fs.StringVar(&f.project.Webhooks, "webhooks", "", "file or folder with webhook configurations, instead of those of the installation")
	fs.IntVar(&f.project.WebhookPort, "webhook-port", 0, "port on which the manager serves webhooks (default: detected automatically, or 9443)")
	fs.StringArrayVar(&f.project.WithCRDs, "with-crds", nil, "file or folder with CustomResourceDefinitions of other projects, to add to the installation; may be repeated")
	fs.StringArrayVar(&f.project.Given, "given", nil, "file or folder with other objects to add to the installation; may be repeated")
	fs.StringVar(&f.project.Samples, "samples", "", "file or folder with samples (default: config/samples)")
	fs.StringArrayVar(&f.project.Env, "env", nil, "NAME=VALUE to add to the manager's environment; takes precedence over .env; may be repeated")
	fs.DurationVar(&f.check, "check", 0, "while no file is edited, check the last build in the background, as koboshi check does, each time for at most this long")
	fs.Lookup("check").NoOptDefVal = checkBudget.String()
	fs.StringVar(&f.log, "log", "", "how the manager's log is shown: short, full or plain (default: short on a terminal, otherwise plain)")
	fs.BoolVar(&f.debug, "debug", false, "build the manager for a debugger, and run it under Delve if dlv is installed")
	fs.BoolVar(&f.instrument, "instrument", false, "build the manager with a copy of controller-runtime that reports why each reconcile happened, for the inspector")
	fs.BoolVar(&f.lose, "lose-data", false, "apply, without asking, changes of CRDs that lose data of stored objects")
}

// options validates the flags together.
func (f *devFlags) options(args []string) (session.Options, error) {
	o := session.Options{Project: f.project, Program: f.watch, Profile: f.profile, Debug: f.debug, Instrument: f.instrument}
	dir, err := filepath.Abs(f.project.Dir)
	if err != nil {
		return o, err
	}
	o.Project.Dir = dir
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return o, fmt.Errorf("--dir is %q, which is not a folder; name the folder of your project", f.project.Dir)
	}
	switch {
	case len(f.watch) == 0:
		o.Project.Args = args
	case len(args) == 0:
		return o, errors.New("--watch needs a command after --; add one, or omit --watch for a manager in Go")
	case f.debug:
		return o, errors.New("--debug changes how a manager is built, but with --watch the command after -- is not built; omit one of them")
	case f.instrument:
		return o, errors.New("--instrument changes how a manager is built, but with --watch the command after -- is not built; omit one of them")
	default:
		o.Project.Command = args
	}
	for _, pattern := range f.watch {
		if !doublestar.ValidatePattern(pattern) || filepath.IsAbs(pattern) {
			return o, fmt.Errorf("--watch: %q is not a pattern of files in the project's folder; use one such as 'src/**' or '*.py'", pattern)
		}
	}
	if f.check < 0 {
		return o, fmt.Errorf("--check is %s; give the time that a check may take, such as --check=2m", f.check)
	}
	if err := errors.Join(checkLogForm(f.log), f.checkCluster()); err != nil {
		return o, err
	}
	if o.Project.ReadsStdin() {
		return o, errors.New("the path - means standard input, which cannot be read again after an edit; name a file")
	}
	if port := f.project.WebhookPort; port < 0 || port > 65535 {
		return o, fmt.Errorf("--webhook-port is %d; use 1 to 65535, or 0 to detect it", port)
	}
	if err := f.selectPrograms(&o); err != nil {
		return o, err
	}
	o.Env = func() ([]string, error) { return f.environment(dir) }
	if _, err := o.Env(); err != nil {
		return o, err
	}
	return o, o.Project.Check()
}

// selectPrograms adds the programs of --run, and checks that the profile can run them.
func (f *devFlags) selectPrograms(o *session.Options) (err error) {
	if o.Programs, err = parsePrograms("--run", f.run); err != nil {
		return err
	}
	if len(o.Programs) > 0 && o.Profile == "" {
		o.Profile = profileOfPrograms
	}
	if o.Profile == "" {
		return nil
	}
	profile, err := controllers.Lookup(o.Profile)
	if err != nil || len(o.Programs) == 0 {
		return err
	}
	return canRunPrograms(profile, "choose the profile "+profileOfPrograms+", or omit --run")
}

// environment returns the variables in the project's .env that are not set in the user's
// environment, and then the variables of --env.
func (f *devFlags) environment(dir string) ([]string, error) {
	given, err := project.Environment(f.project.Env)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, ".env")
	values, err := godotenv.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w; correct it", file, err)
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := os.LookupEnv(name); !ok {
			env = append(env, name+"="+values[name])
		}
	}
	return append(env, given...), nil
}

// devTemp is the beginning of the names of temporary folders.
const devTemp = "koboshi-dev-"

// dev runs a session until it is interrupted.
func dev(ctx context.Context, o session.Options, f *devFlags, stdio Stdio) error {
	dir, remove, err := temporary(devTemp)
	if err != nil {
		return err
	}
	defer remove()
	defer datadir.SweepEphemeral() // the planes of killed sessions
	if o.Programs, err = unpack.All(o.Programs, filepath.Join(dir, "images")); err != nil {
		return usageError{err}
	}
	defer writeToNobody()()
	kubeconfig, removeKubeconfig, err := devKubeconfig(o.Project.Dir)
	if err != nil {
		return err
	}
	defer removeKubeconfig()
	v := &devView{err: stdio.Err, log: managerLog(stdio.Out, f.log), lines: make(chan string)}
	record := filepath.Join(filepath.Dir(kubeconfig), pausedFile)
	if err := restorePaused(ctx, record, v); err != nil {
		return err
	}
	if o.Cluster, err = f.cluster.open(record); err != nil {
		return usageError{err}
	}
	if f.debug {
		if o.Delve, err = debugger.Find(); errors.Is(err, debugger.ErrNotInstalled) {
			v.Note("the manager runs without a debugger: " + err.Error())
		} else if err != nil {
			return err
		}
	}
	address, reviews, stopInspector, err := inspectDev(ctx, &o, filepath.Dir(kubeconfig))
	if err != nil {
		return err
	}
	defer stopInspector()
	memory.Starting()
	reachable := &addresses{out: stdio.Out}
	o.Dir, o.Kubeconfig, o.Cache = dir, kubeconfig, generateCache()
	o.Output, o.Observer = v.log, v
	o.Plane = controlplane.Options{
		LastWords: stdio.Err,
		Waiting:   func(what string) { v.Note("still waiting for " + what) },
		Reachable: func(a forwarding.Address) { reachable.tell(a) },
	}
	o.Lose = func(ctx context.Context, losses []string) (bool, error) {
		return f.lose || v.ask(ctx, stdio.In, losses), nil
	}
	if f.check > 0 {
		if err := f.startChecking(ctx, &o, dir, v); err != nil {
			return err
		}
		defer v.check.Close()
	}
	s, err := session.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted while starting
		}
		return classify(err)
	}
	reviews.session.Store(s)
	v.Note("inspect the session at " + address)
	if o.Delve != nil {
		v.Note("the manager runs under Delve; connect with: dlv connect " + o.Delve.Address)
	}
	reachable.release()
	go memory.Settle(ctx)
	err = errors.Join(s.Run(ctx), s.Stop())
	_ = v.log.Close() // it never fails
	v.summarize()
	return err
}

// devKubeconfig returns the file for the kubeconfig of a session in a project. koboshi kubectl
// finds it there.
func devKubeconfig(dir string) (file string, remove func(), err error) {
	folder := filepath.Join(dir, devDataDir)
	err = os.MkdirAll(folder, 0o700)
	if err == nil {
		// The kubeconfig must not be committed.
		err = os.WriteFile(filepath.Join(folder, ".gitignore"), []byte("*\n"), 0o600)
	}
	var lock *os.File
	if err == nil {
		lock, err = os.OpenFile(filepath.Join(folder, tempLock), os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return "", nil, usageError{fmt.Errorf("creating the folder for the kubeconfig: %w; make the project's folder writable", err)}
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = lock.Close()
		return "", nil, usageError{fmt.Errorf("another koboshi dev runs in %s; end it first", dir)}
	}
	_ = os.Remove(filepath.Join(folder, "kubeconfig")) // of a plane that was killed
	return filepath.Join(folder, "kubeconfig"), func() {
		if _, err := os.Stat(filepath.Join(folder, pausedFile)); err == nil {
			_ = os.Remove(filepath.Join(folder, inspectorFile))
			_ = lock.Close()
			return // the next start needs it
		}
		_ = os.RemoveAll(folder)
		_ = os.Remove(filepath.Dir(folder)) // fails if it holds something else
		_ = lock.Close()
	}, nil
}

// devView shows a session to a person.
type devView struct {
	err     io.Writer
	log     *logs.Printer     // of the manager
	later   bool              // a round has been reported
	check   *checking.Checker // nil without --check
	mu      sync.Mutex
	reading sync.Once
	lines   chan string
}

// print writes to the terminal after everything that the manager has logged.
func (v *devView) print(format string, args ...any) {
	v.log.Flush()
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = fmt.Fprintf(v.err, format, args...)
}

// Note implements session.Observer.
func (v *devView) Note(text string) { v.print("koboshi: %s\n", text) }

// Text implements session.Observer.
func (v *devView) Text(text string) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	v.print("%s", text)
}

// Ready implements session.Observer.
func (v *devView) Ready(r session.Ready) {
	if r.Cluster != nil {
		v.Note("the manager runs against the cluster " + r.Cluster.Name)
		return
	}
	profile := "profile " + r.Profile
	if r.ProfileReason != "" {
		profile += ", because " + r.ProfileReason
	}
	v.print("koboshi: Kubernetes v%s is ready at %s after %.1f s (%s)\nexport KUBECONFIG=%s\n",
		kubeversion.Version, r.Plane.URL(), r.Took.Seconds(), profile, shellescape.Quote(r.Kubeconfig))
	if reason := r.Plane.NoPrograms(); reason != nil {
		v.Note(fmt.Sprintf("programs cannot run, so their Pods stay pending: %v", reason))
	}
}

// ask asks whether data may be lost. Without a terminal, it returns false, because nobody can
// answer.
func (v *devView) ask(ctx context.Context, in io.Reader, losses []string) bool {
	for _, loss := range losses {
		v.Note(loss)
	}
	if !atTerminal(in) {
		v.Note("this would lose data of stored objects, so nothing is applied; start koboshi dev with --lose-data to allow it")
		return false
	}
	v.print("koboshi: apply this, and lose data of stored objects? [y/N] ")
	v.reading.Do(func() { go v.read(in) })
	select {
	case line := <-v.lines:
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		v.print("\n")
		return false
	}
}

// read passes on each line that is typed while a question is open. A line that is typed at any
// other time must not answer the next question.
func (v *devView) read(in io.Reader) {
	defer close(v.lines) // the end of the input answers no
	for lines := bufio.NewScanner(in); lines.Scan(); {
		select {
		case v.lines <- lines.Text():
		default:
		}
	}
}
