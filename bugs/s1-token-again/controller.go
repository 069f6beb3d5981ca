// Package s1 reconciles clusters, whose members join with a token that the controller generates and
// reports in the status. Class S1: the controller generates a new value in place of a value that is
// already in use.
package s1

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Members int `json:"members"`
}

// Status is the observed state. The members join with the token.
type Status struct {
	Members   int    `json:"members,omitempty"`
	JoinToken string `json:"joinToken,omitempty"`
}

// Cluster is the kind that is reconciled.
type Cluster = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in where they look for the token.
type reconciler struct {
	client.Client
	live  client.Reader
	token func(r *reconciler, cluster *Cluster) string

	mu     sync.Mutex
	tokens map[types.UID]string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Cluster")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), token: fromMemory, tokens: map[types.UID]string{}}
	if repaired {
		r.token = fromStatus
	}
	return ctrl.NewControllerManagedBy(mgr).Named("s1").For(&Cluster{}).Complete(r)
}

// Reconcile reports the members and the token. The update fails if another update came first.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster Cluster
	if err := r.live.Get(ctx, req.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	want := Status{Members: cluster.Spec.Members, JoinToken: r.token(r, &cluster)}
	if cluster.Status == want {
		return ctrl.Result{}, nil
	}
	cluster.Status = want
	if err := client.IgnoreNotFound(r.Status().Update(ctx, &cluster)); err != nil {
		return ctrl.Result{}, fmt.Errorf("reporting the token: %w", err)
	}
	return ctrl.Result{}, nil
}

// generate returns a new token.
func generate() string { return rand.Text() }
