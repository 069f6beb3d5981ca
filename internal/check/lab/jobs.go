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

// A simulated Pod of a Job runs until everything else is at rest. If it ended after a fixed
// time, a slow controller would sometimes see it running and sometimes not, and the final
// state would depend on this race and not on the controller.

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// runsForJob reports whether the object is a simulated Pod of a Job that has not ended.
func runsForJob(ref state.Ref, object state.Object) bool {
	if ref.Group != "" || ref.Kind != "Pod" || object == nil || object.Deleting() {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	return status["phase"] == "Running" && spec["nodeName"] != nodes.Local && slices.ContainsFunc(owners, func(owner any) bool {
		o, _ := owner.(map[string]any)
		return o["kind"] == "Job"
	})
}

// endsJob reports whether the change is the end of a Pod that runs for a Job.
func endsJob(c *state.Change) bool {
	if !runsForJob(c.Ref, c.Before) {
		return false
	}
	status, _ := c.After["status"].(map[string]any)
	return status["phase"] == "Succeeded"
}

// endJobs ends the Pods of Jobs, and reports whether there were any. The caller must have found the
// world at rest. If the fault holds something back until this rest, the Pods keep running until the
// controller has received that as well.
func (r *run) endJobs(ctx context.Context) (ended bool, err error) {
	if r.injection.HoldsUntilRest() {
		return false, nil
	}
	return r.lab.endJobs(ctx)
}

func (l *Lab) endJobs(ctx context.Context) (ended bool, err error) {
	for ref, pod := range l.store.find(runsForJob) {
		err := l.endPod(ctx, ref, pod)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // the Pod has changed
		case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown: // a webhook refuses it
			continue
		case err != nil:
			return false, fmt.Errorf("ending Pod %s/%s of a Job: %w", ref.Namespace, ref.Name, err)
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
	if len(r.lab.store.find(runsForJob)) == 0 || r.injection.HoldsUntilRest() || !lastWriteFailed(r.log.Entries()) {
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
		left, err := r.endJobsAtRest(ctx, began)
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

// endJobsAtRest ends the Pods of Jobs if everything else is at rest. If anything else is not at
// rest, left is how long to wait before the next look, in case no event comes before.
func (r *run) endJobsAtRest(ctx context.Context, began time.Time) (left time.Duration, err error) {
	if len(r.lab.store.find(runsForJob)) == 0 {
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
	_, err = r.endJobs(ctx)
	return r.window, err
}
