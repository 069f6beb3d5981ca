// Package n1 has a correct controller whose children are of a kind named Node, in the group
// example.com. The controller creates one Node for each host, and a Node takes a while to
// boot.
//
// A checker ignores the heartbeats of Kubernetes' own Nodes. A checker that mistakes the
// Nodes of example.com for Kubernetes' own considers a cluster idle while a Node is still
// booting.
package n1

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// boot is the time that a Node takes to boot. Until a checker has measured how long the controller
// pauses, it considers the cluster idle after a period without writes, and this period is shorter
// than boot. While the checker measures the pauses, it waits for longer than boot.
const boot = 450 * time.Millisecond

// Spec is the desired state.
type Spec struct {
	Image string `json:"image"`
}

// Status is empty. A host reports nothing, so only its Node changes.
type Status struct{}

// NodeSpec is the desired state of a Node.
type NodeSpec struct {
	Image string `json:"image"`
}

// NodeStatus is the observed state of a Node.
type NodeStatus struct {
	// Phase is Booting or Ready.
	Phase string `json:"phase,omitempty"`
	// Image is the image that is booting or has booted.
	Image string `json:"image,omitempty"`
}

type (
	// Host is the kind that is reconciled.
	Host = object.Object[Spec, Status]
	// Node is the kind of a host's child.
	Node = object.Object[NodeSpec, NodeStatus]
)

// reconciler reconciles hosts.
type reconciler struct {
	child.Keeper
	// booting holds the time at which this process first saw each Node booting. The
	// controller has only one worker, so the map needs no lock.
	booting map[types.UID]time.Time
}

// Setup adds the controller to a manager. The controller has no bug, so there is nothing to
// repair.
func Setup(mgr ctrl.Manager, _ bool) error {
	object.Register[Spec, Status]("Host")
	object.RegisterIn[NodeSpec, NodeStatus](object.Example, "Node")
	r := &reconciler{Keeper: child.NewKeeper(mgr), booting: map[types.UID]time.Time{}}
	return ctrl.NewControllerManagedBy(mgr).Named("n1").For(&Host{}).Owns(&Node{}).Complete(r)
}

// Reconcile creates the Node of a host, and boots it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var host Host
	if err := r.Live.Get(ctx, req.NamespacedName, &host); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !host.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	node := &Node{}
	node.Namespace, node.Name = host.Namespace, host.Name
	there, err := r.Ensure(ctx, &host, node, func() {
		node.Spec.Image = host.Spec.Image
		r.Own(&host, node)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	left, err := r.boot(ctx, node)
	return ctrl.Result{RequeueAfter: left}, err
}

// boot boots a Node, and returns the time that the boot still needs.
func (r *reconciler) boot(ctx context.Context, node *Node) (time.Duration, error) {
	booting, ready := NodeStatus{Phase: "Booting", Image: node.Spec.Image}, NodeStatus{Phase: "Ready", Image: node.Spec.Image}
	switch node.Status {
	case ready:
		delete(r.booting, node.UID)
		return 0, nil
	case booting:
	default:
		r.booting[node.UID] = time.Now()
		node.Status = booting
		return boot, r.Status().Update(ctx, node)
	}
	since, known := r.booting[node.UID]
	if !known { // the process was restarted, and the Node boots again
		since = time.Now()
		r.booting[node.UID] = since
	}
	if left := boot - time.Since(since); left > 0 {
		return left, nil
	}
	node.Status = ready
	return 0, r.Status().Update(ctx, node)
}
