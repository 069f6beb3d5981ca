// Package x10 reconciles trawlers, each with a ConfigMap. Class X10: with a valid value, a resource never
// becomes ready, and its status does not say why.
package x10

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// defaultNets is the number of nets of a trawler that declares none.
const defaultNets = 1

// Spec is the desired state.
type Spec struct {
	Port string `json:"port"`
	Nets *int64 `json:"nets,omitempty"`
}

// Status is the observed state.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Trawler is the kind that is reconciled.
type Trawler = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// how many nets they expect.
type reconciler struct {
	child.Keeper
	expected func(Spec) int64
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Trawler")
	r := &reconciler{Keeper: child.NewKeeper(mgr), expected: declared}
	if repaired {
		r.expected = declaredOrDefault
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x10").
		For(&Trawler{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile writes the ConfigMap and reports whether it has the expected number of nets.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var trawler Trawler
	if err := r.Get(ctx, req.NamespacedName, &trawler); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = trawler.Namespace, trawler.Name
	there, err := r.Ensure(ctx, &trawler, m, func() {
		m.Data = map[string]string{"port": trawler.Spec.Port, "nets": strconv.FormatInt(declaredOrDefault(trawler.Spec), 10)}
		r.Own(&trawler, m)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &trawler, m.Data["nets"] == strconv.FormatInt(r.expected(trawler.Spec), 10))
}

// report writes the condition, if it differs.
func (r *reconciler) report(ctx context.Context, trawler *Trawler, ready bool) error {
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "ResourcesNotReady", Message: "The nets are not ready.", ObservedGeneration: trawler.Generation,
	}
	if ready {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "ResourcesReady", ""
	}
	before := trawler.DeepCopyObject()
	meta.SetStatusCondition(&trawler.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before, trawler) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Update(ctx, trawler))
}

// declaredOrDefault returns the number of nets that a trawler has.
func declaredOrDefault(spec Spec) int64 {
	if spec.Nets == nil {
		return defaultNets
	}
	return *spec.Nets
}
