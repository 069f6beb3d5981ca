package lab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A simulated Pod of a Job, or another Pod that may end, runs until everything else is at rest. If it
// ended after a fixed time, a slow controller would sometimes see it running and sometimes not, and the
// final state would depend on this race and not on the controller.

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// runsToEnd reports whether the object is a simulated Pod that is expected to end, and has not ended:
// a Pod of a Job, or one that would not be restarted after its success.
func runsToEnd(ref state.Ref, object state.Object) bool {
	if ref.Group != "" || ref.Kind != "Pod" || object == nil || object.Deleting() {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	forJob := slices.ContainsFunc(owners, func(owner any) bool {
		o, _ := owner.(map[string]any)
		return o["kind"] == "Job"
	})
	simulated := spec["nodeName"] != nil && spec["nodeName"] != nodes.Local
	return status["phase"] == "Running" && simulated && (forJob || spec["restartPolicy"] == "Never" || spec["restartPolicy"] == "OnFailure")
}

// mostRounds is the number of times in a run that Pods of the same owner end, if the owner is no Job. A
// controller that always replaces such a Pod uses it as a service, so that the Pod had better run on. In
// a run with a fault, there may be more rounds, because the controller may repeat some.
const (
	mostRounds       = 10
	mostFaultyRounds = 15
)

// rounds counts how often Pods have ended, by their owner.
type rounds map[string]int

// ownerOf identifies the owner of a Pod: the controller's resource, or the name of the Pod without its
// random end. Pods of Jobs have none, because the Job decides how many there are.
func ownerOf(ref state.Ref, pod state.Object) string {
	metadata, _ := pod["metadata"].(map[string]any)
	if owners, _ := metadata["ownerReferences"].([]any); len(owners) > 0 {
		owner, _ := owners[0].(map[string]any)
		if owner["kind"] == "Job" {
			return ""
		}
		return fmt.Sprint(owner["kind"], " ", ref.Namespace, "/", owner["name"])
	}
	if generated, _ := metadata["generateName"].(string); generated != "" {
		return "Pod " + ref.Namespace + "/" + generated
	}
	return "Pod " + ref.Namespace + "/" + ref.Name
}

// allows reports whether a Pod may end once more, if Pods of an owner may end in most rounds.
func (n rounds) allows(ref state.Ref, pod state.Object, most int) bool {
	owner := ownerOf(ref, pod)
	return owner == "" || n[owner] < most
}

// add counts a round for each owner of the Pods.
func (n rounds) add(pods map[state.Ref]state.Object) {
	owners := map[string]bool{}
	for ref, pod := range pods {
		owners[ownerOf(ref, pod)] = true
	}
	for owner := range owners {
		n[owner]++
	}
}

// toEnd returns the Pods that run until everything else is at rest.
func (r *run) toEnd() map[state.Ref]state.Object {
	most := mostRounds
	if r.lesson != nil {
		most = mostFaultyRounds
	}
	return r.lab.store.find(func(ref state.Ref, object state.Object) bool {
		return runsToEnd(ref, object) && r.rounds.allows(ref, object, most)
	})
}

// isEnd reports whether the change is the end of a simulated Pod.
func isEnd(c *state.Change) bool {
	if !runsToEnd(c.Ref, c.Before) {
		return false
	}
	status, _ := c.After["status"].(map[string]any)
	return status["phase"] == "Succeeded"
}

// endPods ends the Pods that are expected to end, and reports whether there were any. The caller must
// have found the world at rest. If the fault holds something back until this rest, the Pods keep running
// until the controller has received that as well.
func (r *run) endPods(ctx context.Context) (ended bool, err error) {
	if r.injection.HoldsUntilRest() {
		return false, nil
	}
	pods := r.toEnd()
	if ended, err = r.lab.endPods(ctx, pods); ended {
		if r.rounds == nil {
			r.rounds = rounds{}
		}
		r.rounds.add(pods)
	}
	return ended, err
}

func (l *Lab) endPods(ctx context.Context, pods map[state.Ref]state.Object) (ended bool, err error) {
	for ref, pod := range pods {
		err := l.endPod(ctx, ref, pod)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // the Pod has changed
		case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown: // a webhook refuses it
			continue
		case err != nil:
			return false, fmt.Errorf("ending Pod %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		ended = true
	}
	if !ended {
		return false, nil
	}
	return true, l.caughtUp(ctx)
}

func (l *Lab) endPod(ctx context.Context, ref state.Ref, pod state.Object) error {
	patch, err := nodes.EndOfJobPod(pod)
	if err != nil {
		return err
	}
	_, err = l.client.Resource(podResource).Namespace(ref.Namespace).
		Patch(ctx, ref.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// longestRetry limits how long the Pods of Jobs run at rest because the controller has yet to
// repeat a failed write.
const longestRetry = rest.LongestRound

// retryLeft returns how long the Pods of Jobs still have to run, although everything is at rest. A
// controller that pauses before it repeats a failed write has not done all of its work yet, and
// most controllers double this pause with each failure. Without this time, a Job would end during a
// longer pause, but not during a shorter one.
func (r *run) retryLeft() time.Duration {
	if len(r.toEnd()) == 0 || r.injection.HoldsUntilRest() || !lastWriteFailed(r.log.Entries()) {
		r.retrying = time.Time{}
		return 0
	}
	if r.retrying.IsZero() {
		r.retrying = time.Now()
	}
	return time.Until(r.retrying.Add(longestRetry))
}

// lastWriteFailed reports whether the last write of the controller failed. A deletion of an object
// that no longer exists, and a creation of an object that already exists, do not count as failed.
func lastWriteFailed(entries []trace.Entry) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		c := entries[i].Call
		if c == nil || !request.IsWork(c) || c.Verb == "delete" && c.Code == http.StatusNotFound || c.Verb == "create" && c.Code == http.StatusConflict {
			continue
		}
		return c.Code == 0 || c.Code >= http.StatusBadRequest
	}
	return false
}

// meanwhile runs the function do. Until do returns, meanwhile ends the Pods of Jobs each time
// everything else is at rest: do may be waiting for a Job, whose simulated Pods do not end by
// themselves.
func (r *run) meanwhile(ctx context.Context, do func(context.Context) error) error {
	done, began := make(chan error, 1), time.Now()
	go func() { done <- do(ctx) }()
	for {
		store, api := r.lab.store.touched.Next(), r.controller.Touched()
		left, err := r.endPodsAtRest(ctx, began)
		if err != nil { // do reports what it could not do
			return <-done
		}
		select {
		case err := <-done:
			return err
		case <-store:
		case <-api:
		case <-time.After(left):
		}
	}
}

// endPodsAtRest ends the Pods that are expected to end if everything else is at rest. If anything else is
// not at rest, left is how long to wait before the next look, in case no event comes before.
func (r *run) endPodsAtRest(ctx context.Context, began time.Time) (left time.Duration, err error) {
	if len(r.toEnd()) == 0 {
		return time.Hour, nil // until the store changes
	}
	v, err := r.unrest(began)
	if err != nil || !v.AtRest() {
		return v.Left, err
	}
	if err := r.lab.caughtUp(ctx); err != nil {
		return 0, err
	}
	if left := r.retryLeft(); left > 0 {
		return left, nil
	}
	_, err = r.endPods(ctx)
	return r.window, err
}
