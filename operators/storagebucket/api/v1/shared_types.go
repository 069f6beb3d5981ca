package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. All three are of positive polarity: True is good.
const (
	// ConditionReady says whether the object can be used as declared. It sums
	// up the others and carries the reason that stands in the way.
	ConditionReady = "Ready"

	// ConditionSynced says whether the spec has been carried out: for a bucket
	// that is managed, whether the store holds what is declared.
	ConditionSynced = "Synced"

	// ConditionHealthy says whether the store, or the bucket in it, answers.
	ConditionHealthy = "Healthy"
)

// Annotations people set on a StorageBucket or an ObjectStore.
const (
	// AnnotationPaused stops all work on the object while its value is "true".
	// Crossplane's annotation of that meaning, crossplane.io/paused, is
	// understood as well.
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
)

// Finalizer keeps an object until what it stands for outside the cluster has
// been dealt with.
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

// ProbeStatus is what the last probe found. To spare the API server it is
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

	// latencyMilliseconds is how long the store took to answer that probe, in
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
