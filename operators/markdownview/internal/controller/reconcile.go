// Package controller makes a site of every MarkdownView, and says in its status
// how far it is.
//
// A reconciliation gathers what is asked for and what there is, has the pure
// rollout decide, applies what differs, and reports.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/refs"
)

const (
	// refusalRetry is after how long something refused is tried again: who lifts a
	// quota or grants a right does not tell.
	refusalRetry = time.Minute
	// raceRetry is for a child that changed between a look and a write.
	raceRetry = 200 * time.Millisecond
)

// Reconciler makes sites.
type Reconciler struct {
	// client reads from the cache; reader from the API server.
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	refs     *refs.Watcher
	routes   *routes
	readings readings
	options  Options
	clock    clock.PassiveClock
}

// +kubebuilder:rbac:groups=view.koboshi.dev,resources=markdownviews,verbs=get;list;watch
// +kubebuilder:rbac:groups=view.koboshi.dev,resources=markdownviews/status,verbs=patch
// +kubebuilder:rbac:groups=view.koboshi.dev,resources=markdownviews/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies;ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one site a step nearer to what is asked for. Every step ends
// in an event of an object it waits for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var view viewv1.MarkdownView
	err := r.client.Get(ctx, req.NamespacedName, &view)
	if apierrors.IsNotFound(err) || err == nil && view.DeletionTimestamp != nil {
		// What it owns goes by garbage collection.
		r.refs.Want(req.NamespacedName)
		r.readings.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the MarkdownView: %w", err)
	}
	p := &pass{view: &view}
	if err := r.gather(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	r.apply(ctx, p)
	if p.gone {
		return ctrl.Result{}, nil // the deletion is an event
	}
	if err := r.report(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.again}, errors.Join(p.retry...)
}

// pass is what one reconciliation knows.
type pass struct {
	view *viewv1.MarkdownView
	// wanted is what the spec asks for; nil when it cannot be made.
	wanted *wanted
	observed
	// troubles are why something that was asked for cannot be done.
	troubles []trouble
	// again is after how long to look again without an event; 0 for never.
	again time.Duration
	// retry are errors that may go away by themselves.
	retry []error
	// exists and gone are what the API server has said of the MarkdownView, when it
	// was asked.
	exists, gone bool
}

// trouble is something for the condition Degraded.
type trouble struct {
	reason, message string
	// blocks says that the site's content cannot be brought up to date.
	blocks bool
}

func (p *pass) trouble(t trouble) { p.troubles = append(p.troubles, t) }

// lookAgain asks for another reconciliation, at the latest after a time.
func (p *pass) lookAgain(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

// failed takes note of an error of ensure, and tells whether there was one.
func (p *pass) failed(ctx context.Context, err error, blocks bool) bool {
	if err == nil {
		return false
	}
	var c *childError
	switch {
	case errors.Is(err, errGone):
		return true
	case errors.Is(err, errRace):
		logr.FromContextOrDiscard(ctx).V(1).Info("a child changed meanwhile, looking again", "error", err.Error())
		p.lookAgain(raceRetry)
		return true
	case errors.As(err, &c) && c.foreign:
		p.trouble(trouble{viewv1.ReasonForeignObject, c.Error(), blocks})
		p.foreign = append(p.foreign, foreignRef(p.view.Namespace, c))
		return true
	case isRefusal(err):
		p.lookAgain(refusalRetry)
	default:
		p.retry = append(p.retry, err)
	}
	p.trouble(trouble{viewv1.ReasonChildRejected, err.Error(), blocks})
	return true
}
