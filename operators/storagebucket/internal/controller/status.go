package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/probe"
)

// Reasons of conditions that do not come from the store.
const (
	// ReasonCredentialsNotFound means that the Secret does not exist or lacks
	// a key, so that the store was not asked.
	ReasonCredentialsNotFound probe.Reason = "CredentialsNotFound"
	// ReasonInvalidEndpoint means that the endpoint passed the CRD's
	// validation but is not a usable URL, so that nothing was asked.
	ReasonInvalidEndpoint probe.Reason = "InvalidEndpoint"

	// reasonAvailable is Ready's when all is well.
	reasonAvailable = "Available"
)

// applyObservation brings a status up to date with what was seen, and tells
// whether the Healthy condition changed its status. Transition times move only
// when a condition's status does.
func applyObservation(status *storagev1alpha1.StorageBucketStatus, generation int64, seen observation) (changed bool) {
	state := metav1.ConditionFalse
	if seen.result.Succeeded() {
		state = metav1.ConditionTrue
	}
	previous := meta.FindStatusCondition(status.Conditions, storagev1alpha1.ConditionHealthy)
	changed = previous == nil || previous.Status != state

	healthy := metav1.Condition{
		Type:               storagev1alpha1.ConditionHealthy,
		Status:             state,
		Reason:             string(seen.result.Reason),
		Message:            seen.result.Message,
		ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(seen.at),
	}
	// Nothing but health stands between a usable spec and readiness yet, and
	// an unusable spec is never healthy; so Ready follows Healthy.
	ready := healthy
	ready.Type = storagev1alpha1.ConditionReady
	if state == metav1.ConditionTrue {
		ready.Reason, ready.Message = reasonAvailable, "the bucket can be used as declared"
	}
	meta.SetStatusCondition(&status.Conditions, healthy)
	meta.SetStatusCondition(&status.Conditions, ready)

	status.ObservedGeneration = generation
	if seen.asked {
		at := metav1.NewMicroTime(seen.at)
		status.LastProbeTime = &at
	}
	status.LatencyMilliseconds = milliseconds(seen.result.Latency)
	return changed
}

// milliseconds rounds up, so that an answer never took no time; nil when there
// was none.
func milliseconds(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	return &ms
}

func statusEqual(a, b *storagev1alpha1.StorageBucketStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}
