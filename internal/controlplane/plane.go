// Package controlplane runs a complete Kubernetes cluster in this process:
// etcd, kube-apiserver, upstream's controllers and scheduler, and simulated
// nodes.
//
//	          Start                    /readyz green            Stop, or a
//	(nothing) ─────▶ starting ───────────────────▶ ready ─────────────────▶ stopped
//	                    │      component fails        │  component fails       ▲
//	                    └──────────────▶ Start error  └──▶ Failed() ── Stop ───┘
//
// A process can run only one plane, because upstream's feature gates, metrics
// and informer names are global.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/baseline"
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/credentials"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/forwarding"
	"github.com/koboshi-dev/koboshi/internal/controlplane/kubelet"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/pki"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// These are upstream's names of the components, and also the names of their log
// files.
const (
	etcdName      = "etcd"
	apiserverName = "kube-apiserver"
	managerName   = "kube-controller-manager"
	schedulerName = "kube-scheduler"
	nodesName     = "kwok"
)

// Options configures a plane. The zero value runs etcd and kube-apiserver, in
// memory, on a free port.
type Options struct {
	// DataDir is the folder that holds the state. Empty means that the state is
	// only in memory.
	DataDir string
	// Etcd is an external etcd cluster. The zero value means that the plane
	// runs its own etcd.
	Etcd ExternalEtcd
	// Profile names the controllers. The zero value means no controllers.
	Profile controllers.Profile
	// Kubernetes is the minor version that kube-apiserver, kube-controller-manager and
	// kube-scheduler emulate, such as 1.34; see kubeversion.Minors. Empty means the version
	// of the program.
	Kubernetes string
	// Nodes is the number of simulated nodes. Zero means none.
	Nodes int
	// HoldJobs keeps the simulated Pods of Jobs running until the caller ends them with
	// nodes.EndOfJobPod. Otherwise, they end by themselves.
	HoldJobs bool
	// Processes provides the answers of the processes that simulated Pods do not have. It may be
	// nil.
	Processes nodes.Processes
	// Programs maps images to programs, which run on this machine in place of containers.
	// Empty means that all Pods are simulated.
	Programs programs.Set
	// HidePaths lists files and folders of this machine that Programs do not see.
	HidePaths []string
	// Port is the API server's port on loopback. Zero means the port that this data directory used
	// last, or any free port.
	Port int
	// Kubeconfig is the path to which the administrator's kubeconfig is
	// written. Empty means the file "kubeconfig" in the data directory.
	Kubeconfig string
	// APIServerFlags are passed to kube-apiserver. Each flag replaces a flag of the same
	// name that the plane would set.
	APIServerFlags []string
	// WebhookAddress returns the address, as host:port, at which kube-apiserver calls the webhooks of a
	// Service, instead of the Service's cluster IP. It reports false for a Service that has no such
	// address, and is nil if there are none.
	WebhookAddress func(namespace, name string, port int32) (address string, ok bool)
	// Verbosity is klog's -v for all components.
	Verbosity int
	// Waiting is called every few seconds while the start waits, with a
	// description of what it is waiting for. It may be nil.
	Waiting func(what string)
	// Reachable is called once for each address at which the Services of
	// Programs can be reached, possibly before Start returns. It must not
	// block. It may be nil.
	Reachable func(forwarding.Address)
	// Furnish is called when kube-apiserver answers and before any controller runs. If the
	// controllers were already running, the garbage collector could take 30 s to notice the
	// kinds that Furnish creates. It may be nil.
	Furnish func(ctx context.Context, admin *rest.Config) error
	// LastWords receives one line when a component ends the process. If
	// LastWords is set, standard error is redirected to a log file, because
	// libraries write to standard error. If LastWords is nil, standard error is
	// not redirected.
	LastWords *os.File
}

// MaxNodes is the maximum number of nodes for which there are enough Pod
// addresses.
const MaxNodes = nodes.Max

// Plane is a running Kubernetes cluster.
type Plane struct {
	opts  Options
	dir   *datadir.Dir
	logs  clog.Dir
	certs credentials.Dir
	ca    *pki.Authority

	etcdServers []string
	etcd        *storage.Etcd // nil with an external etcd
	socketDir   string        // set if it is outside the data directory and must be removed
	listener    net.Listener
	server      *apiserver.Server
	loopback    *rest.Config
	local       *kubelet.Process // nil when no programs run
	forwarded   forwarding.Addresses
	replace     func() // announces that local ends on purpose
	noPrograms  error  // the reason if there are programs but they cannot run

	tasks *tasks

	keeper *baseline.Keeper // nil with an external etcd
}

// step is one part of Start. Steps run in order; each may use the results of earlier steps.
type step struct {
	name string
	run  func(*Plane, context.Context) error
}

var steps = []step{
	{"open the data directory", (*Plane).openData},
	{"listen on the port", (*Plane).listen},
	{"issue certificates", (*Plane).issue},
	{"start etcd", (*Plane).startStore},
	{"start kube-apiserver", (*Plane).startServer},
	{"create the initial objects", (*Plane).furnish},
	{"provision volumes", (*Plane).startVolumes},
	{"start controllers and scheduler", (*Plane).startControllers},
	{"start nodes", (*Plane).startNodes},
	{"forward services", (*Plane).startForwarding},
	{"write the kubeconfig", (*Plane).writeKubeconfig},
}

// ErrSecondPlane is the error of Start in a process that has already run a
// plane, even if that plane has stopped.
var ErrSecondPlane = errors.New("this process has already run a plane, and upstream's global state allows only one per process; start the next plane in a separate process")

// spent is set when upstream's global state, which cannot be reset, has been
// used.
var spent atomic.Bool

// Start runs a plane and returns when it is ready: /readyz answers ok, the
// nodes are Ready and, if the profile runs service accounts, the default
// service account exists. After an error, nothing is left running. Misuse is
// reported as *datadir.Problem, *PortError, *StoreError, *apiserver.FlagError
// or ErrSecondPlane.
func Start(ctx context.Context, o Options) (*Plane, error) {
	if spent.Load() {
		return nil, ErrSecondPlane
	}
	// kube-controller-manager creates a client for each controller.
	useragent.Claim(managerName)
	// The components run until Stop, not until ctx ends: ctx limits only the
	// start.
	p := &Plane{opts: o, tasks: newTasks(context.WithoutCancel(ctx))}
	for _, s := range steps {
		err := ctx.Err()
		if err == nil {
			err = p.whileHealthy(ctx, s.run)
		}
		if err != nil {
			failed := fmt.Errorf("%s: %w", s.name, err)
			_ = p.halt() // whileHealthy has already reported a component's error
			return nil, errors.Join(failed, p.release(ctx.Err() == nil && !toldInFull(err)))
		}
	}
	if p.etcd != nil {
		p.keeper = p.newKeeper()
	}
	return p, nil
}

// toldInFull reports whether err reports misuse. An error about misuse is
// complete: no log explains it further.
func toldInFull(err error) bool {
	var (
		port  *PortError
		store *StoreError
		flags *apiserver.FlagError
	)
	return errors.As(err, &port) || errors.As(err, &store) || errors.As(err, &flags)
}

// whileHealthy runs a step. If a component fails while the step runs,
// whileHealthy cancels the step and returns the component's error.
func (p *Plane) whileHealthy(ctx context.Context, run func(*Plane, context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.tasks.ctx, func() { cancel(context.Cause(p.tasks.ctx)) })()
	err := run(p, ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// URL returns the address of the API server.
func (p *Plane) URL() string { return "https://" + p.listener.Addr().String() }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string {
	if p.opts.Kubeconfig != "" {
		return p.opts.Kubeconfig
	}
	return p.dir.Path("kubeconfig")
}

// InProcess returns a transport to the API server for a client in this process,
// without a connection. The user of a request comes from the client certificate
// in client, or from the headers of the request.
func (p *Plane) InProcess(client *rest.Config) (http.RoundTripper, error) {
	return p.server.InProcess(client)
}

// NoPrograms returns the reason why this system cannot run Programs, in which case the Pods that
// need a program stay pending. NoPrograms returns nil if the programs can run or if there are no
// Programs.
func (p *Plane) NoPrograms() error { return p.noPrograms }

// Failed returns a channel that is closed when a component ends on its own. The
// reason is the error that Stop returns.
func (p *Plane) Failed() <-chan struct{} { return p.tasks.ctx.Done() }

// Stop ends the plane in well under a second, because clients are cut off, not
// drained, and the store is complete at every moment. If Pods run as processes,
// Stop asks the processes to end, waits for up to one second, and then kills them.
// Stop returns the error of the component that failed first, if any.
func (p *Plane) Stop() error {
	failure := p.halt()
	return errors.Join(failure, p.release(failure != nil))
}

func (p *Plane) halt() error {
	failure := p.tasks.stop()
	if p.local != nil {
		p.local.Stop()
	}
	if p.etcd != nil {
		p.etcd.Stop()
	}
	return failure
}

// release releases everything that Start acquired. With keepLogs, it keeps the
// logs of an ephemeral plane.
func (p *Plane) release(keepLogs bool) error {
	// A running server owns the listener, and panics if other code closes it.
	if p.listener != nil && p.server == nil {
		_ = p.listener.Close()
	}
	if p.socketDir != "" {
		_ = os.RemoveAll(p.socketDir)
	}
	switch {
	case p.dir == nil:
		return nil
	case p.opts.DataDir == "" && keepLogs:
		return p.dir.Abandon("logs")
	case p.opts.DataDir == "":
		return p.dir.Remove()
	}
	return p.dir.Close()
}
