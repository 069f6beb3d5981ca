// Package n1 is a correct controller whose children are of a kind named Node, in the
// group example.com. It reconciles racks, and creates Nodes that take a while to boot.
//
// A checker that mistakes these for the Nodes of Kubernetes, whose heartbeats mean
// nothing, sees a world at rest while a Node is still booting.
package n1

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// boot is the time that a Node takes to boot.
const boot = 250 * time.Millisecond

// Spec is the desired state.
type Spec struct {
	Nodes int    `json:"nodes"`
	Image string `json:"image"`
}

// Status is empty: a rack reports nothing, so only its Nodes change.
type Status struct{}

// NodeSpec is the desired state of a Node.
type NodeSpec struct {
	Image string `json:"image"`
}

// NodeStatus is the observed state of a Node.
type NodeStatus struct {
	// Phase is Booting or Ready.
	Phase string `json:"phase,omitempty"`
	// Image is the one that the Node has booted.
	Image string `json:"image,omitempty"`
}

type (
	// Rack is the kind that is reconciled.
	Rack = object.Object[Spec, Status]
	// Node is the kind of its children.
	Node     = object.Object[NodeSpec, NodeStatus]
	nodeList = object.List[NodeSpec, NodeStatus]
)

// reconciler reconciles racks.
type reconciler struct {
	child.Keeper
	// booting has the time at which this process first saw each Node booting. There is
	// only one worker, so it needs no lock.
	booting map[types.UID]time.Time
}

// Setup adds the controller to a manager. It has no bug, so there is nothing to repair.
func Setup(mgr ctrl.Manager, _ bool) error {
	object.Register[Spec, Status]("Rack")
	object.RegisterIn[NodeSpec, NodeStatus](object.Example, "Node")
	r := &reconciler{Keeper: child.NewKeeper(mgr), booting: map[types.UID]time.Time{}}
	return ctrl.NewControllerManagedBy(mgr).Named("n1").For(&Rack{}).Owns(&Node{}).Complete(r)
}

// Reconcile creates the Nodes of a rack, deletes those that are surplus, and boots each
// of them.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rack Rack
	if err := r.Live.Get(ctx, req.NamespacedName, &rack); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !rack.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	if err := r.prune(ctx, &rack); err != nil {
		return ctrl.Result{}, err
	}
	var again time.Duration
	for i := range rack.Spec.Nodes {
		left, err := r.ensure(ctx, &rack, i)
		if err != nil {
			return ctrl.Result{}, err
		}
		again = max(again, left)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// ensure creates a Node and boots it. It returns how much longer that takes.
func (r *reconciler) ensure(ctx context.Context, rack *Rack, i int) (time.Duration, error) {
	node := &Node{}
	node.Namespace, node.Name = rack.Namespace, fmt.Sprintf("%s-%d", rack.Name, i)
	there, err := r.Ensure(ctx, rack, node, func() {
		node.Spec.Image = rack.Spec.Image
		r.Own(rack, node)
	})
	if err != nil || !there || node.Status == (NodeStatus{Phase: "Ready", Image: node.Spec.Image}) {
		delete(r.booting, node.UID)
		return 0, err
	}
	if want := (NodeStatus{Phase: "Booting", Image: node.Spec.Image}); node.Status != want {
		r.booting[node.UID] = time.Now()
		node.Status = want
		return boot, r.Status().Update(ctx, node)
	}
	since, known := r.booting[node.UID]
	if !known { // the process was restarted, and so is the Node
		since = time.Now()
		r.booting[node.UID] = since
	}
	if left := boot - time.Since(since); left > 0 {
		return left, nil
	}
	node.Status.Phase = "Ready"
	return 0, r.Status().Update(ctx, node)
}

// prune deletes the surplus Nodes.
func (r *reconciler) prune(ctx context.Context, rack *Rack) error {
	var all nodeList
	if err := r.List(ctx, &all, client.InNamespace(rack.Namespace)); err != nil {
		return fmt.Errorf("listing the nodes of %s: %w", rack.Name, err)
	}
	for _, node := range all.Items {
		i, err := strconv.Atoi(strings.TrimPrefix(node.Name, rack.Name+"-"))
		if !child.OwnedBy(rack)(&node) || err == nil && i < rack.Spec.Nodes {
			continue
		}
		if current, err := r.Current(ctx, rack); err != nil || !current {
			return err
		}
		if _, err := r.Remove(ctx, &node, child.OwnedBy(rack)); err != nil {
			return err
		}
	}
	return nil
}
