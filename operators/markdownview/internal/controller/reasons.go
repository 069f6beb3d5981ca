package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// whyNotReady returns the reason why a new viewer is not Ready, if its Pod shows one. Most
// often the image cannot be pulled, or no node has room. Pods are not cached, because only
// this function reads them.
func (r *Reconciler) whyNotReady(ctx context.Context, p *pass) string {
	var pods corev1.PodList
	labels := children.Labels(p.view.Name)
	labels[children.TemplateLabel] = p.rollout.desired
	err := r.reader.List(ctx, &pods, client.InNamespace(p.view.Namespace), client.MatchingLabels(labels), client.Limit(10))
	if err != nil {
		return ""
	}
	for i := range pods.Items {
		if why := waitsFor(&pods.Items[i]); why != "" {
			return fmt.Sprintf(" (%s)", why)
		}
	}
	return ""
}

func waitsFor(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Waiting == nil || s.State.Waiting.Reason == "ContainerCreating":
		// ErrImagePull and ImagePullBackOff alternate and mean the same.
		case s.State.Waiting.Reason == "ErrImagePull", s.State.Waiting.Reason == "ImagePullBackOff":
			return "the image " + s.Image + " cannot be pulled"
		default:
			return s.State.Waiting.Reason
		}
	}
	return ""
}
