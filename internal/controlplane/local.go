package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/koboshi-dev/koboshi/internal/controlplane/kubelet"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// namespacesForbidden is a reason in the condition of the node and in Events.
const namespacesForbidden = "NamespacesForbidden"

// startLocal runs the local node if there are programs to run.
func (p *Plane) startLocal(ctx context.Context, client kubernetes.Interface) error {
	if len(p.opts.Programs) == 0 {
		return nil
	}
	root := p.localRoot()
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("creating the kubelet's folder: %w", err)
	}
	if err := nodes.EnsureLocal(ctx, client); err != nil {
		return p.named(apiserverName, err)
	}
	err := p.startRealKubelet(root)
	if errors.Is(err, kubelet.ErrForbidden) {
		p.noPrograms = kubelet.ErrForbidden
		return p.tellForbidden(ctx, client, err)
	}
	return err
}

func (p *Plane) localRoot() string { return p.dir.Path("kubelet") }

// withoutLocal calls start. If there are no programs, withoutLocal also removes the objects that an
// earlier start with programs left. withoutLocal removes the local node before it calls start, and
// the Pods of the local node afterwards.
func (p *Plane) withoutLocal(ctx context.Context, client kubernetes.Interface, start func() error) error {
	if _, err := os.Stat(p.localRoot()); err != nil || len(p.opts.Programs) > 0 {
		return start()
	}
	removed, err := nodes.RemoveLocal(ctx, client)
	if err != nil {
		return p.named(apiserverName, err)
	}
	if err := start(); err != nil {
		return err
	}
	if removed {
		if err := nodes.RemoveLocalPods(ctx, client); err != nil {
			return p.named(apiserverName, err)
		}
	}
	return os.RemoveAll(p.localRoot())
}

func (p *Plane) startRealKubelet(root string) error {
	log, err := p.logs.Open(kubelet.Name)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	_, kubeconfig, err := p.identity(kubelet.Name, pki.Request{CommonName: "system:node:" + nodes.Local, Groups: []string{"system:nodes"}})
	if err != nil {
		return err
	}
	p.local, err = kubelet.Start(kubelet.Config{
		NodeName:    nodes.Local,
		Kubeconfig:  kubeconfig,
		Root:        root,
		ServingCert: p.certs.Path("kubelet.crt"),
		ServingKey:  p.certs.Path("kubelet.key"),
		ClientCA:    p.certs.Path("ca.crt"),
		Programs:    p.opts.Programs,
		HostPaths:   []string{p.dir.Path()},
		HidePaths:   p.opts.HidePaths,
		ServiceIP:   serviceIP.String(),
		APIServer:   p.listener.Addr().String(),
		Verbosity:   p.opts.Verbosity,
	}, log)
	if err != nil {
		return p.named(kubelet.Name, err)
	}
	local := p.local
	replaced := make(chan struct{})
	p.replace = sync.OnceFunc(func() { close(replaced) })
	p.tasks.run(func(ctx context.Context) error {
		select {
		case <-local.Ended():
			select {
			case <-replaced:
				return nil
			default:
				return p.named(kubelet.Name, local.Err())
			}
		case <-ctx.Done():
			local.Stop()
			return nil
		}
	})
	return nil
}

// withoutPrograms calls the function do while no program runs in a Pod. withoutPrograms kills the
// kubelet, and the kernel kills the programs with it. Another kubelet, which knows nothing of the
// earlier Pods, is started afterwards.
func (p *Plane) withoutPrograms(ctx context.Context, do func(context.Context) error) error {
	if p.local == nil {
		return do(ctx)
	}
	p.replace()
	p.local.Kill()
	if err := os.RemoveAll(p.localRoot()); err != nil {
		return fmt.Errorf("removing the kubelet's folder: %w", err)
	}
	if err := do(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(p.localRoot(), 0o700); err != nil {
		return fmt.Errorf("creating the kubelet's folder: %w", err)
	}
	if err := p.startRealKubelet(p.localRoot()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(p.loopback)
	if err != nil {
		return err
	}
	return nodes.MoveLocal(ctx, client, p.local.Port())
}

// tellForbidden reports why no program can run, in the condition of the node
// and in an Event for each Pod.
func (p *Plane) tellForbidden(ctx context.Context, client kubernetes.Interface, why error) error {
	if err := nodes.SetLocalNotReady(ctx, client, namespacesForbidden, why.Error()); err != nil {
		return p.named(apiserverName, err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(p.tasks.ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: kubelet.Name, Host: nodes.Local})
	waiting := fields.OneTermEqualSelector("status.phase", string(corev1.PodPending))
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, waiting),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok && p.wouldRun(pod) {
				recorder.Event(pod, corev1.EventTypeWarning, namespacesForbidden, kubelet.ErrForbidden.Error())
			}
		}},
	})
	p.tasks.run(func(ctx context.Context) error {
		controller.RunWithContext(ctx)
		broadcaster.Shutdown()
		return nil
	})
	return nil
}

// wouldRun reports whether the Pod belongs on the local node.
func (p *Plane) wouldRun(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName == nodes.Local
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if p.opts.Programs.Any(c.Image) {
			return true
		}
	}
	return false
}
