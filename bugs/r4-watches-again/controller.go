// Package r4 has a correct controller that has no informer: it watches its resources, from the
// current state on, for five minutes at a time. So every five minutes, the controller gets all of
// its resources again, and undoes what other clients have done to its children, which it does not
// watch.
//
// A checker that expects every controller to use informers reports that only a restart helps.
package r4

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Text string `json:"text,omitempty"`
}

// Status is the observed state.
type Status struct {
	Text string `json:"text,omitempty"`
}

// Beacon is a text, published in a ConfigMap.
type Beacon = object.Object[Spec, Status]

// period is the time after which the API server ends a watch, in seconds.
const period = int64(300)

type controller struct {
	child.Keeper
	watching client.WithWatch
	queue    workqueue.TypedRateLimitingInterface[client.ObjectKey]
}

// Run runs the controller until ctx is done. The controller has no bug, so there is nothing
// to repair.
func Run(ctx context.Context, cfg *rest.Config, _ bool) error {
	object.Register[Spec, Status]("Beacon")
	mapper, err := object.Mapper(nil, nil)
	if err != nil {
		return err
	}
	live, err := client.NewWithWatch(cfg, client.Options{Scheme: object.Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	c := &controller{
		Keeper: child.Keeper{Client: live, Live: live}, watching: live,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[client.ObjectKey]()),
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	go c.follow(ctx)
	for c.next(ctx) {
	}
	return nil
}

// follow puts a beacon into the queue when the beacon changes, and puts all beacons into the queue
// whenever a watch begins.
func (c *controller) follow(ctx context.Context) {
	for ctx.Err() == nil {
		seconds := period
		w, err := c.watching.Watch(ctx, &object.List[Spec, Status]{}, &client.ListOptions{Raw: &metav1.ListOptions{TimeoutSeconds: &seconds}})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		for e := range w.ResultChan() {
			if beacon, ok := e.Object.(*Beacon); ok {
				c.queue.Add(client.ObjectKeyFromObject(beacon))
			}
		}
	}
}

// next reconciles one beacon, and tries again after a failure. next returns false when the queue
// has been shut down.
func (c *controller) next(ctx context.Context) bool {
	key, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(key)
	if done, err := c.reconcile(ctx, key); err != nil || !done {
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// reconcile publishes the text of a beacon, and records it in the status.
func (c *controller) reconcile(ctx context.Context, key client.ObjectKey) (done bool, err error) {
	var b Beacon
	if err := c.Live.Get(ctx, key, &b); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return true, nil // the garbage collector does the rest
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-beacon"}}
	there, err := c.Ensure(ctx, &b, cm, func() {
		cm.Data = map[string]string{"text": b.Spec.Text}
		c.Own(&b, cm)
	})
	if err != nil || !there || b.Status.Text == b.Spec.Text {
		return there, err
	}
	b.Status.Text = b.Spec.Text
	return true, c.Status().Update(ctx, &b)
}
