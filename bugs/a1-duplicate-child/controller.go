// Package a1 reconciles rollouts, and creates one AnalysisRun for each version of a
// rollout. Class A1: an object that was just created is not in the cache yet, so it is
// created again.
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

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// recheckAfter is the delay after which a rollout is reconciled once more if its run was not
// found. The delayed reconcile replaces the events that the other parts of a real rollout would cause.
const recheckAfter = 50 * time.Millisecond

// Spec is the desired state.
type Spec struct {
	Version string `json:"version"`
}

// Status is the observed state.
type Status struct {
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase,omitempty"`
}

// RunSpec names the version to analyze.
type RunSpec struct {
	Version string `json:"version"`
}

// RunStatus is empty.
type RunStatus struct{}

type (
	// Rollout is the kind that is reconciled.
	Rollout = object.Object[Spec, Status]
	// Run is the kind of a rollout's children.
	Run     = object.Object[RunSpec, RunStatus]
	runList = object.List[RunSpec, RunStatus]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they create the run.
type reconciler struct {
	child.Keeper
	ensureRun func(ctx context.Context, k child.Keeper, rollout *Rollout, runs []Run) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Rollout")
	object.Register[RunSpec, RunStatus]("AnalysisRun")
	r := &reconciler{Keeper: child.NewKeeper(mgr), ensureRun: anyName}
	if repaired {
		r.ensureRun = fixedName
	}
	return ctrl.NewControllerManagedBy(mgr).Named("a1").
		For(&Rollout{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Run{}).
		Complete(r)
}

// Reconcile creates a run for the current version, and deletes the runs of other
// versions.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rollout Rollout
	// The rollout is read from the server. When the event of a child arrives, the cache may not
	// have the last status update yet. An update based on an older status would fail with a
	// conflict, and the retry would replace the reconcile that recheckAfter delays.
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

// runs returns those runs of the rollout that are in the cache.
func (r *reconciler) runs(ctx context.Context, rollout *Rollout) ([]Run, error) {
	var all runList
	if err := r.List(ctx, &all, client.InNamespace(rollout.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the runs of %s: %w", rollout.Name, err)
	}
	var own []Run
	for _, run := range all.Items {
		if child.OwnedBy(rollout)(&run) {
			own = append(own, run)
		}
	}
	return own, nil
}

// prune deletes the runs of earlier versions.
func (r *reconciler) prune(ctx context.Context, rollout *Rollout, runs []Run) error {
	for _, run := range runs {
		if strings.HasPrefix(run.Name, runName(rollout)) || !run.DeletionTimestamp.IsZero() {
			continue
		}
		if current, err := r.Current(ctx, rollout); err != nil || !current {
			return err
		}
		if _, err := r.Remove(ctx, &run, child.OwnedBy(rollout)); err != nil {
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
	return ctrl.Result{RequeueAfter: recheckAfter}, nil
}

func runName(rollout *Rollout) string { return rollout.Name + "-" + rollout.Spec.Version }

// describe returns a function that fills in the run as the rollout requires.
func describe(k child.Keeper, rollout *Rollout, run *Run) func() {
	return func() {
		run.Spec.Version = rollout.Spec.Version
		k.Own(rollout, run)
	}
}
