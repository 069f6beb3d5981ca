package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/metrics"
)

// Actions of Events.
const (
	actionServe   = "Serve"
	actionRollOut = "RollOut"
)

// announce emits Events for changed conditions, but not for a new site that is not served
// yet.
func (r *Reconciler) announce(before, after *viewv1.MarkdownView) {
	served := statusOf(after, viewv1.ConditionAvailable)
	switch was := statusOf(before, viewv1.ConditionAvailable); {
	case served == metav1.ConditionTrue && was != metav1.ConditionTrue:
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "Available", actionServe, "the site is served at %s", after.Status.URL)
	case served == metav1.ConditionFalse && was == metav1.ConditionTrue:
		kind := corev1.EventTypeWarning
		if after.Spec.Suspend {
			kind = corev1.EventTypeNormal // the spec asks for it
		}
		r.event(after, viewv1.ConditionAvailable, kind, actionServe)
	}
	switch degraded, was := statusOf(after, viewv1.ConditionDegraded), statusOf(before, viewv1.ConditionDegraded); {
	case degraded == metav1.ConditionTrue && (was != metav1.ConditionTrue || reasonOf(before) != reasonOf(after)):
		r.event(after, viewv1.ConditionDegraded, corev1.EventTypeWarning, actionRollOut)
	case degraded == metav1.ConditionFalse && was == metav1.ConditionTrue:
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "Recovered", actionRollOut, "the problem that the condition Degraded reported is resolved")
	}
}

// event emits an Event with the reason and the message of a condition.
func (r *Reconciler) event(view *viewv1.MarkdownView, kind, eventType, action string) {
	c := meta.FindStatusCondition(view.Status.Conditions, kind)
	r.recorder.Eventf(view, nil, eventType, c.Reason, action, "%s", c.Message)
}

// switched records that readers now get another version.
func (r *Reconciler) switched(p *pass, sel template) {
	metrics.Switched()
	r.recorder.Eventf(p.view, nil, corev1.EventTypeNormal, "Switched", actionServe,
		"readers now get the content with the hash %s", p.contents[sel])
}

func statusOf(view *viewv1.MarkdownView, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(view.Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

func reasonOf(view *viewv1.MarkdownView) string {
	if c := meta.FindStatusCondition(view.Status.Conditions, viewv1.ConditionDegraded); c != nil {
		return c.Reason
	}
	return ""
}
