package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/services"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/memory"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

const defaultDataDir = ".koboshi"

// upFlags are the flags of koboshi up as they were given.
type upFlags struct {
	plane         controlplane.Options
	profile       string
	controllers   []string
	ephemeral     bool
	readyFile     string
	dieWithParent bool
	run           []string
	config        string
}

func newUp(stdio Stdio) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a complete Kubernetes until interrupted",
		Long: `Run a complete Kubernetes in this process until interrupted: etcd,
kube-apiserver, the controllers, the scheduler and simulated nodes.

Pods are simulated, unless --run or --config says that their image stands for a
program of this machine. Then they are processes that run as you on a node
named local, with volumes, probes, logs and restarts as a kubelet gives them.
Addresses that lead to their Services are printed as they come. A file for
--config holds the same as a list, with more to say about each:

  run:
  - image: web            # any tag; web:1.2 is that tag only
    path: bin/web         # relative to the file
    args: [--port, "80"]  # when the Pod gives neither args nor a command
    workingDir: site      # default: where koboshi up was started
    env: {LEVEL: debug}   # the Pod's own counts where both have one
    user: 1000            # the uid it sees as its own (default: 65532)

Profiles, each with all of the one before:
` + profileTable(),
		Example: `  koboshi up                                # state in .koboshi, kept
  koboshi up --profile api --ephemeral      # what envtest runs, in memory
  koboshi up --controllers=-deployment      # all but the Deployment controller
  koboshi up --nodes 3 --port 6443
  koboshi up --run web=./bin/web            # Pods with image web really run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := f.options(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			opts.LastWords = stdio.Err
			opts.Waiting = func(what string) {
				_, _ = fmt.Fprintf(stdio.Err, "koboshi: still waiting for %s\n", what)
			}
			if f.readyFile, err = writableFile("--ready-file", f.readyFile); err != nil {
				return err
			}
			ctx := cmd.Context()
			if f.dieWithParent {
				ctx = untilParentDies(ctx)
			}
			return up(ctx, opts, f.readyFile, stdio)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *upFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.profile, "profile", "full", "which controllers run: api, gc, workloads or full")
	fs.StringSliceVar(&f.controllers, "controllers", nil, "controllers to add, or with a leading - to remove, by upstream's names")
	fs.IntVar(&f.plane.Nodes, "nodes", 1, "simulated nodes; without a scheduler in the profile the default is 0")
	fs.StringArrayVar(&f.run, "run", nil, "make Pods real that have this image, as IMAGE=PATH of a program; may be repeated")
	fs.StringVar(&f.config, "config", "", "YAML file with programs to run, as above; --run goes before it")
	fs.StringVar(&f.plane.DataDir, "data-dir", defaultDataDir, "folder that keeps the state")
	fs.BoolVar(&f.ephemeral, "ephemeral", false, "keep the state in memory only")
	fs.StringVar(&f.plane.Kubeconfig, "kubeconfig", "", "file to write the kubeconfig to (default: kubeconfig in the data dir)")
	fs.IntVar(&f.plane.Port, "port", 0, "port on 127.0.0.1 (default: the one used last, or a free one)")
	fs.StringVar(&f.readyFile, "ready-file", "", "file to write, in JSON, when the plane is ready")
	fs.BoolVar(&f.dieWithParent, "die-with-parent", false, "stop when the process that started this one ends")
	fs.StringSliceVar(&f.plane.Etcd.Servers, "etcd-servers", nil, "URLs of your own etcd cluster, instead of the built-in one")
	fs.StringVar(&f.plane.Etcd.CAFile, "etcd-cafile", "", "certificate authority of your etcd cluster")
	fs.StringVar(&f.plane.Etcd.CertFile, "etcd-certfile", "", "client certificate for your etcd cluster")
	fs.StringVar(&f.plane.Etcd.KeyFile, "etcd-keyfile", "", "client key for your etcd cluster")
	fs.StringVar(&f.plane.Etcd.Prefix, "etcd-prefix", "", "prefix of all keys in your etcd cluster (default: /registry)")
	fs.StringArrayVar(&f.plane.APIServerFlags, "kube-apiserver-arg", nil, "flag for kube-apiserver, such as feature-gates=X=true; may be repeated")
	fs.IntVarP(&f.plane.Verbosity, "v", "v", 0, "verbosity of the component logs, as upstream's -v")
}

func profileTable() string {
	var b strings.Builder
	for _, p := range controllers.Profiles() {
		_, _ = fmt.Fprintf(&b, "  %-10s %s\n", p.Name, p.Description)
	}
	return b.String()
}

// options checks the flags as a whole. changed tells whether a flag was given.
func (f upFlags) options(changed func(flag string) bool) (controlplane.Options, error) {
	o := f.plane
	profile, err := controllers.Lookup(f.profile)
	if err == nil {
		profile, err = profile.Select(f.controllers)
	}
	if err != nil {
		return o, usageError{err}
	}
	o.Profile = profile
	if o.Programs, err = f.programs(profile); err != nil {
		return o, usageError{err}
	}
	if !changed("nodes") && !profile.Has(controllers.Scheduler) {
		o.Nodes = 0
	}
	for i, arg := range o.APIServerFlags {
		if o.APIServerFlags[i], err = apiserverFlag(arg); err != nil {
			return o, err
		}
	}
	switch {
	case o.Nodes < 0 || o.Nodes > controlplane.MaxNodes:
		return o, usageError{fmt.Errorf("--nodes is %d; it may be 0 to %d", o.Nodes, controlplane.MaxNodes)}
	case o.Port < 0 || o.Port > 65535:
		return o, usageError{fmt.Errorf("--port is %d; it may be 1 to 65535, or 0 for a free one", o.Port)}
	case f.ephemeral && changed("data-dir"):
		return o, usageError{errors.New("--ephemeral keeps nothing in a folder; leave out either it or --data-dir")}
	case f.ephemeral && len(o.Etcd.Servers) > 0:
		return o, usageError{errors.New("--ephemeral keeps the state in memory; leave out either it or --etcd-servers")}
	case o.DataDir == "":
		return o, usageError{errors.New("--data-dir is empty; name a folder, or use --ephemeral")}
	}
	if f.ephemeral {
		o.DataDir = ""
	}
	if o.Kubeconfig, err = writableFile("--kubeconfig", o.Kubeconfig); err != nil {
		return o, err
	}
	return o, checkEtcd(o.Etcd)
}

// programs reads what --run and --config say. They go with the profile and
// with this system, or not at all.
func (f upFlags) programs(profile controllers.Profile) (programs.Set, error) {
	if len(f.run) == 0 && f.config == "" {
		return nil, nil
	}
	switch {
	case !profile.Has(controllers.Scheduler):
		return nil, fmt.Errorf("--run and --config need a scheduler, which profile %s does not run; add --controllers=scheduler, or choose another --profile", profile.Name)
	case runtime.GOOS != "linux":
		return nil, fmt.Errorf("--run and --config need Linux, whose namespaces hold the programs; leave them out on %s, or use a virtual machine", runtime.GOOS)
	}
	var set programs.Set
	for _, flag := range f.run {
		program, err := programs.Parse(flag)
		if err == nil {
			set, err = set.Add(program)
		}
		if err != nil {
			return nil, fmt.Errorf("--run: %w", err)
		}
	}
	if f.config == "" {
		return set, nil
	}
	more, err := programs.Load(f.config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	// Of two for the same image the first counts.
	return append(set, more...), nil
}

// ours are flags of kube-apiserver whose place has been taken.
var ours = map[string]string{"secure-port": "--port", "bind-address": "127.0.0.1", "etcd-servers": "--etcd-servers"}

// apiserverFlag gives a flag of kube-apiserver its dashes.
func apiserverFlag(arg string) (string, error) {
	arg = strings.TrimLeft(arg, "-")
	name, _, _ := strings.Cut(arg, "=")
	if use, taken := ours[name]; taken {
		return "", usageError{fmt.Errorf("--kube-apiserver-arg=%s is without effect here; koboshi uses %s", name, use)}
	}
	return "--" + arg, nil
}

func checkEtcd(e controlplane.ExternalEtcd) error {
	if len(e.Servers) == 0 && e.CAFile+e.CertFile+e.KeyFile+e.Prefix != "" {
		return usageError{errors.New("the --etcd-* flags go with --etcd-servers; name your etcd cluster, or leave them out")}
	}
	for _, server := range e.Servers {
		if u, err := url.Parse(server); err != nil || !slices.Contains([]string{"http", "https", "unix", "unixs"}, u.Scheme) {
			return usageError{fmt.Errorf("--etcd-servers: %q is no URL such as https://10.0.0.1:2379; give one, or several with commas", server)}
		}
	}
	return nil
}

// writableFile makes path absolute and checks, before minutes of work depend on
// it, that a file can be put there.
func writableFile(flag, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", flag, err)
	}
	dir := filepath.Dir(path)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".koboshi-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %s cannot be written: %w; choose another file", flag, path, err)}
	}
	return path, nil
}

func up(ctx context.Context, o controlplane.Options, readyFile string, stdio Stdio) error {
	started := time.Now()
	memory.Starting()
	if readyFile != "" {
		_ = os.Remove(readyFile) // of a plane that was killed
	}
	defer writeToNobody()()
	reachable := &addresses{out: stdio.Out}
	o.Reachable = reachable.tell
	plane, err := controlplane.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted while starting
		}
		return classify(err)
	}
	ready := readiness{Server: plane.URL(), Kubeconfig: plane.Kubeconfig(), PID: os.Getpid()}
	err = ready.announce(stdio, o, time.Since(started), plane.NoPrograms(), readyFile)
	if err == nil {
		reachable.release()
		go memory.Settle(ctx)
		select {
		case <-ctx.Done():
		case <-plane.Failed():
		}
	}
	if readyFile != "" {
		_ = os.Remove(readyFile)
	}
	return errors.Join(err, plane.Stop())
}

// writeToNobody makes a write to standard output fail, and not end the process,
// when its reader has gone, as head has after the first lines: an address that
// is printed later is no reason to end a plane. It is not ignored, because
// programs would inherit that.
func writeToNobody() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// addresses prints where Services can be reached. Those that come before the
// plane is ready are held back until then.
type addresses struct {
	out   io.Writer
	mu    sync.Mutex
	held  []services.Address
	ready bool
}

func (a *addresses) tell(address services.Address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ready {
		a.held = append(a.held, address)
		return
	}
	_, _ = fmt.Fprintln(a.out, address)
}

func (a *addresses) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, address := range a.held {
		_, _ = fmt.Fprintln(a.out, address)
	}
	a.held, a.ready = nil, true
}

// readiness is the content of the ready file.
type readiness struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	PID        int    `json:"pid"`
}

// announce says what is there, and in one line what is missing of it: noPrograms
// is why the node for programs runs none.
func (r readiness) announce(stdio Stdio, o controlplane.Options, took time.Duration, noPrograms error, readyFile string) error {
	nodes := "no nodes"
	if o.Nodes > 0 {
		nodes = fmt.Sprintf("nodes: %d", o.Nodes)
	}
	switch {
	case noPrograms != nil:
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: no program runs, and the Pods for them stay pending: %v\n", noPrograms)
	case len(o.Programs) > 0:
		nodes += " and local"
	}
	_, _ = fmt.Fprintf(stdio.Out, "Kubernetes v%s is ready at %s after %.1f s (profile %s, %s)\nexport KUBECONFIG=%s\n",
		kubeversion.Version, r.Server, took.Seconds(), o.Profile.Name, nodes, quoted(r.Kubeconfig))
	if readyFile == "" {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return datadir.WriteFile(readyFile, append(data, '\n'), 0o600)
}

// quoted makes a path that a shell takes as one word.
func quoted(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@%", r)
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// classify marks the errors that a person mends by calling differently, and
// shows them without the steps that led there.
func classify(err error) error {
	var (
		problem *datadir.Problem
		port    *controlplane.PortError
		store   *controlplane.StoreError
		flags   *apiserver.FlagError
	)
	switch {
	case errors.As(err, &problem):
		return usageError{problem}
	case errors.As(err, &port):
		return usageError{port}
	case errors.As(err, &store):
		return usageError{store}
	case errors.As(err, &flags):
		return usageError{fmt.Errorf("%w; correct --kube-apiserver-arg", flags)}
	}
	return err
}
