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
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/pki"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
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
	// Port is the API server's port on loopback. Zero means the one this data
	// directory used last, or any free one.
	Port int
	// Kubeconfig is where the administrator's kubeconfig is written. Empty
	// means the file "kubeconfig" in the data directory.
	Kubeconfig string
	// APIServerFlags are added to kube-apiserver's own; later ones win.
	APIServerFlags []string
	// Verbosity is klog's -v for all components.
	Verbosity int
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
	kubelet     *nodes.Kubelet
	nodesLog    *os.File
	server      *apiserver.Server
	loopback    *rest.Config

	tasks *tasks
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
	{"start controllers and scheduler", (*Plane).startControllers},
	{"start nodes", (*Plane).startNodes},
	{"hand out the kubeconfig", (*Plane).writeKubeconfig},
}

// Start runs a plane and returns when it is ready: /readyz answers ok and,
// where the profile runs them, the default service account exists and the
// nodes are Ready. After an error nothing is left running. Wrong use is
// reported as *datadir.Problem, *PortError or *StoreError.
func Start(ctx context.Context, o Options) (*Plane, error) {
	claimUserAgent()
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
			p.halt()
			return nil, errors.Join(failed, p.release(true))
		}
	}
	return p, nil
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

// Failed is closed when a component ended by itself; Stop then tells why.
func (p *Plane) Failed() <-chan struct{} { return p.tasks.ctx.Done() }

// Stop ends the plane, in well under a second: clients are cut off, not
// drained, and the store is complete at every moment. It returns the error of
// the component that failed first, if one did.
func (p *Plane) Stop() error {
	failure := p.halt()
	return errors.Join(failure, p.release(failure != nil))
}

func (p *Plane) halt() error {
	failure := p.tasks.stop()
	if p.etcd != nil {
		p.etcd.Stop()
	}
	return failure
}

// release gives up what Start took. The logs of an ephemeral plane are kept
// when they may be needed.
func (p *Plane) release(keepLogs bool) error {
	if p.listener != nil {
		_ = p.listener.Close() // already closed by the server, as a rule
	}
	if p.socketDir != "" {
		_ = os.RemoveAll(p.socketDir)
	}
	switch {
	case p.dir == nil:
		return nil
	case p.opts.DataDir == "" && !keepLogs:
		return p.dir.Remove()
	}
	return p.dir.Close()
}

func (p *Plane) openData(context.Context) (err error) {
	if p.opts.DataDir == "" {
		p.dir, err = datadir.OpenEphemeral(kubeversion.Version)
	} else {
		p.dir, err = datadir.Open(p.opts.DataDir, kubeversion.Version)
	}
	if err != nil {
		return err
	}
	p.logs = clog.Dir(p.dir.Path("logs"))
	p.certs = pki.Dir(p.dir.Path("pki"))
	if p.opts.LastWords != nil {
		log, err := p.logs.Open("stderr")
		if err != nil {
			return err
		}
		if err := clog.MoveStderr(log, p.opts.LastWords); err != nil {
			return err
		}
	}
	log, err := p.logs.Open(apiserverName)
	if err != nil {
		return err
	}
	// The API server is the one component that logs through klog's global
	// logger; the others are given theirs in a context.
	klog.SetLogger(clog.Klog(log, p.opts.Verbosity))
	p.exitWithKlog()
	return nil
}

// PortError reports that the port that was asked for cannot be had.
type PortError struct {
	Port int
	Err  error
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d cannot be used: %v; choose another --port, or leave it out to get a free one", e.Port, e.Err)
}

func (e *PortError) Unwrap() error { return e.Err }

func (p *Plane) listen(context.Context) (err error) {
	last := p.dir.Marker().Port
	switch {
	case p.opts.Port != 0:
		if p.listener, err = listenLoopback(p.opts.Port); err != nil {
			return &PortError{Port: p.opts.Port, Err: err}
		}
	case last != 0:
		// Keeping the port keeps the kubeconfigs of running clients valid.
		p.listener, _ = listenLoopback(last)
	}
	if p.listener == nil {
		if p.listener, err = listenLoopback(0); err != nil {
			return err
		}
	}
	port := p.listener.Addr().(*net.TCPAddr).Port
	return p.dir.Update(func(m *datadir.Marker) { m.Port = port })
}

func listenLoopback(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func (p *Plane) issue(context.Context) (err error) {
	if p.dir.Marker().Initialized {
		if name := p.certs.Missing(); name != "" {
			return p.dir.Damaged("pki/" + name + " is missing")
		}
	}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	p.ca, err = p.certs.Ensure(names, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP})
	return err
}

func (p *Plane) startServer(ctx context.Context) (err error) {
	serving, err := tls.LoadX509KeyPair(p.certs.Path("kubelet.crt"), p.certs.Path("kubelet.key"))
	if err != nil {
		return fmt.Errorf("reading the nodes' certificate: %w", err)
	}
	if p.nodesLog, err = p.logs.Open(nodesName); err != nil {
		return err
	}
	if p.kubelet, err = nodes.NewKubelet(p.ca.Cert, serving, clog.Slog(p.nodesLog)); err != nil {
		return err
	}
	p.server, err = apiserver.New(p.tasks.ctx, apiserver.Config{
		Flags:     p.apiserverFlags(),
		Listener:  p.listener,
		OwnStore:  p.etcd != nil,
		UserAgent: userAgent(apiserverName),
	})
	if err != nil {
		return p.named(apiserverName, err)
	}
	p.loopback = p.server.LoopbackConfig()
	p.goComponent(apiserverName, p.server.Run)
	return p.named(apiserverName, waitReadyz(ctx, p.loopback))
}

func (p *Plane) startControllers(context.Context) error {
	managerLog, err := p.logs.Open(managerName)
	if err != nil {
		return err
	}
	schedulerLog, err := p.logs.Open(schedulerName)
	if err != nil {
		return err
	}
	for _, name := range p.opts.Profile.Controllers {
		if name == controllers.Scheduler {
			continue
		}
		client, kubeconfig, err := p.identity(managerName, pki.Request{CommonName: "system:kube-controller-manager"})
		if err != nil {
			return err
		}
		p.goComponent(managerName, func(ctx context.Context) error {
			return controllers.RunManager(klog.NewContext(ctx, clog.Klog(managerLog, p.opts.Verbosity)), controllers.ManagerConfig{
				Client:          client,
				Kubeconfig:      kubeconfig,
				Profile:         p.opts.Profile,
				RootCAFile:      p.certs.Path("ca.crt"),
				TokenKeyFile:    p.certs.Path("sa.key"),
				SigningCertFile: p.certs.Path("ca.crt"),
				SigningKeyFile:  p.certs.Path("ca.key"),
			})
		})
		break
	}
	if !p.opts.Profile.Has(controllers.Scheduler) {
		return nil
	}
	client, kubeconfig, err := p.identity(schedulerName, pki.Request{CommonName: "system:kube-scheduler"})
	if err != nil {
		return err
	}
	p.goComponent(schedulerName, func(ctx context.Context) error {
		return controllers.RunScheduler(klog.NewContext(ctx, clog.Klog(schedulerLog, p.opts.Verbosity)), client, kubeconfig)
	})
	return nil
}

func (p *Plane) startNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.loopback)
	if err != nil {
		return err
	}
	p.goComponent("kubelet endpoint", p.kubelet.Run)
	// With no nodes wanted, those of an earlier start must still go.
	if err := nodes.Ensure(ctx, client, p.opts.Nodes); err != nil {
		return p.named(apiserverName, err)
	}
	engine, kubeconfig, err := p.identity(nodesName, pki.Request{CommonName: "koboshi:nodes", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	err = nodes.Run(p.tasks.ctx, nodes.Config{Client: engine, Kubeconfig: kubeconfig, KubeletPort: p.kubelet.Port(), Log: p.nodesLog})
	if err != nil {
		return p.named(nodesName, err)
	}
	return p.waitUsable(ctx, client)
}

func (p *Plane) writeKubeconfig(context.Context) error {
	admin, err := p.ca.Kubeconfig(p.URL(), pki.Request{CommonName: "kubernetes-admin", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	return pki.WriteKubeconfig(p.Kubeconfig(), admin)
}

// identity issues a client certificate to a component and writes it as a
// kubeconfig too, for upstream's options take no other form.
func (p *Plane) identity(component string, subject pki.Request) (*rest.Config, string, error) {
	kubeconfig, err := p.ca.Kubeconfig(p.URL(), subject)
	if err != nil {
		return nil, "", err
	}
	path := p.certs.Path(component + ".conf")
	if err := pki.WriteKubeconfig(path, kubeconfig); err != nil {
		return nil, "", err
	}
	client, err := pki.RESTConfig(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	return speakAs(component, client), path, nil
}

// goComponent runs a component for the life of the plane; its error ends it.
func (p *Plane) goComponent(name string, run func(context.Context) error) {
	p.tasks.run(func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return p.named(name, err)
		}
		if ctx.Err() == nil {
			return p.named(name, errors.New("ended unexpectedly"))
		}
		return nil
	})
}

// named adds the component's name and its log file to an error.
func (p *Plane) named(component string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w (log: %s)", component, err, p.logs.Path(component))
}
