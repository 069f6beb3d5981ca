package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a StorageBucket.
const (
	// ConditionHealthy says whether the last probe of the bucket succeeded.
	ConditionHealthy = "Healthy"

	// ConditionReady says whether the bucket can be used as declared.
	ConditionReady = "Ready"
)

// Keys of the credentials Secret. They are the names of the environment
// variables every S3 tool reads, so that one Secret serves a Pod's envFrom and
// this operator alike.
const (
	// AccessKeyIDKey holds the access key ID.
	AccessKeyIDKey = "AWS_ACCESS_KEY_ID"

	// SecretAccessKeyKey holds the secret access key.
	SecretAccessKeyKey = "AWS_SECRET_ACCESS_KEY"
)

// StorageBucketSpec declares which bucket is meant, and how to ask for it.
type StorageBucketSpec struct {
	// endpoint is the URL of the S3 API, for example https://s3.example.com or
	// http://127.0.0.1:9000. The bucket is addressed in the path
	// (endpoint/bucket), never as a host name.
	// It carries no user, no query and no fragment: credentials belong in the
	// Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be an http or https URL, for example https://s3.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getHostname() != ''",message="must name a host"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must not contain a user or a password: put credentials in the Secret named by credentialsSecretRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="must not contain a query or a fragment"
	// +required
	Endpoint string `json:"endpoint"`

	// region is the region requests are signed for. Most stores other than AWS
	// accept the default.
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Region string `json:"region,omitempty"`

	// bucket is the name of the bucket: 3 to 63 lower-case letters, digits,
	// dots and hyphens, beginning and ending with a letter or a digit, with no
	// two dots in a row, and not in the form of an IPv4 address (the S3 naming
	// rules for general purpose buckets). It cannot be changed: another bucket
	// is another StorageBucket.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="must not contain two dots in a row"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$')",message="must not have the form of an IPv4 address"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: create another StorageBucket for another bucket"
	// +required
	Bucket string `json:"bucket"`

	// credentialsSecretRef names the Secret, in the same namespace, that holds
	// the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. A probe needs only
	// the permission s3:ListBucket on the bucket.
	// +required
	CredentialsSecretRef SecretReference `json:"credentialsSecretRef"`

	// probeInterval is the time between two probes, as a duration such as 30s
	// or 5m, at least 1s. A probe is given up after 5 seconds, or after four
	// fifths of the interval where that is less.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="must be at least 1s"
	// +kubebuilder:validation:Type=string
	// +optional
	ProbeInterval metav1.Duration `json:"probeInterval,omitzero"`
}

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

// StorageBucketStatus is what the controller last saw of the bucket.
type StorageBucketStatus struct {
	// conditions of the bucket.
	//
	// Healthy is True when the last probe succeeded: the store answered an
	// authenticated request for this bucket with success. It is False when the
	// last probe failed, or when none could be made because the credentials are
	// missing or the endpoint is not usable; its reason says which. It is absent
	// until the controller has first looked at the bucket.
	//
	// Ready is True when the spec is usable (the endpoint parses, and the Secret
	// exists with both keys) and the bucket is Healthy. When it is False it
	// carries the reason that stands in the way.
	//
	// Reasons: ProbeSucceeded (Healthy), Available (Ready); and for both when
	// False: CredentialsNotFound, InvalidEndpoint, InvalidCredentials,
	// AccessDenied, BucketNotFound, WrongRegion, EndpointUnreachable, TLSError,
	// Timeout, Throttled, ClockSkew, ServerError, Unsupported,
	// UnexpectedResponse.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec this status was worked
	// out from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastProbeTime is when the last probe ended, whatever its result. Checks
	// that asked the store nothing, because the credentials were missing or the
	// endpoint was not usable, do not move it.
	// +optional
	LastProbeTime *metav1.MicroTime `json:"lastProbeTime,omitempty"`

	// latencyMilliseconds is how long the store took to answer the last probe,
	// in milliseconds, rounded up, from opening the connection to the end of
	// the answer's headers. It is absent when the store did not answer.
	// +kubebuilder:validation:Minimum=1
	// +optional
	LatencyMilliseconds *int64 `json:"latencyMilliseconds,omitempty"`
}

// StorageBucket declares a bucket in an S3-compatible object store outside the
// cluster. The controller asks the store for the bucket at regular intervals
// and reports what it saw in the status. It changes nothing in the store.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=stb,categories=storage
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec.bucket`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].reason`
// +kubebuilder:printcolumn:name="Latency",type=integer,JSONPath=`.status.latencyMilliseconds`,description="Milliseconds the store took to answer the last probe."
// +kubebuilder:printcolumn:name="Last Probe",type=date,JSONPath=`.status.lastProbeTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageBucket struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec declares the bucket.
	// +required
	Spec StorageBucketSpec `json:"spec"`

	// status is what the controller last saw of the bucket.
	// +optional
	Status StorageBucketStatus `json:"status,omitzero"`
}

// StorageBucketList is a list of StorageBuckets.
//
// +kubebuilder:object:root=true
type StorageBucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the StorageBuckets.
	Items []StorageBucket `json:"items"`
}
