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

// These reasons of conditions do not come from a store.
const (
	reasonAvailable        = "Available"
	reasonObserved         = "Observed"
	reasonInSync           = "InSync"
	reasonSuspended        = "Suspended"
	reasonDeprecated       = "DeprecatedAnnotation"
	reasonStoreUnavailable = "StoreUnavailable"
	reasonStoreNotFound    = "StoreNotFound"
	reasonStoreNotAllowed  = "StoreNotAllowed"
	reasonDeleting         = "Deleting"
	reasonProgressing      = "Progressing"
)

// finding is the content of a condition.
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

// set writes a condition, and reports whether the condition's status changed. The
// transition time changes only if the status does.
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

// summarise computes Ready from other conditions. The first condition that is False
// decides; if none is False, the first condition that is not True decides.
func summarise(conditions []metav1.Condition, kinds ...string) finding {
	sum := found(reasonAvailable, "the object can be used as declared")
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

// stall maintains the condition Stalled, which is present while Ready is False
// for a reason that only a person, or another object, can remove.
func stall(conditions *[]metav1.Condition, at time.Time) {
	ready := meta.FindStatusCondition(*conditions, storagev1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || !lasting(ready.Reason) {
		meta.RemoveStatusCondition(conditions, storagev1.ConditionStalled)
		return
	}
	set(conditions, storagev1.ConditionStalled, ready.ObservedGeneration, at, found(ready.Reason, ready.Message))
}

// lasting reports whether a problem with this reason stays until somebody fixes it.
func lasting(reason string) bool {
	return s3store.Reason(reason).Terminal() || reason == reasonStoreNotFound || reason == reasonStoreNotAllowed
}

// suspend writes the conditions of a suspended object, and reports whether the suspension is new. A
// suspended object must be reported as settled (kstatus: Current), so Ready is removed unless it is
// True.
func suspend(conditions *[]metav1.Condition, generation int64, at time.Time, why string) (news bool) {
	before := meta.FindStatusCondition(*conditions, storagev1.ConditionSynced)
	news = before == nil || before.Reason != reasonSuspended
	set(conditions, storagev1.ConditionSynced, generation, at,
		finding{metav1.ConditionFalse, reasonSuspended, "the object is suspended: " + why})
	meta.RemoveStatusCondition(conditions, storagev1.ConditionStalled)
	if meta.IsStatusConditionTrue(*conditions, storagev1.ConditionReady) {
		meta.FindStatusCondition(*conditions, storagev1.ConditionReady).ObservedGeneration = generation
	} else {
		meta.RemoveStatusCondition(conditions, storagev1.ConditionReady)
	}
	return news
}

// observed returns the oldest generation that any of the conditions refers to, or 0 if a
// condition is missing.
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

// probed reports whether a status holds the result of a probe, rather than the reason why
// there was no probe.
func probed(status *storagev1.StorageBucketStatus) bool {
	healthy := meta.FindStatusCondition(status.Conditions, storagev1.ConditionHealthy)
	synced := meta.FindStatusCondition(status.Conditions, storagev1.ConditionSynced)
	if healthy == nil || synced == nil || synced.Reason == reasonSuspended {
		return false
	}
	return healthy.Reason == reasonStoreUnavailable || status.Probe != nil && healthy.Reason == status.Probe.Reason
}

// thresholds are the numbers of consecutive probes that change the verdict.
type thresholds struct{ failures, successes int32 }

func thresholdsOf(spec storagev1.ProbeSpec) thresholds {
	return thresholds{failures: max(spec.FailureThreshold, 1), successes: max(spec.SuccessThreshold, 1)}
}

// noteProbe adds the result of a probe to the previous ones.
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

// health returns the verdict after a probe, or nil if the thresholds keep the
// previous verdict.
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

// news reports whether a verdict is worth an Event: whether the bucket starts or stops
// failing. No Event is recorded for a bucket that is healthy from the start, or healthy
// again after its store was down: the store has its own Event, and ten thousand more would
// add nothing.
func news(before *metav1.Condition, verdict metav1.ConditionStatus) bool {
	failed := before != nil && before.Status == metav1.ConditionFalse
	return failed != (verdict == metav1.ConditionFalse)
}

// milliseconds rounds up, so that a response never took 0 ms. It returns nil
// if there was no response.
func milliseconds(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	return &ms
}

// worthWriting reports whether the heartbeat is due, or the status differs from the stored one in
// more than the time and the latency of the probe. worthWriting is called after every probe, so it
// avoids reflection where possible.
func worthWriting(stored, current *storagev1.StorageBucketStatus, heartbeat time.Duration) bool {
	return driftStampDue(stored.LastDriftCheckTime, current.LastDriftCheckTime, heartbeat) ||
		stored.ObservedGeneration != current.ObservedGeneration ||
		stored.BucketName != current.BucketName ||
		stored.LastHandledReconcileAt != current.LastHandledReconcileAt ||
		!slices.EqualFunc(stored.Conditions, current.Conditions, sameCondition) ||
		!sameOutcome(stored.Probe, current.Probe) ||
		!slices.Equal(stored.Unsupported, current.Unsupported) ||
		!equality.Semantic.DeepEqual(stored.External, current.External) ||
		!equality.Semantic.DeepEqual(stored.Applied, current.Applied) ||
		heartbeatDue(stored.Probe, current.Probe, heartbeat)
}

// driftStampDue reports whether the time of a drift check must be written. After a restart,
// the next check is scheduled from the stored time. The stored time may lag behind the last
// check, but by less than a heartbeat.
func driftStampDue(stored, current *metav1.Time, heartbeat time.Duration) bool {
	if current == nil || stored == nil {
		return stored != current
	}
	return heartbeat > 0 && current.Sub(stored.Time) >= heartbeat
}

func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// sameOutcome reports whether two probes are equal apart from their time and latency.
func sameOutcome(a, b *storagev1.ProbeStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.ConsecutiveFailures == b.ConsecutiveFailures &&
		a.ConsecutiveSuccesses == b.ConsecutiveSuccesses
}

// quieted returns the new probe with the time and the latency of the previous one.
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
