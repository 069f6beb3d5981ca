package controller

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/content"
)

const (
	// maxMessage is the maximum length of a message, in bytes.
	maxMessage = 1000
	// maxProblems is the maximum number of listed problems.
	maxProblems = 50
)

// report writes the status if it changed, and emits Events for the changes.
func (r *Reconciler) report(ctx context.Context, p *pass) error {
	r.watchNames(p, content.Names(&p.view.Spec))
	before := p.view
	after := before.DeepCopy()
	r.fill(ctx, p, &after.Status)
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	err := r.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		// Another client wrote first, so the object is newer than the one that was read.
		p.lookAgain(raceRetry)
		return nil
	}
	if apierrors.IsNotFound(err) {
		return nil // the deletion triggers a reconciliation
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	r.announce(before, after)
	return nil
}

// fill computes the status.
func (r *Reconciler) fill(ctx context.Context, p *pass, s *viewv1.MarkdownViewStatus) {
	s.ObservedGeneration = p.view.Generation
	if p.unobserved {
		r.set(p, s, ready(p), degraded(p), stalled(p))
		return
	}
	ro := p.rollout
	s.URL = children.URL(p.view)
	s.Selector = children.Selector(p.view.Name).String()
	s.Replicas = p.replicas
	s.ReadyReplicas = 0
	if ro.desired != "" && ro.selected == ro.desired {
		s.ReadyReplicas = ro.viewers[ro.desired].ready
	}
	if ro.selected != "" {
		s.ContentHash = p.contents[ro.selected]
	}
	if p.wanted != nil {
		s.Pages = int32(p.wanted.reading.pages)
		s.ProblemCount, s.Problems = int32(p.wanted.reading.count), problems(p.wanted.reading)
	}
	r.stall(ctx, p)
	r.set(p, s, available(p), ready(p), degraded(p), stalled(p))
}

// set writes conditions into the status.
func (r *Reconciler) set(p *pass, s *viewv1.MarkdownViewStatus, conditions ...metav1.Condition) {
	for _, c := range conditions {
		c.ObservedGeneration = p.view.Generation
		c.Message = bounded(c.Message)
		c.LastTransitionTime = metav1.NewTime(r.clock.Now())
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

func problems(read reading) []viewv1.PageProblem {
	var list []viewv1.PageProblem
	for _, p := range read.problems {
		list = append(list, viewv1.PageProblem{Path: p.Path, Line: int32(p.Line), Message: bounded(p.Message)})
	}
	return list
}

func condition(kind string, status bool, reason, format string, args ...any) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// available returns the condition Available: whether any viewer serves the site.
func available(p *pass) metav1.Condition {
	switch {
	case p.view.Spec.Suspend:
		return condition(viewv1.ConditionAvailable, false, viewv1.ReasonSuspended, "spec.suspend is set")
	case p.rollout.viewers[p.rollout.selected].ready > 0:
		return condition(viewv1.ConditionAvailable, true, viewv1.ReasonOK, "the site is served")
	default:
		return condition(viewv1.ConditionAvailable, false, viewv1.ReasonUnavailable, "no viewer is Ready")
	}
}

// ready returns the condition Ready: whether the site matches the spec. A suspended site
// matches its spec as soon as its viewers are gone.
func ready(p *pass) metav1.Condition {
	if p.view.Spec.Suspend && !p.unobserved {
		if p.replicas > 0 {
			return condition(viewv1.ConditionReady, false, viewv1.ReasonSuspended, "spec.suspend is set: waiting for %d viewers to exit", p.replicas)
		}
		return condition(viewv1.ConditionReady, true, viewv1.ReasonSuspended, "spec.suspend is set: no viewers are running")
	}
	for _, t := range p.troubles {
		if t.blocks {
			return condition(viewv1.ConditionReady, false, t.reason, "%s", t.message)
		}
	}
	if p.rollout.done() {
		return condition(viewv1.ConditionReady, true, viewv1.ReasonOK, "all viewers serve the newest content")
	}
	return condition(viewv1.ConditionReady, false, viewv1.ReasonRollingOut, "waiting for viewers with the newest content to become Ready")
}

// degraded returns the condition Degraded: whether something that the spec asks for cannot
// be done.
func degraded(p *pass) metav1.Condition {
	if len(p.troubles) == 0 {
		return condition(viewv1.ConditionDegraded, false, viewv1.ReasonOK, "everything that the spec asks for is done")
	}
	var messages []string
	for _, t := range p.troubles {
		messages = append(messages, t.message)
	}
	return condition(viewv1.ConditionDegraded, true, p.troubles[0].reason, "%s", strings.Join(messages, "; "))
}

// stalled returns the condition Stalled: whether the site can match its spec only after a
// user changes something. Tools that use kstatus, such as Flux and kpt, stop waiting for a
// stalled site.
func stalled(p *pass) metav1.Condition {
	if !p.view.Spec.Suspend {
		for _, t := range p.troubles {
			if t.isTerminal() {
				return condition(viewv1.ConditionStalled, true, t.reason, "%s", t.message)
			}
		}
	}
	return condition(viewv1.ConditionStalled, false, viewv1.ReasonOK, "the spec and the cluster need no changes")
}

// stall reports viewers that have not become Ready in time. If their deadline has not
// passed yet, stall requests a reconciliation at the deadline.
func (r *Reconciler) stall(ctx context.Context, p *pass) {
	r.refusedPods(p)
	if p.rollout.desired == "" || p.rollout.done() || p.view.Spec.Suspend || p.deployment == nil {
		return
	}
	now := r.clock.Now()
	since := p.since()
	c := meta.FindStatusCondition(p.view.Status.Conditions, viewv1.ConditionReady)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		since = now
	case c.LastTransitionTime.After(since):
		since = c.LastTransitionTime.Time
	}
	left := r.options.ProgressDeadline - now.Sub(since)
	if left > 0 {
		// Times in the API have a resolution of one second.
		p.lookAgain(left + time.Second)
		return
	}
	v := p.rollout.viewers[p.rollout.desired]
	p.trouble(trouble{reason: viewv1.ReasonStalled, blocks: true, message: fmt.Sprintf("%d of %d viewers with the newest content are Ready after %s%s: see kubectl -n %s describe pods -l %s=%s",
		v.ready, p.rollout.wanted, r.options.ProgressDeadline, r.whyNotReady(ctx, p),
		p.view.Namespace, children.TemplateLabel, p.rollout.desired)})
}

// refusedPods reports why ReplicaSets cannot create Pods, for example because of a quota.
func (r *Reconciler) refusedPods(p *pass) {
	if p.deployment == nil {
		return
	}
	for _, c := range p.deployment.Status.Conditions {
		if c.Type == "ReplicaFailure" && c.Status == corev1.ConditionTrue {
			p.trouble(trouble{reason: viewv1.ReasonChildRejected, message: "the Pods of the Deployment " + p.deployment.Name + " cannot be created: " + c.Message, blocks: true})
		}
	}
}

// bounded shortens a message to one line of limited length.
func bounded(message string) string {
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " ")
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len("...")
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + "..."
}
