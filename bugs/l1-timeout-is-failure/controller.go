// Package l1 has the bug of class L1: a write without a response is treated as a write
// that did not happen.
package l1

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Domain string `json:"domain,omitempty"`
}

// Status is the observed state.
type Status struct {
	Domain   string `json:"domain,omitempty"`
	Revision int    `json:"revision,omitempty"`
	Request  string `json:"request,omitempty"`
}

// Certificate is a certificate that is issued through requests, one for each revision.
type Certificate = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
	// request creates the request of the next revision.
	request func(ctx context.Context, c *Certificate) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Certificate")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.request = r.nextThatWorks
	if repaired {
		r.request = r.next
	}
	return ctrl.NewControllerManagedBy(mgr).Named("l1").For(&Certificate{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile requests a certificate, and issues it when there is exactly one request.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var c Certificate
	if err := r.Live.Get(ctx, req.NamespacedName, &c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	if c.Status.Domain == c.Spec.Domain {
		return ctrl.Result{}, r.keep(ctx, &c)
	}
	pending, err := r.requests(ctx, &c)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch len(pending) {
	case 0:
		return ctrl.Result{}, r.request(ctx, &c)
	case 1:
		return ctrl.Result{}, r.issue(ctx, &c, &pending[0])
	}
	ctrl.LoggerFrom(ctx).Info("there are multiple requests for the next revision; delete all but one", "requests", len(pending))
	return ctrl.Result{}, nil
}

// requests returns the requests for the desired domain.
func (r *reconciler) requests(ctx context.Context, c *Certificate) ([]corev1.ConfigMap, error) {
	var all corev1.ConfigMapList
	if err := r.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	var pending []corev1.ConfigMap
	for _, o := range all.Items {
		if child.OwnedBy(c)(&o) && o.Data["domain"] == c.Spec.Domain && o.DeletionTimestamp.IsZero() {
			pending = append(pending, o)
		}
	}
	return pending, nil
}

func (r *reconciler) issue(ctx context.Context, c *Certificate, request *corev1.ConfigMap) error {
	var revision int
	if _, err := fmt.Sscan(request.Data["revision"], &revision); err != nil {
		return fmt.Errorf("reading the revision of the request %s: %w", request.Name, err)
	}
	c.Status = Status{Domain: c.Spec.Domain, Revision: revision, Request: request.Name}
	return r.Status().Update(ctx, c)
}

// keep maintains the request of the issued certificate, and deletes the previous request.
func (r *reconciler) keep(ctx context.Context, c *Certificate) error {
	current := newRequest(c, c.Status.Revision)
	_, err := r.Ensure(ctx, c, current, func() {
		current.Data = newRequest(c, c.Status.Revision).Data
		r.Own(c, current)
	})
	if err != nil || c.Status.Revision == 1 {
		return err
	}
	_, err = r.Remove(ctx, newRequest(c, c.Status.Revision-1), child.OwnedBy(c))
	return err
}

func (r *reconciler) create(ctx context.Context, c *Certificate, revision int) error {
	o := newRequest(c, revision)
	if err := controllerutil.SetControllerReference(c, o, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, o)
}

func newRequest(c *Certificate, revision int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, revision)},
		Data:       map[string]string{"domain": c.Spec.Domain, "revision": fmt.Sprint(revision)},
	}
}
