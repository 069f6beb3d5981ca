// Package r2 has a correct controller that names the child of a resource after a hash of the
// annotations of this resource, as do controllers that replace an object instead of changing
// it.
//
// If a checker annotates the resource to provoke a conflict, the controller rightly replaces the
// child, and the final state differs from the final state of a run without a fault.
package r2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
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
	// ConfigMap is the name of the current child.
	ConfigMap string `json:"configMap,omitempty"`
}

// Banner is a text that is decorated according to annotations.
type Banner = object.Object[Spec, Status]

// bannerLabel holds the name of the Banner to which a ConfigMap belongs.
const bannerLabel = "bugs.koboshi.dev/banner"

type reconciler struct{ child.Keeper }

// Setup adds the controller to a manager. The controller has no bug, so there is nothing to
// repair.
func Setup(mgr ctrl.Manager, _ bool) error {
	object.Register[Spec, Status]("Banner")
	r := &reconciler{child.NewKeeper(mgr)}
	return ctrl.NewControllerManagedBy(mgr).Named("r2").For(&Banner{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile creates the child for the current annotations, records its name, and deletes
// the earlier children.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b Banner
	if err := r.Live.Get(ctx, req.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	name, err := childName(&b)
	if err != nil {
		return ctrl.Result{}, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	there, err := r.Ensure(ctx, &b, cm, func() {
		cm.Labels = map[string]string{bannerLabel: b.Name}
		cm.Data = map[string]string{"text": b.Spec.Text}
		r.Own(&b, cm)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	if b.Status.ConfigMap != name {
		b.Status.ConfigMap = name
		if err := r.Status().Update(ctx, &b); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.removeOthers(ctx, &b, name)
}

func childName(b *Banner) (string, error) {
	annotations, err := json.Marshal(b.Annotations) // with sorted keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(annotations)
	return fmt.Sprintf("%s-%s", b.Name, hex.EncodeToString(sum[:4])), nil
}

// removeOthers deletes the children that the Banner had with earlier annotations.
func (r *reconciler) removeOthers(ctx context.Context, b *Banner, current string) error {
	var all corev1.ConfigMapList
	if err := r.Live.List(ctx, &all, client.InNamespace(b.Namespace), client.MatchingLabels{bannerLabel: b.Name}); err != nil {
		return err
	}
	for i := range all.Items {
		if all.Items[i].Name == current {
			continue
		}
		if _, err := r.Remove(ctx, &all.Items[i], child.OwnedBy(b)); err != nil {
			return err
		}
	}
	return nil
}
