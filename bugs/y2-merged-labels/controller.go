// Package y2 reconciles notes, each with a ConfigMap that has the text and the labels of the note. Class
// Y2: the state depends on the declarations before the last one.
package y2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Text   string            `json:"text"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Status is the observed state.
type Status struct {
	Ready bool `json:"ready,omitempty"`
}

// Note is the kind that is reconciled.
type Note = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in how
// they set labels.
type reconciler struct {
	child.Keeper
	label func(m *corev1.ConfigMap, labels map[string]string)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Note")
	r := &reconciler{Keeper: child.NewKeeper(mgr), label: merge}
	if repaired {
		r.label = replace
	}
	return ctrl.NewControllerManagedBy(mgr).Named("y2").For(&Note{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile writes the ConfigMap of a note.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var note Note
	if err := r.Live.Get(ctx, req.NamespacedName, &note); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !note.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: note.Namespace, Name: note.Name}}
	there, err := r.Ensure(ctx, &note, m, func() {
		m.Data = map[string]string{"text": note.Spec.Text}
		r.label(m, note.Spec.Labels)
		r.Own(&note, m)
	})
	if err != nil || !there || note.Status.Ready {
		return ctrl.Result{}, err
	}
	note.Status.Ready = true
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &note))
}
