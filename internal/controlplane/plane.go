// Package controlplane is a complete Kubernetes in this process: etcd,
// kube-apiserver, upstream's controllers and scheduler, and simulated nodes.
//
//	          Start                    /readyz green            Stop, or a
//	(nothing) ─────▶ starting ───────────────────▶ ready ─────────────────▶ stopped
//	                    │      component fails        │  component fails       ▲
//	                    └──────────────▶ Start error  └──▶ Failed() ── Stop ───┘
//
// One process holds one plane: upstream's feature gates, metrics and informer
// names are global.
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
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/kubelet"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/pki"
	forwarding "github.com/koboshi-dev/koboshi/internal/controlplane/services"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// The names of the components, as upstream has them. Each is the name of a
// log file too.
const (
	etcdName      = "etcd"
	apiserverName = "kube-apiserver"
	managerName   = "kube-controller-manager"
	schedulerName = "kube-scheduler"
	nodesName     = "kwok"
)

// Options says what to run. The zero value runs etcd and kube-apiserver, in
// memory, on a free port.
type Options struct {
	// DataDir is the folder that holds the state. Empty means memory only.
	DataDir string
	// Etcd is somebody's own etcd cluster. Zero means one of our own.
	Etcd ExternalEtcd
	// Profile names the controllers. Its zero value runs none.
	Profile controllers.Profile
	// Nodes is the number of simulated nodes. Zero means none.
	Nodes int
	// Programs are what Pods with their images run on this machine. Empty means
	// that all Pods are simulated.
	Programs programs.Set
	// Port is the API server's port on loopback. Zero means the one this data
	// directory used last, or any free one.
	Port int
	// Kubeconfig is where the administrator's kubeconfig is written. Empty
	// means the file "kubeconfig" in the data directory.
	Kubeconfig string
	// APIServerFlags are given to kube-apiserver. Each takes the place of the
	// flag of that name that the plane would give.
	APIServerFlags []string
	// Verbosity is klog's -v for all components.
	Verbosity int
	// Waiting is told every few seconds what the start waits for. Nil means
	// that nobody wants to know.
	Waiting func(what string)
	// Reachable is told where the Services of Programs can be reached, each
	// address once, also while Start is under way. It must not block. Nil means
	// that nobody wants to know.
	Reachable func(forwarding.Address)
	// Furnish is called when kube-apiserver answers and before any controller runs,
	// so that what it creates is there from their start: the garbage collector
	// looks for new kinds every 30 s only. Nil means nothing.
	Furnish func(ctx context.Context, admin *rest.Config) error
	// LastWords receives one line when a component ends the process by itself.
	// If it is set, what libraries write to the process's standard error goes
	// to a log file; if it is nil, standard error stays as it is.
	LastWords *os.File
}

// MaxNodes is how many nodes the addresses for Pods suffice for.
const MaxNodes = nodes.Max

// Plane is a running Kubernetes.
type Plane struct {
	opts  Options
	dir   *datadir.Dir
	logs  clog.Dir
	certs pki.Dir
	ca    *pki.Authority

	etcdServers []string
	etcd        *storage.Etcd // nil when the store is somebody else's
	socketDir   string        // to be removed, if it is not in the data directory
	listener    net.Listener
	server      *apiserver.Server
	loopback    *rest.Config
	local       *kubelet.Process // nil when no programs run
	noPrograms  error            // why none run although there are some

	tasks *tasks

	resetting resetting // see reset.go
}

// A step of Start. Steps run in order; each may use what those before it made.
type step struct {
	name string
	run  func(*Plane, context.Context) error
}

var steps = []step{
	{"open the data directory", (*Plane).openData},
	{"take the port", (*Plane).listen},
	{"issue certificates", (*Plane).issue},
	{"start etcd", (*Plane).startStore},
	{"start kube-apiserver", (*Plane).startServer},
	{"furnish the cluster", (*Plane).furnish},
	{"start controllers and scheduler", (*Plane).startControllers},
	{"start nodes", (*Plane).startNodes},
	{"forward services", (*Plane).startForwarding},
	{"hand out the kubeconfig", (*Plane).writeKubeconfig},
}

// ErrSecondPlane reports a Start in a process that has run a plane already,
// whether that one still runs or not.
var ErrSecondPlane = errors.New("this process has run its plane, and upstream's globals allow one per process; start the next one in a process of its own")

// spent is set when upstream's globals have been taken. Nothing gives them back.
var spent atomic.Bool

// Start runs a plane and returns when it is ready: /readyz answers ok and,
// where the profile runs them, the default service account exists and the
// nodes are Ready. After an error nothing is left running. Wrong use is
// reported as *datadir.Problem, *PortError, *StoreError, *apiserver.FlagError
// or ErrSecondPlane.
func Start(ctx context.Context, o Options) (*Plane, error) {
	if spent.Load() {
		return nil, ErrSecondPlane
	}
	// kube-controller-manager makes a client per controller.
	useragent.Claim(managerName)
	// What the components run under ends with Stop, not with ctx: ctx bounds
	// the start alone.
	p := &Plane{opts: o, tasks: newTasks(context.WithoutCancel(ctx))}
	for _, s := range steps {
		err := ctx.Err()
		if err == nil {
			err = p.whileHealthy(ctx, s.run)
		}
		if err != nil {
			failed := fmt.Errorf("%s: %w", s.name, err)
			_ = p.halt() // whileHealthy has told the error of a component already
			return nil, errors.Join(failed, p.release(ctx.Err() == nil && !toldInFull(err)))
		}
	}
	return p, nil
}

// toldInFull reports whether err is wrong use, which no log explains further.
func toldInFull(err error) bool {
	var (
		port  *PortError
		store *StoreError
		flags *apiserver.FlagError
	)
	return errors.As(err, &port) || errors.As(err, &store) || errors.As(err, &flags)
}

// whileHealthy runs a step and gives up when a component ends meanwhile.
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

// URL is the address of the API server.
func (p *Plane) URL() string { return "https://" + p.listener.Addr().String() }

// Kubeconfig is the path of the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string {
	if p.opts.Kubeconfig != "" {
		return p.opts.Kubeconfig
	}
	return p.dir.Path("kubeconfig")
}

// InProcess is the way of a client in this process to the API server without a
// connection, as the user of its client certificate or of the headers it sends.
func (p *Plane) InProcess(client *rest.Config) (http.RoundTripper, error) {
	return p.server.InProcess(client)
}

// NoPrograms tells why Pods with the images of Programs stay pending on this
// system; nil if they run, and if there are none.
func (p *Plane) NoPrograms() error { return p.noPrograms }

// Failed is closed when a component ended by itself; Stop then tells why.
func (p *Plane) Failed() <-chan struct{} { return p.tasks.ctx.Done() }

// Stop ends the plane, in well under a second: clients are cut off, not
// drained, and the store is complete at every moment. Programs of Pods are asked
// to end and have a second; then none of their processes is left. It returns the
// error of the component that failed first, if one did.
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

// release gives up what Start took. The logs of an ephemeral plane are kept
// when they may be needed.
func (p *Plane) release(keepLogs bool) error {
	// Once the server runs, the listener is its own, and it panics when
	// another closes it.
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
