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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/forwarding"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/memory"
	"github.com/koboshi-dev/koboshi/internal/programs"
	"github.com/koboshi-dev/koboshi/internal/programs/unpack"
)

const defaultDataDir = ".koboshi"

// upFlags holds the flags of koboshi up as given.
type upFlags struct {
	plane         controlplane.Options
	profile       string
	controllers   []string
	kubernetes    string
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
		Short: "Run a complete Kubernetes cluster until interrupted",
		Long: `Run a complete Kubernetes cluster in one process until interrupted. The cluster
consists of etcd, kube-apiserver, the controllers, the scheduler and simulated
nodes.

Pods are simulated unless --run or --config maps their image to a program on
this machine. Pods with a mapped image run as processes under your user ID on a
node named local, where a real kubelet handles volumes, probes, logs and
restarts. If the Pods of a Service run as processes, koboshi up prints the
Service's address when the Service becomes reachable.

A file for --config lists programs and supports more options than --run:

  run:
  - image: web            # matches every tag; web:1.2 matches only tag 1.2
    path: bin/web         # relative to the file
    args: [--port, "80"]  # used if the Pod has neither args nor a command
    workingDir: site      # default: where koboshi up was started
    env: {LEVEL: debug}   # the Pod's own variables take precedence
    user: 1000            # the uid that the program sees as its own (default: 65532)

Each profile adds to the profile above it:
` + profileTable(),
		Example: `  koboshi up                                # state is kept in .koboshi
  koboshi up --profile api --ephemeral      # as in envtest, with the state in memory
  koboshi up --controllers=-deployment      # without the Deployment controller
  koboshi up --nodes 3 --port 6443
  koboshi up --run web=./bin/web            # Pods with image web run this program`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := f.options(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("kubernetes") {
				if opts.Kubernetes, err = emulated("--kubernetes", f.kubernetes, stdio); err != nil {
					return err
				}
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
	fs.StringVar(&f.profile, "profile", "full", "controllers to run: api, gc, workloads or full")
	fs.StringSliceVar(&f.controllers, "controllers", nil, "upstream names of controllers to add to the profile; -NAME removes a controller")
	fs.StringVar(&f.kubernetes, "kubernetes", "", kubernetesUsage())
	fs.IntVar(&f.plane.Nodes, "nodes", 1, "number of simulated nodes (default: 1 if there is a scheduler, otherwise 0)")
	fs.Lookup("nodes").DefValue = "0" // so that pflag does not append a default
	fs.StringArrayVar(&f.run, "run", nil, "IMAGE=PATH: run the program PATH for Pods with this image, or the image in the OCI layout PATH; may be repeated")
	fs.StringVar(&f.config, "config", "", "YAML file that lists programs to run; --run takes precedence")
	fs.StringVar(&f.plane.DataDir, "data-dir", defaultDataDir, "folder for the state of the cluster")
	fs.BoolVar(&f.ephemeral, "ephemeral", false, "keep the state in memory only")
	fs.StringVar(&f.plane.Kubeconfig, "kubeconfig", "", "file to write the kubeconfig to (default: kubeconfig in the folder of --data-dir)")
	fs.IntVar(&f.plane.Port, "port", 0, "port of the API server on 127.0.0.1 (default: the port of the previous start, or a free port)")
	fs.StringVar(&f.readyFile, "ready-file", "", "JSON file to write when the cluster is ready")
	fs.BoolVar(&f.dieWithParent, "die-with-parent", false, "stop when the parent process ends")
	fs.StringSliceVar(&f.plane.Etcd.Servers, "etcd-servers", nil, "URLs of an etcd cluster to use instead of the built-in etcd")
	fs.StringVar(&f.plane.Etcd.CAFile, "etcd-cafile", "", "file with the certificate authority of your etcd cluster")
	fs.StringVar(&f.plane.Etcd.CertFile, "etcd-certfile", "", "file with the client certificate for your etcd cluster")
	fs.StringVar(&f.plane.Etcd.KeyFile, "etcd-keyfile", "", "file with the client key for your etcd cluster")
	fs.StringVar(&f.plane.Etcd.Prefix, "etcd-prefix", "", "prefix of all keys in your etcd cluster (default: /registry)")
	fs.StringArrayVar(&f.plane.APIServerFlags, "kube-apiserver-arg", nil, "flag for kube-apiserver, such as feature-gates=X=true; may be repeated")
	fs.IntVarP(&f.plane.Verbosity, "v", "v", 0, "log verbosity of the Kubernetes components, on the same scale as their own -v flag")
}

func profileTable() string {
	var b strings.Builder
	for _, p := range controllers.Profiles() {
		_, _ = fmt.Fprintf(&b, "  %-10s %s\n", p.Name, p.Description)
	}
	return b.String()
}

// options validates the flags together. changed reports whether a flag was given.
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
		return o, usageError{fmt.Errorf("--nodes is %d; use 0 to %d", o.Nodes, controlplane.MaxNodes)}
	case o.Port < 0 || o.Port > 65535:
		return o, usageError{fmt.Errorf("--port is %d; use 1 to 65535, or 0 for a free one", o.Port)}
	case f.ephemeral && changed("data-dir"):
		return o, usageError{errors.New("--ephemeral keeps the state in memory, but --data-dir keeps it in a folder; use only one of them")}
	case f.ephemeral && len(o.Etcd.Servers) > 0:
		return o, usageError{errors.New("--ephemeral keeps the state in memory, but --etcd-servers keeps it in your etcd; use only one of them")}
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

// programs reads the programs of --run and --config, and fails if the profile or
// the operating system cannot run them.
func (f upFlags) programs(profile controllers.Profile) (programs.Set, error) {
	if len(f.run) == 0 && f.config == "" {
		return nil, nil
	}
	if err := canRunPrograms(profile, "add --controllers=scheduler, or choose another --profile"); err != nil {
		return nil, err
	}
	set, err := parsePrograms("--run", f.run)
	if err != nil || f.config == "" {
		return set, err
	}
	more, err := programs.Load(f.config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	// If two entries have the same image, the first one wins.
	return append(set, more...), nil
}

// ours lists the flags of kube-apiserver that the user cannot set, each with the flag or
// value that Koboshi uses instead.
var ours = map[string]string{"secure-port": "--port", "bind-address": "127.0.0.1", "etcd-servers": "--etcd-servers"}

// apiserverFlag adds the leading dashes to a flag of kube-apiserver.
func apiserverFlag(arg string) (string, error) {
	arg = strings.TrimLeft(arg, "-")
	name, _, _ := strings.Cut(arg, "=")
	if use, taken := ours[name]; taken {
		return "", usageError{fmt.Errorf("--kube-apiserver-arg=%s would have no effect; koboshi uses %s instead", name, use)}
	}
	return "--" + arg, nil
}

func checkEtcd(e controlplane.ExternalEtcd) error {
	if len(e.Servers) == 0 && e.CAFile+e.CertFile+e.KeyFile+e.Prefix != "" {
		return usageError{errors.New("--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-prefix need --etcd-servers; set it to the URLs of your etcd cluster, or omit these flags")}
	}
	for _, server := range e.Servers {
		if u, err := url.Parse(server); err != nil || !slices.Contains([]string{"http", "https", "unix", "unixs"}, u.Scheme) {
			return usageError{fmt.Errorf("--etcd-servers: %q is not a URL; write one or more URLs separated by commas, such as https://10.0.0.1:2379", server)}
		}
	}
	return nil
}

// writableFile makes path absolute and checks that a file can be created there. Without
// this check, the error would appear only after minutes of work.
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
		return "", usageError{fmt.Errorf("%s: cannot write %s: %w; choose another file", flag, path, err)}
	}
	return path, nil
}

func up(ctx context.Context, o controlplane.Options, readyFile string, stdio Stdio) error {
	started := time.Now()
	memory.Starting()
	if readyFile != "" {
		_ = os.Remove(readyFile) // left behind by a plane that was killed
	}
	defer writeToNobody()()
	remove, err := unpackImages(&o)
	if err != nil {
		return err
	}
	defer remove()
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

// imagesTemp is the beginning of the names of folders with unpacked images.
const imagesTemp = "koboshi-images-"

// unpackImages unpacks the programs that are images, into a folder that remove deletes.
func unpackImages(o *controlplane.Options) (remove func(), err error) {
	if !slices.ContainsFunc(o.Programs, programs.Program.IsLayout) {
		return func() {}, nil
	}
	dir, remove, err := temporary(imagesTemp)
	if err != nil {
		return nil, err
	}
	if o.Programs, err = unpack.All(o.Programs, dir); err != nil {
		remove()
		return nil, usageError{err}
	}
	return remove, nil
}

// writeToNobody keeps the process alive when the reader of standard output is gone; head,
// for example, ends after the first lines. Without a reader, writes merely fail. The
// failure to print the address of a Service must not end a plane. SIGPIPE is caught and not
// ignored, because child processes would inherit the ignored signal.
func writeToNobody() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// addresses prints the addresses at which Services can be reached. It holds back
// addresses that arrive before the plane is ready.
type addresses struct {
	out   io.Writer
	mu    sync.Mutex
	held  []forwarding.Address
	ready bool
}

func (a *addresses) tell(address forwarding.Address) {
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

// announce prints the address of the plane. If programs cannot run, noPrograms is the
// reason, and announce prints it on another line.
func (r readiness) announce(stdio Stdio, o controlplane.Options, took time.Duration, noPrograms error, readyFile string) error {
	nodes := "no nodes"
	if o.Nodes > 0 {
		nodes = fmt.Sprintf("nodes: %d", o.Nodes)
	}
	switch {
	case noPrograms != nil:
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: programs cannot run, so their Pods stay pending: %v\n", noPrograms)
	case len(o.Programs) > 0:
		nodes += ", plus node local"
	}
	version := "v" + kubeversion.Version
	if kubeversion.EmulationNote(o.Kubernetes) != "" { // it is an older version
		version += " as " + o.Kubernetes
	}
	_, _ = fmt.Fprintf(stdio.Out, "Kubernetes %s is ready at %s after %.1f s (profile %s, %s)\nexport KUBECONFIG=%s\n",
		version, r.Server, took.Seconds(), o.Profile.Name, nodes, shellescape.Quote(r.Kubeconfig))
	if readyFile == "" {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return datadir.WriteFile(readyFile, append(data, '\n'), 0o600)
}

// classify marks the errors that the user can fix on the command line. It removes the text
// that wraps such an error.
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
