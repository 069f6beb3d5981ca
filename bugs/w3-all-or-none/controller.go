// Package w3 reconciles beacons, each with a ConfigMap, all in one pass. Class W3: a resource that is
// invalid keeps the controller from its work on the others.
package w3

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Depth int64 `json:"depth"`
	// Flash is the time between two flashes in seconds, such as "every 4".
	Flash string `json:"flash"`
}

// Status is the observed state.
type Status struct {
	Generation int64  `json:"generation,omitempty"`
	Problem    string `json:"problem,omitempty"`
}

// Beacon is the kind that is reconciled.
type Beacon = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// what they do after an error.
type reconciler struct {
	child.Keeper
	pass func(beacons []Beacon, handle func(*Beacon) error) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Beacon")
	r := &reconciler{Keeper: child.NewKeeper(mgr), pass: untilAnError}
	if repaired {
		r.pass = each
	}
	all := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: "all"}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("w3").Watches(&Beacon{}, all).Watches(&corev1.ConfigMap{}, all).Complete(r)
}

// Reconcile handles all beacons of a namespace, in the order of their names.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var list object.List[Spec, Status]
	if err := r.List(ctx, &list, client.InNamespace(req.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	slices.SortFunc(list.Items, func(a, b Beacon) int { return strings.Compare(a.Name, b.Name) })
	return ctrl.Result{}, r.pass(list.Items, func(beacon *Beacon) error { return r.handle(ctx, beacon) })
}

// handle writes the ConfigMap of a beacon, and reports the result in its status.
func (r *reconciler) handle(ctx context.Context, beacon *Beacon) error {
	seconds, err := secondsOf(beacon.Spec.Flash)
	if err != nil {
		return errors.Join(err, r.report(ctx, beacon, "invalid: "+err.Error()))
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = beacon.Namespace, beacon.Name
	there, err := r.Ensure(ctx, beacon, m, func() {
		m.Data = map[string]string{"depth": strconv.FormatInt(beacon.Spec.Depth, 10), "seconds": strconv.Itoa(seconds)}
		r.Own(beacon, m)
	})
	if err != nil || !there {
		return err
	}
	return r.report(ctx, beacon, "")
}

func secondsOf(flash string) (int, error) {
	number, found := strings.CutPrefix(flash, "every ")
	seconds, err := strconv.Atoi(number)
	if !found || err != nil {
		return 0, fmt.Errorf("the flash %q is not like \"every 4\"", flash)
	}
	return seconds, nil
}

// report writes the status, if it differs.
func (r *reconciler) report(ctx context.Context, beacon *Beacon, problem string) error {
	status := Status{Generation: beacon.Generation, Problem: problem}
	if beacon.Status == status {
		return nil
	}
	beacon.Status = status
	return client.IgnoreNotFound(r.Status().Update(ctx, beacon))
}
