package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. Stalled apart, True is good.
const (
	// ConditionReady is True when the object can be used as declared. It sums up
	// the others; when it is not True it has the reason of the first one that is
	// not.
	ConditionReady = "Ready"

	// ConditionSynced is True when the spec has been carried out: for a managed
	// bucket, when the store holds what is declared.
	ConditionSynced = "Synced"

	// ConditionHealthy is True when the store, or the bucket in it, answers.
	ConditionHealthy = "Healthy"

	// ConditionStalled is present, and True, while Ready is False for a reason that
	// does not pass by itself. kstatus, and with it Flux and kpt, calls such an
	// object Failed and stops waiting for it.
	ConditionStalled = "Stalled"
)

// Annotations people set on a StorageBucket or an ObjectStore.
const (
	// AnnotationPaused stops all work on the object while its value is "true", as
	// spec.suspend does. Crossplane's annotation of that meaning,
	// crossplane.io/paused, is understood as well. The operator answers this
	// deprecated one with a warning Event.
	AnnotationPaused = "storage.koboshi.dev/paused"

	// AnnotationReconcileRequestedAt asks for work now: each new value is one
	// request, answered in status.lastHandledReconcileAt. Flux's annotation
	// reconcile.fluxcd.io/requestedAt is understood as well.
	AnnotationReconcileRequestedAt = "storage.koboshi.dev/reconcile-requested-at"

	// AnnotationAdopt hands an existing bucket to the operator: its value is
	// the bucket's name, so that it cannot be copied about by accident. The
	// bucket is tagged as ours, and never deleted for that alone: it was not
	// made here.
	AnnotationAdopt = "storage.koboshi.dev/adopt"

	// AnnotationAdoptFrom names, beside AnnotationAdopt, the previous owner of a
	// bucket as CLUSTER/UID, from the bucket's tags. The bucket is taken over
	// from that owner alone, also from another cluster, and keeps its origin: a
	// bucket that the operator made can be deleted by its new owner.
	AnnotationAdoptFrom = "storage.koboshi.dev/adopt-from"
)

// Finalizer keeps an object until its external resource has been dealt with.
const Finalizer = "storage.koboshi.dev/external"

// Keys of the credentials Secret. They are the names of the environment
// variables every S3 tool reads, so that one Secret serves a Pod's envFrom and
// this operator alike.
const (
	// AccessKeyIDKey holds the access key ID.
	AccessKeyIDKey = "AWS_ACCESS_KEY_ID"

	// SecretAccessKeyKey holds the secret access key.
	SecretAccessKeyKey = "AWS_SECRET_ACCESS_KEY"

	// SessionTokenKey holds the session token of temporary credentials; it may
	// be absent.
	SessionTokenKey = "AWS_SESSION_TOKEN"
)

// SecretReference names a Secret in the namespace of the object that refers to
// it.
type SecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	Name string `json:"name"`
}

// ProbeStatus is the result of the last probe. To spare the API server it is
// written when the outcome changes and, as a heartbeat, at most once every
// --status-heartbeat; the figures of every single probe are in the metrics.
type ProbeStatus struct {
	// reason is the outcome of the last probe in one word; see the README for
	// the list.
	// +optional
	Reason string `json:"reason,omitempty"`

	// lastProbeTime is when the last probe that is written here ended, whatever
	// its result.
	// +optional
	LastProbeTime *metav1.MicroTime `json:"lastProbeTime,omitempty"`

	// latencyMilliseconds is the time the store took to answer that probe, in
	// milliseconds, rounded up. It is absent when the store did not answer.
	// +kubebuilder:validation:Minimum=1
	// +optional
	LatencyMilliseconds *int64 `json:"latencyMilliseconds,omitempty"`

	// consecutiveFailures counts failed probes since the last good one, up to
	// the failure threshold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// consecutiveSuccesses counts good probes since the last failed one, up to
	// the success threshold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConsecutiveSuccesses int32 `json:"consecutiveSuccesses,omitempty"`
}
