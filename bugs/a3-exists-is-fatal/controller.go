// Package a3 is an experiment, for which a ReplicaSet is made. Class A3: the server
// says that it exists already, the cache says that it does not, and that is taken
// for an error that stays.
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

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// resync is after how long an experiment is looked at again that is not running.
const resync = 50 * time.Millisecond

// Spec is what is wanted.
type Spec struct {
	Image string `json:"image"`
}

// Status is how far it is. Of an experiment in Error nothing more is expected.
type Status struct {
	Image string `json:"image,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// SetSpec is what a ReplicaSet wants.
type SetSpec struct {
	Image string `json:"image"`
}

// SetStatus is empty.
type SetStatus struct{}

type (
	// Experiment is a kind that is reconciled.
	Experiment = object.Object[Spec, Status]
	// Set is a kind that is made for it.
	Set     = object.Object[SetSpec, SetStatus]
	setList = object.List[SetSpec, SetStatus]
)

// errFatal ends an experiment.
var errFatal = errors.New("failed to create the replica set")

// reconciler does what both twins do. They differ in how they make the ReplicaSet.
type reconciler struct {
	keep.Keeper
	ensure func(ctx context.Context, k keep.Keeper, experiment *Experiment) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Experiment")
	object.Register[SetSpec, SetStatus]("ReplicaSet")
	r := &reconciler{Keeper: keep.New(mgr), ensure: askCache}
	if repaired {
		r.ensure = askServer
	}
	return ctrl.NewControllerManagedBy(mgr).Named("a3").
		For(&Experiment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Set{}).
		Complete(r)
}

// Reconcile makes the ReplicaSet, and says in the status what came of it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var experiment Experiment
	// From the server: a child's event may be sooner than that of the status written
	// last, and it replaces the look that was to come after a pause.
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
		if !keep.Owned(experiment, &set) || set.Name == setOf(experiment).Name || !set.DeletionTimestamp.IsZero() {
			continue
		}
		if current, err := r.Current(ctx, experiment); err != nil || !current {
			return err
		}
		if err := r.Remove(ctx, &set); err != nil {
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

// describe makes the ReplicaSet be as the experiment wants it.
func describe(k keep.Keeper, experiment *Experiment, set *Set) func() {
	return func() {
		set.Spec.Image = experiment.Spec.Image
		k.Own(experiment, set)
	}
}

// setOf is the ReplicaSet that the experiment wants; it has another name for each
// image.
func setOf(experiment *Experiment) *Set {
	set := &Set{}
	set.Namespace = experiment.Namespace
	set.Name = experiment.Name + "-" + strings.ReplaceAll(experiment.Spec.Image, ":", "-")
	return set
}
