// Package a1 is a rollout that is analysed once per version: an AnalysisRun is
// made for it. Class A1: what was just made is not in the cache yet, so it is made
// again.
package a1

import (
	"context"
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

// again is after how long a rollout is looked at again that has no run yet. It
// stands for the events of all the other things that a rollout is made of.
const again = 50 * time.Millisecond

// Spec is what is wanted.
type Spec struct {
	Version string `json:"version"`
}

// Status is how far it is.
type Status struct {
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase,omitempty"`
}

// RunSpec says what is analysed.
type RunSpec struct {
	Version string `json:"version"`
}

// RunStatus is empty.
type RunStatus struct{}

type (
	// Rollout is a kind that is reconciled.
	Rollout = object.Object[Spec, Status]
	// Run is a kind that is made for it.
	Run     = object.Object[RunSpec, RunStatus]
	runList = object.List[RunSpec, RunStatus]
)

// reconciler does what both twins do. They differ in how they make the run.
type reconciler struct {
	keep.Keeper
	ensureRun func(ctx context.Context, k keep.Keeper, rollout *Rollout, runs []Run) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Rollout")
	object.Register[RunSpec, RunStatus]("AnalysisRun")
	r := &reconciler{Keeper: keep.New(mgr), ensureRun: anyName}
	if repaired {
		r.ensureRun = fixedName
	}
	return ctrl.NewControllerManagedBy(mgr).Named("a1").
		For(&Rollout{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Run{}).
		Complete(r)
}

// Reconcile makes a run of the version that is wanted, and deletes those of others.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rollout Rollout
	// From the server: a child's event may be sooner than that of the status written
	// last, and it replaces the look that was to come after a pause.
	if err := r.Live.Get(ctx, req.NamespacedName, &rollout); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	runs, err := r.runs(ctx, &rollout)
	if err != nil {
		return ctrl.Result{}, err
	}
	there, err := r.ensureRun(ctx, r.Keeper, &rollout, runs)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.prune(ctx, &rollout, runs); err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, &rollout, there)
}

// runs are the rollout's runs that the cache knows.
func (r *reconciler) runs(ctx context.Context, rollout *Rollout) ([]Run, error) {
	var all runList
	if err := r.List(ctx, &all, client.InNamespace(rollout.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the runs of %s: %w", rollout.Name, err)
	}
	var own []Run
	for _, run := range all.Items {
		if keep.Owned(rollout, &run) {
			own = append(own, run)
		}
	}
	return own, nil
}

// prune deletes the runs of versions that are not wanted any more.
func (r *reconciler) prune(ctx context.Context, rollout *Rollout, runs []Run) error {
	for _, run := range runs {
		if strings.HasPrefix(run.Name, runName(rollout)) || !run.DeletionTimestamp.IsZero() {
			continue
		}
		if current, err := r.Current(ctx, rollout); err != nil || !current {
			return err
		}
		if err := r.Remove(ctx, &run); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, rollout *Rollout, there bool) (ctrl.Result, error) {
	want := Status{Version: rollout.Spec.Version, Phase: "Analyzing"}
	if there {
		want.Phase = "Analyzed"
	}
	if rollout.Status == want {
		return ctrl.Result{}, nil
	}
	rollout.Status = want
	if err := r.Status().Update(ctx, rollout); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if there {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

func runName(rollout *Rollout) string { return rollout.Name + "-" + rollout.Spec.Version }

// describe makes the run be as the rollout wants it.
func describe(k keep.Keeper, rollout *Rollout, run *Run) func() {
	return func() {
		run.Spec.Version = rollout.Spec.Version
		k.Own(rollout, run)
	}
}
