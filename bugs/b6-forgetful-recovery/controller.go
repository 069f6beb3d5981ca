// Package b6 has the bug of class B6: the recovery from an interruption can itself not be interrupted.
package b6

import (
	"context"
	"crypto/rand"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Volume string `json:"volume,omitempty"`
}

// Status is the observed state.
type Status struct {
	// Phase is empty, Working or Done. Attempt is part of the name of the snapshot.
	Phase   string `json:"phase,omitempty"`
	Attempt string `json:"attempt,omitempty"`
}

// Backup takes a snapshot of a volume. A ConfigMap stands in for the snapshot.
type Backup = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in how
// they recover from an attempt that was interrupted.
type reconciler struct {
	child.Keeper
	recover func(context.Context, *reconciler, *Backup) error
	// own holds the attempts that this process has begun. It cannot know how far any other attempt has
	// got, so it starts again.
	own map[types.UID]string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Backup")
	r := &reconciler{Keeper: child.NewKeeper(mgr), recover: forgetFirst, own: map[types.UID]string{}}
	if repaired {
		r.recover = cleanUpFirst
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b6").For(&Backup{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile takes the snapshot, or restores it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b Backup
	if err := r.Live.Get(ctx, req.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	if b.Status.Phase == "Working" && r.own[b.UID] != b.Status.Attempt {
		if err := r.recover(ctx, r, &b); err != nil || b.Status.Phase != "" {
			return ctrl.Result{}, err
		}
	}
	if b.Status.Phase == "" {
		if err := r.begin(ctx, &b); err != nil {
			return ctrl.Result{}, err
		}
	}
	there, err := r.ensureSnapshot(ctx, &b)
	if err != nil || !there || b.Status.Phase == "Done" {
		return ctrl.Result{}, err
	}
	b.Status.Phase = "Done"
	return ctrl.Result{}, r.report(ctx, &b)
}

// begin announces an attempt.
func (r *reconciler) begin(ctx context.Context, b *Backup) error {
	b.Status = Status{Phase: "Working", Attempt: strings.ToLower(rand.Text()[:12])}
	r.own[b.UID] = b.Status.Attempt
	return r.report(ctx, b)
}

func snapshotOf(b *Backup, attempt string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-" + attempt}}
}

func (r *reconciler) ensureSnapshot(ctx context.Context, b *Backup) (bool, error) {
	snapshot := snapshotOf(b, b.Status.Attempt)
	return r.Ensure(ctx, b, snapshot, func() {
		snapshot.Data = map[string]string{"volume": b.Spec.Volume}
		r.Own(b, snapshot)
	})
}

// removeSnapshot removes the snapshot of an attempt, and reports whether it is gone.
func (r *reconciler) removeSnapshot(ctx context.Context, b *Backup, attempt string) (bool, error) {
	return r.Remove(ctx, snapshotOf(b, attempt), child.OwnedBy(b))
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, b *Backup) error {
	err := r.Status().Update(ctx, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
