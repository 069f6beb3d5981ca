// Package forwarding makes a Service reachable if its Pods are processes of
// this machine.
//
// Pods that run as processes have loopback addresses, which the API server
// refuses in EndpointSlices, and nothing in a plane routes cluster IPs. So each
// TCP port of a Service that selects a Pod on this machine gets a listener on
// 127.0.0.1, and each connection to the listener is forwarded to one of the
// Pods. Ports of other protocols are ignored. Session affinity is not
// supported, because all clients have the same address.
//
//	            a Pod is selected and Ready               the Service or its port goes
//	(no listener) ───────────────────────▶ reachable ───────────────────────▶ (no listener)
//	                                        │     ▲
//	                        no Pod is Ready ▼     │ one is
//	                                 connections are refused
package forwarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// retryAfter is the wait before another attempt if a listener could not be
// opened.
const retryAfter = time.Second

// Config configures the forwarding.
type Config struct {
	// Client reads Services and Pods, and records Events.
	Client kubernetes.Interface
	// Node is the node whose Pods are processes.
	Node string
	// Reachable is called once for each address, when the address first has a
	// Pod to forward to. It must not block. It may be nil.
	Reachable func(Address)
	// Addresses gets the addresses of all forwarded ports. It may be nil.
	Addresses *Addresses
	// Log receives the errors that are not reported to a client.
	Log *slog.Logger
}

// An Address is the local address of a Service's port.
type Address struct {
	Namespace, Service string
	// Port is the name of the port. Port is empty if only one port of the Service is forwarded.
	Port string
	// URL is http://127.0.0.1:PORT or https://127.0.0.1:PORT, or 127.0.0.1:PORT
	// if nothing indicates that the port speaks HTTP.
	URL string
}

// String formats the address as a line for people.
func (a Address) String() string {
	name := a.Namespace + "/" + a.Service
	if a.Port != "" {
		name += ":" + a.Port
	}
	return fmt.Sprintf("service %s  %s", name, a.URL)
}

// Run forwards connections until ctx ends, and then closes all listeners and
// connections.
func Run(ctx context.Context, c Config) error {
	services := informers.NewSharedInformerFactory(c.Client, 0)
	pods := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", c.Node).String()
	}))
	events := record.NewBroadcaster(record.WithContext(ctx))
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.Client.CoreV1().Events("")})
	defer events.Shutdown()

	f := newForwarding(ctx, c, services.Core().V1().Services().Lister(), pods.Core().V1().Pods().Lister())
	defer f.stop()
	f.events = events.NewRecorder(clientscheme.Scheme, corev1.EventSource{Component: "koboshi"})
	if err := f.follow(services.Core().V1().Services().Informer(), pods.Core().V1().Pods().Informer()); err != nil {
		return fmt.Errorf("watching services: %w", err)
	}
	for _, factory := range []informers.SharedInformerFactory{services, pods} {
		factory.StartWithContext(f.ctx)
		defer factory.Shutdown()
		factory.WaitForCacheSync(f.ctx.Done())
	}
	defer f.cancel() // runs before the factories wait for their informers
	defer context.AfterFunc(ctx, f.queue.ShutDown)()
	for f.next() {
	}
	return nil
}

// forwarding is the state of Run. Only the goroutine of Run uses the field
// open.
type forwarding struct {
	Config
	ctx         context.Context
	cancel      context.CancelFunc
	services    corelisters.ServiceLister
	pods        corelisters.PodLister
	events      record.EventRecorder // nil if no Events are recorded
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	open        map[cache.ObjectName]*forwarded
	connections sync.WaitGroup
}

// forwarded holds the listeners of a Service, by port name.
type forwarded struct {
	uid   types.UID
	ports map[string]*listener
}

func newForwarding(ctx context.Context, c Config, services corelisters.ServiceLister, pods corelisters.PodLister) *forwarding {
	f := &forwarding{Config: c, services: services, pods: pods, open: map[cache.ObjectName]*forwarded{}}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemFastSlowRateLimiter[cache.ObjectName](retryAfter, retryAfter, 0))
	return f
}

// stop closes everything and waits until all connections have ended.
func (f *forwarding) stop() {
	f.cancel()
	f.queue.ShutDown()
	for key := range f.open {
		f.close(key)
	}
	f.connections.Wait()
}

// follow queues the Services that a change affects.
func (f *forwarding) follow(services, pods cache.SharedIndexInformer) error {
	_, err := services.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.enqueue,
		UpdateFunc: func(_, service any) { f.enqueue(service) },
		DeleteFunc: f.enqueue,
	})
	if err != nil {
		return err
	}
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.enqueueSelecting,
		UpdateFunc: func(before, after any) { f.enqueueSelecting(before); f.enqueueSelecting(after) },
		DeleteFunc: f.enqueueSelecting,
	})
	return err
}

func (f *forwarding) enqueue(service any) {
	if key, err := cache.DeletionHandlingObjectToName(service); err == nil {
		f.queue.Add(key)
	}
}

func (f *forwarding) enqueueSelecting(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	services, err := f.services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		f.Log.Error("listing services", "err", err)
		return
	}
	for _, service := range services {
		if selects(service, pod) {
			f.enqueue(service)
		}
	}
}

// next handles one Service; it returns false when the queue has been closed.
func (f *forwarding) next() bool {
	key, ended := f.queue.Get()
	if ended {
		return false
	}
	defer f.queue.Done(key)
	if err := f.sync(key); err != nil {
		f.Log.Error("forwarding a service", "service", key.String(), "err", err)
		f.queue.AddRateLimited(key)
		return true
	}
	f.queue.Forget(key)
	return true
}

// sync brings the listeners of a Service up to date.
func (f *forwarding) sync(key cache.ObjectName) error {
	service, err := f.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		f.close(key)
		return nil
	}
	if err != nil {
		return err
	}
	if before := f.open[key]; before != nil && before.uid != service.UID {
		f.close(key)
	}
	pods, err := f.pods.Pods(key.Namespace).List(labels.SelectorFromValidatedSet(service.Spec.Selector))
	if err != nil {
		return err
	}
	if f.open[key] == nil {
		f.open[key] = &forwarded{uid: service.UID, ports: map[string]*listener{}}
	}
	here := f.open[key]
	wanted := ports(service)
	for name, l := range here.ports {
		if !slices.ContainsFunc(wanted, func(p corev1.ServicePort) bool { return p.Name == name }) {
			_ = l.Close()
			delete(here.ports, name)
		}
	}
	for _, port := range wanted {
		err = errors.Join(err, f.forward(service, here, port, endpoints(service, port, pods)))
	}
	if len(here.ports) == 0 {
		delete(f.open, key)
	}
	f.Addresses.set(key, here.addresses(wanted))
	return err
}

// addresses returns the addresses of the ports that are forwarded, by port number.
func (f *forwarded) addresses(ports []corev1.ServicePort) map[int32]string {
	all := map[int32]string{}
	for _, port := range ports {
		if l := f.ports[port.Name]; l != nil {
			all[port.Port] = l.Addr().String()
		}
	}
	return all
}

// forward sets the targets of a port, and opens the port's listener when the port gets its first
// target.
func (f *forwarding) forward(service *corev1.Service, here *forwarded, port corev1.ServicePort, targets []string) error {
	if l := here.ports[port.Name]; l != nil {
		l.targets.Store(&targets)
		return nil
	}
	if len(targets) == 0 {
		return nil
	}
	l, err := listen(int(port.NodePort), f.Log)
	if err != nil {
		return err
	}
	l.targets.Store(&targets)
	here.ports[port.Name] = l
	f.connections.Go(func() { l.serve(f.ctx, &f.connections) })
	address := Address{Namespace: service.Namespace, Service: service.Name, URL: scheme(port) + l.Addr().String()}
	if len(ports(service)) > 1 {
		address.Port = port.Name
	}
	if f.events != nil {
		f.events.Eventf(service, corev1.EventTypeNormal, "Reachable", "Forwarding %s to the Pods that run on this machine", address.URL)
	}
	if f.Reachable != nil {
		f.Reachable(address)
	}
	return nil
}

// close closes the listeners of a Service. Open connections are kept.
func (f *forwarding) close(key cache.ObjectName) {
	here := f.open[key]
	if here == nil {
		return
	}
	for _, l := range here.ports {
		_ = l.Close()
	}
	delete(f.open, key)
	f.Addresses.set(key, nil)
}
