package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// For every condition type except Stalled, True is the good status.
const (
	// ConditionReady is True when the object can be used as declared. Ready summarizes the other
	// conditions: when Ready is not True, it has the reason of the first condition that is not
	// True.
	ConditionReady = "Ready"

	// ConditionSynced is True when the spec has been carried out: for a managed
	// bucket, when the store holds what is declared.
	ConditionSynced = "Synced"

	// ConditionHealthy is True when the store, or the bucket in it, answers.
	ConditionHealthy = "Healthy"

	// ConditionStalled is present, and True, while Ready is False for a reason that
	// does not resolve itself. kstatus, and with it Flux and kpt, reports such an
	// object as Failed and stops waiting for it.
	ConditionStalled = "Stalled"
)

// Users set these annotations on a StorageBucket or an ObjectStore.
const (
	// AnnotationPaused stops all work on the object while its value is "true", as spec.suspend
	// does. The annotation is deprecated: the operator records a warning Event when it is used.
	// Crossplane's annotation crossplane.io/paused has the same effect.
	AnnotationPaused = "storage.koboshi.dev/paused"

	// AnnotationReconcileRequestedAt requests an immediate reconciliation: each new value is one
	// request, acknowledged in status.lastHandledReconcileAt. Flux's annotation
	// reconcile.fluxcd.io/requestedAt has the same effect.
	AnnotationReconcileRequestedAt = "storage.koboshi.dev/reconcile-requested-at"

	// AnnotationAdopt hands an existing bucket to the operator. The annotation's value is the name
	// of the bucket, so that the annotation has no effect if it is copied to an object for another
	// bucket. An adopted bucket gets the operator's tags, but is never deleted, because the
	// operator did not create it.
	AnnotationAdopt = "storage.koboshi.dev/adopt"

	// AnnotationAdoptFrom, used together with AnnotationAdopt, names the previous owner of a bucket
	// in the form CLUSTER/UID, as found in the bucket's tags. The operator takes the bucket over
	// only from the named owner, which may be in another cluster. The bucket keeps its origin: if
	// the operator created it, its new owner can delete it.
	AnnotationAdoptFrom = "storage.koboshi.dev/adopt-from"
)

// Finalizer keeps an object until its external resource has been dealt with.
const Finalizer = "storage.koboshi.dev/external"

// The keys of the credentials Secret are the names of the environment variables
// that every S3 tool reads, so that one Secret serves both the envFrom of a Pod
// and this operator.
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

// ProbeStatus is the result of the last probe. To spare the API server, this status is written when
// the outcome changes and, as a heartbeat, at most once every --status-heartbeat; the metrics
// include every single probe.
type ProbeStatus struct {
	// reason is the outcome of the last probe in one word; the README lists
	// all reasons.
	// +optional
	Reason string `json:"reason,omitempty"`

	// lastProbeTime is the time at which the last recorded probe ended,
	// whatever its result.
	// +optional
	LastProbeTime *metav1.MicroTime `json:"lastProbeTime,omitempty"`

	// latencyMilliseconds is the time that the store took to answer the last recorded probe, in
	// milliseconds, rounded up. latencyMilliseconds is absent if the store did not answer.
	// +kubebuilder:validation:Minimum=1
	// +optional
	LatencyMilliseconds *int64 `json:"latencyMilliseconds,omitempty"`

	// consecutiveFailures counts failed probes since the last successful one,
	// up to the failure threshold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// consecutiveSuccesses counts successful probes since the last failed one,
	// up to the success threshold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConsecutiveSuccesses int32 `json:"consecutiveSuccesses,omitempty"`
}
