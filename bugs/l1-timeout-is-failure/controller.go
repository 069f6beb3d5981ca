// Package l1 is class L1: a write whose answer does not come is taken for one that
// did not happen.
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

// Spec is what a person wants.
type Spec struct {
	Domain string `json:"domain,omitempty"`
}

// Status is what there is.
type Status struct {
	Domain   string `json:"domain,omitempty"`
	Revision int    `json:"revision,omitempty"`
	Request  string `json:"request,omitempty"`
}

// Certificate is issued by way of a request, one for each revision.
type Certificate = object.Object[Spec, Status]

type reconciler struct {
	client.Client
	live client.Reader
	// request creates the request of the next revision.
	request func(ctx context.Context, c *Certificate) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Certificate")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.request = r.nextThatWorks
	if repaired {
		r.request = r.next
	}
	return ctrl.NewControllerManagedBy(mgr).Named("l1").For(&Certificate{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile asks for a certificate, and issues it when there is exactly one request.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var c Certificate
	if err := r.live.Get(ctx, req.NamespacedName, &c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector has the rest
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

// requests are those for the domain that is wanted.
func (r *reconciler) requests(ctx context.Context, c *Certificate) ([]corev1.ConfigMap, error) {
	var all corev1.ConfigMapList
	if err := r.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	var pending []corev1.ConfigMap
	for _, o := range all.Items {
		if child.OwnedBy(c.UID)(&o) && o.Data["domain"] == c.Spec.Domain && o.DeletionTimestamp.IsZero() {
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

// keep keeps the request of the certificate that was issued, and no older ones.
func (r *reconciler) keep(ctx context.Context, c *Certificate) error {
	current := newRequest(c, c.Status.Revision)
	err := child.Ensure(ctx, r.Client, current, func() error {
		current.Data = newRequest(c, c.Status.Revision).Data
		return controllerutil.SetControllerReference(c, current, r.Scheme())
	})
	if err != nil || c.Status.Revision == 1 {
		return err
	}
	_, err = child.Remove(ctx, r.Client, r.live, newRequest(c, c.Status.Revision-1), child.OwnedBy(c.UID))
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
