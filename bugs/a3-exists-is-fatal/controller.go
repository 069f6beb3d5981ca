// Package a3 reconciles experiments, and creates a ReplicaSet for each. Class A3: the
// server answers that the ReplicaSet already exists, the cache answers that it does
// not, and the controller treats this as a permanent error.
package a3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// resync is the time after which an experiment that is not running is reconciled again.
const resync = 50 * time.Millisecond

// Spec is the desired state.
type Spec struct {
	Image string `json:"image"`
}

// Status is the observed state. An experiment in phase Error is not retried.
type Status struct {
	Image string `json:"image,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// SetSpec is the desired state of a ReplicaSet.
type SetSpec struct {
	Image string `json:"image"`
}

// SetStatus is empty.
type SetStatus struct{}

type (
	// Experiment is the kind that is reconciled.
	Experiment = object.Object[Spec, Status]
	// Set is the kind of an experiment's children.
	Set     = object.Object[SetSpec, SetStatus]
	setList = object.List[SetSpec, SetStatus]
)

// errFatal makes an experiment fail permanently.
var errFatal = errors.New("failed to create the replica set")

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they create the ReplicaSet.
type reconciler struct {
	child.Keeper
	ensure func(ctx context.Context, k child.Keeper, experiment *Experiment) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Experiment")
	object.Register[SetSpec, SetStatus]("ReplicaSet")
	r := &reconciler{Keeper: child.NewKeeper(mgr), ensure: askCache}
	if repaired {
		r.ensure = askServer
	}
	return ctrl.NewControllerManagedBy(mgr).Named("a3").
		For(&Experiment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Set{}).
		Complete(r)
}

// Reconcile creates the ReplicaSet, and reports the outcome in the status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var experiment Experiment
	// The experiment is read from the server. When the event of a child arrives, the
	// cache may not have the last status update yet. A reconcile that reads an older
	// status would replace the delayed reconcile in the queue.
	if err := r.Live.Get(ctx, req.NamespacedName, &experiment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if experiment.Status == (Status{Image: experiment.Spec.Image, Phase: "Error"}) {
		return ctrl.Result{}, nil
	}
	there, err := r.ensure(ctx, r.Keeper, &experiment)
	if err == nil {
		err = r.prune(ctx, &experiment)
	}
	switch {
	case errors.Is(err, errFatal):
		return r.report(ctx, &experiment, "Error")
	case err != nil:
		return ctrl.Result{}, err
	case there:
		return r.report(ctx, &experiment, "Running")
	}
	return r.report(ctx, &experiment, "Progressing")
}

// prune deletes the ReplicaSets of other images.
func (r *reconciler) prune(ctx context.Context, experiment *Experiment) error {
	var sets setList
	if err := r.List(ctx, &sets, client.InNamespace(experiment.Namespace)); err != nil {
		return fmt.Errorf("listing the replica sets of %s: %w", experiment.Name, err)
	}
	for _, set := range sets.Items {
		if !child.OwnedBy(experiment)(&set) || set.Name == setOf(experiment).Name || !set.DeletionTimestamp.IsZero() {
			continue
		}
		if current, err := r.Current(ctx, experiment); err != nil || !current {
			return err
		}
		if _, err := r.Remove(ctx, &set, child.OwnedBy(experiment)); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, experiment *Experiment, phase string) (ctrl.Result, error) {
	want := Status{Image: experiment.Spec.Image, Phase: phase}
	if experiment.Status == want {
		return ctrl.Result{}, nil
	}
	experiment.Status = want
	if err := r.Status().Update(ctx, experiment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if phase == "Progressing" {
		return ctrl.Result{RequeueAfter: resync}, nil
	}
	return ctrl.Result{}, nil
}

// describe returns a function that fills in the ReplicaSet as the experiment requires.
func describe(k child.Keeper, experiment *Experiment, set *Set) func() {
	return func() {
		set.Spec.Image = experiment.Spec.Image
		k.Own(experiment, set)
	}
}

// setOf returns a ReplicaSet with nothing but the name and namespace of the experiment's
// ReplicaSet. The name is different for each image.
func setOf(experiment *Experiment) *Set {
	set := &Set{}
	set.Namespace = experiment.Namespace
	set.Name = experiment.Name + "-" + strings.ReplaceAll(experiment.Spec.Image, ":", "-")
	return set
}
