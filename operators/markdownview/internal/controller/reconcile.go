// Package controller reconciles MarkdownViews into sites, and reports progress in their
// status.
//
// A reconciliation gathers the desired and the existing state, computes the next step with
// the pure type rollout, applies the differences, and reports.
package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	// refusalRetry is the delay before a refused request is retried. Such a retry is needed because
	// a raised quota or a granted right triggers no event.
	refusalRetry = time.Minute
	// raceRetry is the delay after a child changed between a read and a write.
	raceRetry = 200 * time.Millisecond
)

// Reconciler brings sites to the state that their specs ask for.
type Reconciler struct {
	// client reads from the cache; reader reads from the API server.
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

// Reconcile brings one site a step nearer to its spec. Every step causes an event that
// triggers the next step.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var view viewv1.MarkdownView
	err := r.client.Get(ctx, req.NamespacedName, &view)
	if apierrors.IsNotFound(err) || err == nil && view.DeletionTimestamp != nil {
		// The garbage collector deletes the children of a deleted site.
		r.refs.Want(req.NamespacedName)
		r.readings.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the MarkdownView: %w", err)
	}
	p := r.begin(&view)
	r.gather(ctx, p)
	if !p.unobserved {
		r.apply(ctx, p)
	}
	if p.gone {
		return ctrl.Result{}, nil // the deletion triggers a reconciliation
	}
	if err := r.report(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	return p.result()
}

// pass holds the state of one reconciliation.
type pass struct {
	view *viewv1.MarkdownView
	// permitted is the MarkdownView without the settings that the platform team does
	// not allow. The children are made from this MarkdownView.
	permitted *viewv1.MarkdownView
	// wanted is the site that the spec describes; nil if it cannot be made.
	wanted *wanted
	observed
	// troubles are the reasons why something cannot be done.
	troubles []trouble
	// again is the delay after which a reconciliation runs even without an event; 0 means
	// that only events trigger it.
	again time.Duration
	// retry holds errors that may go away by themselves.
	retry []error
	// unobserved reports whether reading the children failed. While it is true, no children
	// are written, and the status keeps their last known state.
	unobserved bool
	// exists and gone record whether the MarkdownView still exists, according to the API
	// server. Both fields are false until the API server has been queried.
	exists, gone bool
}

// begin starts a pass. If the spec has settings that are not allowed, begin reports them,
// and the site is served without them and can still be edited.
func (r *Reconciler) begin(view *viewv1.MarkdownView) *pass {
	p := &pass{view: view, permitted: view}
	denied := r.options.Overrides.Denied(&view.Spec)
	if len(denied) == 0 {
		return p
	}
	p.permitted = view.DeepCopy()
	r.options.Overrides.Strip(&p.permitted.Spec)
	var names []string
	for _, d := range denied {
		names = append(names, d.String())
	}
	p.trouble(trouble{reason: viewv1.ReasonOverrideNotAllowed, message: fmt.Sprintf(
		"the operator ignores settings that it does not allow (%s): remove them, or ask the administrator to add them to --author-overrides", strings.Join(names, ", "))})
	return p
}

// trouble is a reason for the condition Degraded.
type trouble struct {
	reason, message string
	// blocks reports whether the content cannot be brought up to date.
	blocks bool
	// terminal reports whether waiting is useless because a user must change something.
	terminal bool
}

// isTerminal reports whether only a person can resolve the trouble. Other troubles may
// disappear after a retry, or after another object has changed.
func (t trouble) isTerminal() bool {
	switch t.reason {
	case viewv1.ReasonContentInvalid, viewv1.ReasonContentTooLarge, viewv1.ReasonImageNotAllowed,
		viewv1.ReasonOverrideNotAllowed, viewv1.ReasonForeignObject, viewv1.ReasonStalled:
		return true
	default:
		return t.terminal
	}
}

func (p *pass) trouble(t trouble) { p.troubles = append(p.troubles, t) }

// lookAgain requests another reconciliation after at most this time.
func (p *pass) lookAgain(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

// result requests the next reconciliation by returning either an error or a time, because the
// queue backs off after an error and would ignore the time.
func (p *pass) result() (ctrl.Result, error) {
	if err := errors.Join(p.retry...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.again}, nil
}

// readFailed records that something could not be read.
func (p *pass) readFailed(err error, blocks bool) {
	p.trouble(trouble{reason: viewv1.ReasonReadFailed, message: err.Error(), blocks: blocks})
	if isRefusal(err) {
		p.lookAgain(refusalRetry)
		return
	}
	p.retry = append(p.retry, err)
}

// failed records an error of ensure, and reports whether there was one.
func (p *pass) failed(ctx context.Context, err error, blocks bool) bool {
	if err == nil {
		return false
	}
	var c *childError
	switch {
	case errors.Is(err, errGone):
		return true
	case errors.Is(err, errRace):
		logr.FromContextOrDiscard(ctx).V(1).Info("a child changed in the meantime, reconciling again", "error", err.Error())
		p.lookAgain(raceRetry)
		return true
	case errors.As(err, &c) && c.foreign:
		p.trouble(trouble{reason: viewv1.ReasonForeignObject, message: c.Error(), blocks: blocks})
		p.foreign = append(p.foreign, foreignRef(p.view.Namespace, c))
		return true
	case isRefusal(err):
		p.lookAgain(refusalRetry)
	default:
		p.retry = append(p.retry, err)
	}
	// An invalid value stays invalid, but a quota can be raised and a right granted.
	p.trouble(trouble{reason: viewv1.ReasonChildRejected, message: err.Error(), blocks: blocks, terminal: apierrors.IsInvalid(err)})
	return true
}
