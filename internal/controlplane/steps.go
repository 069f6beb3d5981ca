package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/credentials"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/controlplane/volumes"
	"github.com/koboshi-dev/koboshi/internal/freeport"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// This file contains the steps of Start, in the order of the table in
// plane.go.

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
	p.certs = credentials.Dir(p.dir.Path("pki"))
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
	// The API server is the only component that logs through klog's global
	// logger; the other components get their loggers from a context.
	remembering := &lastError{next: log}
	klog.SetLogger(clog.Klog(remembering, p.opts.Verbosity))
	p.exitWithKlog(remembering)
	return nil
}

// PortError reports that the requested port cannot be used.
type PortError struct {
	Port int
	Err  error
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d cannot be used: %v; choose another --port, or omit --port to get a free one", e.Port, e.Err)
}

func (e *PortError) Unwrap() error { return e.Err }

func (p *Plane) listen(context.Context) (err error) {
	last := p.dir.Marker().Port
	switch {
	case p.opts.Port != 0:
		if p.listener, err = freeport.Listen(p.opts.Port); err != nil {
			return &PortError{Port: p.opts.Port, Err: err}
		}
	case last != 0:
		// The same port as before keeps the kubeconfigs of running clients
		// valid.
		p.listener, _ = freeport.Listen(last)
	}
	if p.listener == nil {
		if p.listener, err = freeport.Listen(0); err != nil {
			return err
		}
	}
	port := p.listener.Addr().(*net.TCPAddr).Port
	return p.dir.Update(func(m *datadir.Marker) { m.Port = port })
}

func (p *Plane) issue(context.Context) (err error) {
	if p.dir.Marker().Initialized {
		if name := p.certs.Missing(); name != "" {
			return p.dir.Damaged("pki/" + name + " is missing")
		}
	}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	p.ca, err = p.certs.Ensure(names, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP})
	var circumstance *fs.PathError
	if err != nil && p.dir.Marker().Initialized && !errors.As(err, &circumstance) {
		return p.dir.Damaged("pki: " + err.Error())
	}
	return err
}

func (p *Plane) startServer(ctx context.Context) (err error) {
	if !spent.CompareAndSwap(false, true) {
		return ErrSecondPlane
	}
	p.server, err = apiserver.New(p.tasks.ctx, apiserver.Config{
		Surroundings: apiserver.Surroundings{
			OwnStore:  p.etcd != nil,
			UserAgent: useragent.Of(apiserverName),
			Shortcut:  p.shortcut(),

			WebhookAddress: p.webhookAddress(),
		},
		Flags:    p.apiserverFlags(),
		Listener: p.listener,
	})
	var refused *apiserver.FlagError
	if errors.As(err, &refused) {
		return err // no log would add anything to this error
	}
	if err != nil {
		return p.named(apiserverName, err)
	}
	p.loopback = p.server.LoopbackConfig()
	p.goComponent(apiserverName, p.server.Run)
	return p.named(apiserverName, p.waitReadyz(ctx))
}

func (p *Plane) furnish(ctx context.Context) error {
	if p.opts.Furnish == nil {
		return nil
	}
	return p.opts.Furnish(ctx, rest.CopyConfig(p.loopback))
}

// shortcut returns the shortcut to the plane's own store, or nil with an
// external etcd.
func (p *Plane) shortcut() *apiserver.Shortcut {
	if p.etcd == nil {
		return nil
	}
	return &apiserver.Shortcut{Endpoint: p.etcd.Endpoint(), Take: p.etcd.Shortcut}
}

// startVolumes creates the default StorageClass, and provisions volumes for the claims
// that upstream's binder passes on.
func (p *Plane) startVolumes(ctx context.Context) error {
	if !p.opts.Profile.BindsVolumes() {
		return nil
	}
	client, err := kubernetes.NewForConfig(p.loopback)
	if err != nil {
		return err
	}
	if err := volumes.EnsureClass(ctx, client); err != nil {
		return p.named(apiserverName, err)
	}
	log, err := p.logs.Open(volumes.Name)
	if err != nil {
		return err
	}
	own, _, err := p.identity(volumes.Name, pki.Request{CommonName: volumes.User, Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	if client, err = kubernetes.NewForConfig(own); err != nil {
		return err
	}
	config := volumes.Config{Client: client}
	if len(p.opts.Programs) > 0 {
		config.Root = p.dir.Path("volumes")
	}
	p.goComponent(volumes.Name, func(ctx context.Context) error {
		return volumes.Run(klog.NewContext(ctx, clog.Klog(log, p.opts.Verbosity)), config)
	})
	return nil
}

func (p *Plane) startControllers(context.Context) error {
	if p.opts.Profile.RunsManager() {
		if err := p.startManager(); err != nil {
			return err
		}
	}
	if p.opts.Profile.Has(controllers.Scheduler) {
		return p.startScheduler()
	}
	return nil
}

func (p *Plane) startManager() error {
	profile, err := p.startDaemonSets()
	if err != nil || !profile.RunsManager() {
		return err
	}
	log, err := p.logs.Open(managerName)
	if err != nil {
		return err
	}
	client, kubeconfig, err := p.identity(managerName, pki.Request{CommonName: "system:kube-controller-manager"})
	if err != nil {
		return err
	}
	config := controllers.ManagerConfig{
		Client:          client,
		Kubeconfig:      kubeconfig,
		Profile:         profile,
		RootCAFile:      p.certs.Path("ca.crt"),
		TokenKeyFile:    p.certs.Path("sa.key"),
		SigningCertFile: p.certs.Path("ca.crt"),
		SigningKeyFile:  p.certs.Path("ca.key"),
	}
	p.goComponent(managerName, func(ctx context.Context) error {
		return controllers.RunManager(klog.NewContext(ctx, clog.Klog(log, p.opts.Verbosity)), config)
	})
	return nil
}

// startDaemonSets runs the DaemonSet controller separately if there are programs, and
// removes it from the returned profile.
func (p *Plane) startDaemonSets() (controllers.Profile, error) {
	profile := p.opts.Profile
	if len(p.opts.Programs) == 0 || !profile.Has(controllers.DaemonSets) {
		return profile, nil
	}
	log, err := p.logs.Open(controllers.DaemonSets)
	if err != nil {
		return profile, err
	}
	// The user and the user agent are upstream's, because they appear in audit
	// logs and managedFields.
	kubeconfig, err := credentials.Kubeconfig(p.ca, p.URL(), pki.Request{
		CommonName: "system:serviceaccount:kube-system:daemon-set-controller",
		Groups:     []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"},
	})
	if err != nil {
		return profile, err
	}
	client, err := credentials.RESTConfig(kubeconfig)
	if err != nil {
		return profile, err
	}
	client = useragent.As(managerName, client)
	p.goComponent(controllers.DaemonSets, func(ctx context.Context) error {
		return controllers.RunDaemonSets(klog.NewContext(ctx, clog.Klog(log, p.opts.Verbosity)), client, p.opts.Programs)
	})
	return profile.Select([]string{"-" + controllers.DaemonSets})
}

func (p *Plane) startScheduler() error {
	log, err := p.logs.Open(schedulerName)
	if err != nil {
		return err
	}
	client, kubeconfig, err := p.identity(schedulerName, pki.Request{CommonName: "system:kube-scheduler"})
	if err != nil {
		return err
	}
	p.goComponent(schedulerName, func(ctx context.Context) error {
		return controllers.RunScheduler(klog.NewContext(ctx, clog.Klog(log, p.opts.Verbosity)), client, kubeconfig, p.opts.Programs...)
	})
	return nil
}

func (p *Plane) startNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.loopback)
	if err != nil {
		return err
	}
	if err := p.startLocal(ctx, client); err != nil {
		return err
	}
	return p.withoutLocal(ctx, client, func() error { return p.startSimulated(ctx, client) })
}

func (p *Plane) startSimulated(ctx context.Context, client kubernetes.Interface) error {
	if p.opts.Nodes == 0 && !p.opts.Profile.Has(controllers.Scheduler) {
		// No simulated nodes are wanted, but nodes from an earlier start must
		// be deleted.
		if err := nodes.Ensure(ctx, client, 0, 0); err != nil {
			return p.named(apiserverName, err)
		}
		return p.waitUsable(ctx, client)
	}
	log, err := p.logs.Open(nodesName)
	if err != nil {
		return err
	}
	kubelet, err := p.startKubelet(log)
	if err != nil {
		return err
	}
	if err := nodes.Ensure(ctx, client, p.opts.Nodes, kubelet.Port()); err != nil {
		return p.named(apiserverName, err)
	}
	engine, kubeconfig, err := p.identity(nodesName, pki.Request{CommonName: "koboshi:nodes", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	engine.QPS = -1 // with client-go's default limit, only five Pods a second would start on all nodes together
	err = nodes.Run(p.tasks.ctx, nodes.Config{Client: engine, Kubeconfig: kubeconfig, KubeletPort: kubelet.Port(), HoldJobs: p.opts.HoldJobs, Log: log})
	if err != nil {
		return p.named(nodesName, err)
	}
	return p.waitUsable(ctx, client)
}

func (p *Plane) startKubelet(log io.Writer) (*nodes.Kubelet, error) {
	serving, err := tls.LoadX509KeyPair(p.certs.Path("kubelet.crt"), p.certs.Path("kubelet.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for the nodes: %w", err)
	}
	kubelet, err := nodes.NewKubelet(p.ca.Cert, serving, p.opts.Processes, clog.Slog(log))
	if err != nil {
		return nil, err
	}
	p.goComponent(nodesName, kubelet.Run)
	return kubelet, nil
}

func (p *Plane) writeKubeconfig(context.Context) error {
	admin, err := credentials.Kubeconfig(p.ca, p.URL(), pki.Request{CommonName: "kubernetes-admin", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	if p.opts.Kubeconfig == "" {
		return credentials.WriteKubeconfig(p.Kubeconfig(), admin)
	}
	return credentials.MergeKubeconfig(p.opts.Kubeconfig, admin)
}
