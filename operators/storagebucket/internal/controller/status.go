package controller

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// Reasons of conditions that do not come from a store.
const (
	reasonAvailable        = "Available"
	reasonObserved         = "Observed"
	reasonInSync           = "InSync"
	reasonPaused           = "ReconcilePaused"
	reasonStoreUnavailable = "StoreUnavailable"
	reasonStoreNotFound    = "StoreNotFound"
	reasonStoreNotAllowed  = "StoreNotAllowed"
	reasonDeleting         = "Deleting"
	reasonProgressing      = "Progressing"
)

// finding is one condition in the making.
type finding struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func found(reason, message string) finding { return finding{metav1.ConditionTrue, reason, message} }

func failed(e *s3store.Error) finding {
	return finding{metav1.ConditionFalse, string(e.Reason), e.Message}
}

func unknown(reason, message string) finding {
	return finding{metav1.ConditionUnknown, reason, message}
}

// set writes a condition, and tells whether its status changed. The transition
// time moves only then.
func set(conditions *[]metav1.Condition, kind string, generation int64, at time.Time, f finding) (changed bool) {
	before := meta.FindStatusCondition(*conditions, kind)
	changed = before == nil || before.Status != f.status
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               kind,
		Status:             f.status,
		Reason:             f.reason,
		Message:            f.message,
		ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(at),
	})
	return changed
}

// summarise works out Ready from the conditions it sums up: the first that is
// False, then the first that is not True.
func summarise(conditions []metav1.Condition, kinds ...string) finding {
	sum := found(reasonAvailable, "it can be used as declared")
	for _, kind := range kinds {
		c := meta.FindStatusCondition(conditions, kind)
		switch {
		case c != nil && c.Status == metav1.ConditionFalse:
			return finding{c.Status, c.Reason, c.Message}
		case sum.status != metav1.ConditionTrue:
		case c == nil:
			sum = unknown(reasonProgressing, kind+" is not known yet")
		case c.Status == metav1.ConditionUnknown:
			sum = finding{c.Status, c.Reason, c.Message}
		}
	}
	return sum
}

// observed is the generation that all of the conditions are about.
func observed(conditions []metav1.Condition, kinds ...string) int64 {
	generation := int64(math.MaxInt64)
	for _, kind := range kinds {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil {
			return 0
		}
		generation = min(generation, c.ObservedGeneration)
	}
	return generation
}

// probed tells whether a status holds the result of a probe, and not that none
// could be made, or was to be.
func probed(status *storagev1.StorageBucketStatus) bool {
	healthy := meta.FindStatusCondition(status.Conditions, storagev1.ConditionHealthy)
	synced := meta.FindStatusCondition(status.Conditions, storagev1.ConditionSynced)
	if healthy == nil || synced == nil || synced.Reason == reasonPaused {
		return false
	}
	return healthy.Reason == reasonStoreUnavailable || status.Probe != nil && healthy.Reason == status.Probe.Reason
}

// thresholds are how many probes in a row change the verdict.
type thresholds struct{ failures, successes int32 }

func thresholdsOf(spec storagev1.ProbeSpec) thresholds {
	return thresholds{failures: max(spec.FailureThreshold, 1), successes: max(spec.SuccessThreshold, 1)}
}

// noteProbe adds a probe to those before it.
func noteProbe(before *storagev1.ProbeStatus, result s3store.Result, at time.Time, limit thresholds) *storagev1.ProbeStatus {
	var failures, successes int32
	if before != nil {
		failures, successes = before.ConsecutiveFailures, before.ConsecutiveSuccesses
	}
	if result.Succeeded() {
		failures, successes = 0, min(successes+1, limit.successes)
	} else {
		failures, successes = min(failures+1, limit.failures), 0
	}
	stamp := metav1.NewMicroTime(at)
	return &storagev1.ProbeStatus{
		Reason:               string(result.Reason),
		LastProbeTime:        &stamp,
		LatencyMilliseconds:  milliseconds(result.Latency),
		ConsecutiveFailures:  failures,
		ConsecutiveSuccesses: successes,
	}
}

// health is the verdict after a probe; nil while the thresholds keep the one
// before.
func health(before *metav1.Condition, probe *storagev1.ProbeStatus, result s3store.Result, limit thresholds) *finding {
	verdict := finding{metav1.ConditionFalse, string(result.Reason), result.Message}
	if result.Succeeded() {
		verdict.status = metav1.ConditionTrue
	}
	switch {
	case before == nil, before.Status == metav1.ConditionUnknown, before.Status == verdict.status:
		return &verdict
	case result.Succeeded() && probe.ConsecutiveSuccesses < limit.successes:
		return nil
	case !result.Succeeded() && probe.ConsecutiveFailures < limit.failures:
		return nil
	default:
		return &verdict
	}
}

// news tells whether a verdict is worth an Event: that a bucket fails, and that
// one that failed does no longer. That all is well from the start, or again
// after the store was down, is not: the store's own Event says so once, and ten
// thousand more would say no more.
func news(before *metav1.Condition, verdict metav1.ConditionStatus) bool {
	failed := before != nil && before.Status == metav1.ConditionFalse
	return failed != (verdict == metav1.ConditionFalse)
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

// worthWriting tells whether a status says anything that the stored one does
// not, or the heartbeat is due. The time and the latency of a probe alone say
// nothing. It is asked after every probe, so it compares the parts that differ
// between buckets without reflection.
func worthWriting(stored, current *storagev1.StorageBucketStatus, heartbeat time.Duration) bool {
	return stored.ObservedGeneration != current.ObservedGeneration ||
		stored.BucketName != current.BucketName ||
		stored.LastHandledReconcileAt != current.LastHandledReconcileAt ||
		!slices.EqualFunc(stored.Conditions, current.Conditions, sameCondition) ||
		!sameOutcome(stored.Probe, current.Probe) ||
		!slices.Equal(stored.Unsupported, current.Unsupported) ||
		!equality.Semantic.DeepEqual(stored.External, current.External) ||
		!equality.Semantic.DeepEqual(stored.Applied, current.Applied) ||
		heartbeatDue(stored.Probe, current.Probe, heartbeat)
}

func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// sameOutcome compares probes but for their time and latency.
func sameOutcome(a, b *storagev1.ProbeStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.ConsecutiveFailures == b.ConsecutiveFailures &&
		a.ConsecutiveSuccesses == b.ConsecutiveSuccesses
}

// quieted is a probe with the time and the latency of the one before.
func quieted(before, after *storagev1.ProbeStatus) *storagev1.ProbeStatus {
	if before == nil || after == nil {
		return after
	}
	quiet := *after
	quiet.LastProbeTime, quiet.LatencyMilliseconds = before.LastProbeTime, before.LatencyMilliseconds
	return &quiet
}

func heartbeatDue(before, after *storagev1.ProbeStatus, heartbeat time.Duration) bool {
	if heartbeat <= 0 || before == nil || after == nil || before.LastProbeTime == nil || after.LastProbeTime == nil {
		return false
	}
	return after.LastProbeTime.Sub(before.LastProbeTime.Time) >= heartbeat
}
