// Package i7 has the bug of class I7: a creation that fails because the controller's own webhook is
// restarting is recorded as a permanent failure.
package i7

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Image string `json:"image,omitempty"`
}

// Status is the observed state.
type Status struct {
	Phase      string `json:"phase,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// Pipeline runs a Task.
type Pipeline = object.Object[Spec, Status]

// TaskSpec is the work of a Task.
type TaskSpec struct {
	Image string `json:"image,omitempty"`
}

// Task is the child of a Pipeline. The controller's webhook validates it.
type Task = object.Object[TaskSpec, struct{}]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller and its webhook to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Pipeline")
	object.Register[TaskSpec, struct{}]("Task")
	handler := &validator{admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register("/validate-task", &admission.Webhook{Handler: handler})
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &limited{base}
	if repaired {
		r = &patient{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i7").For(&Pipeline{}).Owns(&Task{}).Complete(r)
}

// validator is the webhook of Task.
type validator struct{ admission.Decoder }

// Handle refuses a Task without an image.
func (v *validator) Handle(_ context.Context, req admission.Request) admission.Response {
	var task Task
	if err := v.Decode(req, &task); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if task.Spec.Image == "" {
		return admission.Denied("a Task needs an image")
	}
	return admission.Allowed("")
}

// get reads a Pipeline. It returns nil if there is nothing to do.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*Pipeline, error) {
	var p Pipeline
	if err := r.Live.Get(ctx, req.NamespacedName, &p); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return nil, nil // the garbage collector does the rest
	}
	if p.Status.Phase == "Failed" && p.Status.Generation == p.Generation {
		return nil, nil
	}
	return &p, nil
}

// errIncomplete reports a Task that is being deleted, or a Pipeline that has changed. An event follows.
var errIncomplete = errors.New("the Task is not ready yet")

func (r *reconciler) ensureTask(ctx context.Context, p *Pipeline) error {
	task := &Task{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	there, err := r.Ensure(ctx, p, task, func() {
		task.Spec.Image = p.Spec.Image
		r.Own(p, task)
	})
	if err == nil && !there {
		return errIncomplete
	}
	return err
}

// finish reports the result of an attempt. Any error but errIncomplete is returned, so that the
// Pipeline is reconciled again.
func (r *reconciler) finish(ctx context.Context, p *Pipeline, err error) error {
	if errors.Is(err, errIncomplete) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("running the Task: %w", err)
	}
	return r.report(ctx, p, "Running")
}

func (r *reconciler) report(ctx context.Context, p *Pipeline, phase string) error {
	want := Status{Phase: phase, Generation: p.Generation}
	if p.Status == want {
		return nil
	}
	p.Status = want
	return r.Status().Update(ctx, p)
}
