package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// These are the condition types of a StorageBucket.
const (
	// ConditionHealthy is True when the last probe of the bucket succeeded.
	ConditionHealthy = "Healthy"

	// ConditionReady is True when the bucket can be used as declared.
	ConditionReady = "Ready"
)

// The keys of the credentials Secret are the names of the environment variables
// that every S3 tool reads, so that one Secret serves both the envFrom of a Pod
// and this operator.
const (
	// AccessKeyIDKey holds the access key ID.
	AccessKeyIDKey = "AWS_ACCESS_KEY_ID"

	// SecretAccessKeyKey holds the secret access key.
	SecretAccessKeyKey = "AWS_SECRET_ACCESS_KEY"
)

// AnnotationBucketFromName has the value "true" if v1 does not set the bucket's name, so that the
// bucket has the name of the object. In that case, the v1alpha1 field bucket contains the name of
// the object, because the field is required. The conversion adds and removes the annotation; it
// appears neither in stored objects nor in v1.
const AnnotationBucketFromName = "storage.koboshi.dev/bucket-from-name"

// StorageBucketSpec declares a bucket and how to probe it.
//
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) || has(self.endpoint)",reason=FieldValueRequired,message="endpoint is required without storeRef",fieldPath=.endpoint
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) || has(self.credentialsSecretRef)",reason=FieldValueRequired,message="credentialsSecretRef is required without storeRef",fieldPath=.credentialsSecretRef
// +kubebuilder:validation:XValidation:rule="!has(self.storeRef) || !(has(self.endpoint) || has(self.region) || has(self.credentialsSecretRef))",message="storeRef excludes endpoint, region and credentialsSecretRef: the ObjectStore provides them",fieldPath=.storeRef
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) == has(oldSelf.storeRef) && (!has(self.storeRef) || self.storeRef == oldSelf.storeRef)",message="storeRef is immutable: create another StorageBucket for a bucket in another store",fieldPath=.storeRef
// +kubebuilder:validation:XValidation:rule="!has(self.management) || self.management != 'Manage' || has(self.storeRef)",message="management Manage requires storeRef: a bucket of an inline store is only observed",fieldPath=.management
// +kubebuilder:validation:XValidation:rule="!has(self.forceEmpty) || !self.forceEmpty || (has(self.deletionPolicy) && self.deletionPolicy == 'Delete')",message="forceEmpty requires deletionPolicy Delete",fieldPath=.forceEmpty
// +kubebuilder:validation:XValidation:rule="!has(self.probe) || !has(self.probe.method) || self.probe.method != 'Canary' || (has(self.management) && self.management == 'Manage')",message="method Canary requires management Manage: it writes to the bucket",fieldPath=.probe.method
// +kubebuilder:validation:XValidation:rule="!has(self.probe) || !has(self.probe.method) || self.probe.method != 'Canary' || !has(self.objectLock) || !has(self.objectLock.defaultRetention)",message="method Canary is not possible with objectLock.defaultRetention: its objects could not be deleted",fieldPath=.probe.method
// +kubebuilder:validation:XValidation:rule="!has(self.probe) || !has(self.probe.timeout) || !has(self.probeInterval) || duration(self.probe.timeout) <= duration(self.probeInterval)",message="timeout must not be longer than probeInterval",fieldPath=.probe.timeout
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.objectLock) || has(self.objectLock)",message="objectLock cannot be removed: a store cannot turn it off again",fieldPath=.objectLock
// +kubebuilder:validation:XValidation:rule="!has(self.objectLock) || !has(self.versioning) || self.versioning == 'Enabled'",message="objectLock requires versioning Enabled",fieldPath=.versioning
type StorageBucketSpec struct {
	// endpoint is the URL of the S3 API, for example https://s3.example.com or
	// http://127.0.0.1:9000. The bucket is addressed in the path (endpoint/bucket), never in the
	// host name. The URL must not contain a user, a query or a fragment: credentials belong in the
	// Secret. endpoint is required unless storeRef is set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be an http or https URL, for example https://s3.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getHostname() != ''",message="must name a host"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must not contain a user or a password: put credentials in the Secret named by credentialsSecretRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="must not contain a query or a fragment"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// region is the region that requests are signed for; the default is
	// us-east-1, which most stores other than AWS accept.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Region string `json:"region,omitempty"`

	// bucket is the name of the bucket. The name consists of 3 to 63 lower-case letters, digits,
	// dots and hyphens, begins and ends with a letter or a digit, has no two dots in a row, and is
	// not in the form of an IPv4 address (the S3 naming rules for general purpose buckets). The
	// name cannot be changed: for another bucket, create another StorageBucket.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="must not contain two dots in a row"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$')",message="must not have the form of an IPv4 address"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: create another StorageBucket for another bucket"
	// +required
	Bucket string `json:"bucket"`

	// credentialsSecretRef names the Secret, in the same namespace, that holds the keys
	// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. A probe needs only the permission s3:ListBucket
	// on the bucket. credentialsSecretRef is required unless storeRef is set.
	// +optional
	CredentialsSecretRef SecretReference `json:"credentialsSecretRef,omitzero"`

	// storeRef names the ObjectStore that the bucket is in, instead of
	// endpoint, region and credentialsSecretRef. It cannot be changed.
	// (ObjectStores exist only in version v1.)
	// +optional
	StoreRef *storagev1.ObjectStoreReference `json:"storeRef,omitempty"`

	// probeInterval is the time between two probes, as a duration such as 30s
	// or 5m, at least 1s. A probe is abandoned after 5 seconds, or after four
	// fifths of the interval if that is less.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="must be at least 1s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('168h')",message="must be at most 168h"
	// +kubebuilder:validation:Type=string
	// +optional
	ProbeInterval metav1.Duration `json:"probeInterval,omitzero"`

	// The fields below come from v1 and follow its rules. The values of v1 are
	// in fields rather than in a hidden annotation, so that the API server
	// validates them, increments the generation when they change, and records
	// who applied each of them.

	// management is Observe or Manage. Observe, the default, changes nothing in
	// the store, whatever else is declared here.
	// +kubebuilder:default=Observe
	// +optional
	Management storagev1.ManagementPolicy `json:"management,omitempty"`

	// deletionPolicy is Retain or Delete. With Delete, deleting this object
	// deletes the bucket too, if the operator created it and it is empty.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy storagev1.DeletionPolicy `json:"deletionPolicy,omitempty"`

	// forceEmpty deletes all objects, all their versions and all unfinished
	// multipart uploads before the bucket is deleted.
	// +optional
	ForceEmpty bool `json:"forceEmpty,omitempty"`

	// probe, together with probeInterval, configures the checks of the bucket's health.
	// +kubebuilder:default={}
	// +optional
	Probe ProbeSpec `json:"probe,omitzero"`

	// suspend stops all work on this object: no requests are sent to the store, and nothing in it
	// is changed. The deletion of a suspended object waits until the suspension ends.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// driftInterval is the minimum time between two comparisons of a managed
	// bucket's configuration with the declared configuration, as a duration such as
	// 10m, from 1m to 168h. A comparison that is due is made together with the next
	// probe.
	// +kubebuilder:default="10m0s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('1m') && duration(self) <= duration('168h'))",message="must be 1m to 168h"
	// +kubebuilder:validation:Type=string
	// +optional
	DriftInterval metav1.Duration `json:"driftInterval,omitzero"`

	// versioning keeps old versions of objects. Once Enabled, versioning can only be Suspended;
	// removing the field suspends it.
	// +optional
	Versioning storagev1.VersioningState `json:"versioning,omitempty"`

	// tags of the bucket. Tags set by other clients are kept. Keys that begin with
	// storage.koboshi.dev/ are reserved for the operator.
	// +kubebuilder:validation:MaxProperties=44
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && !k.startsWith('storage.koboshi.dev/') && !k.startsWith('aws:'))",message="keys must have 1 to 128 characters and not begin with storage.koboshi.dev/ or aws:"
	// +optional
	Tags map[string]storagev1.TagValue `json:"tags,omitempty"`

	// lifecycle rules delete old objects and old versions, and abort unfinished uploads.
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Lifecycle []storagev1.LifecycleRule `json:"lifecycle,omitempty"`

	// policy is the bucket policy, written as an object instead of a string.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Policy *apiextensionsv1.JSON `json:"policy,omitempty"`

	// cors rules allow web pages to use the bucket from a browser.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	CORS []storagev1.CORSRule `json:"cors,omitempty"`

	// encryption is the default encryption of new objects.
	// +optional
	Encryption *storagev1.Encryption `json:"encryption,omitempty"`

	// publicAccessBlock forbids ways of making the bucket public.
	// +optional
	PublicAccessBlock *storagev1.PublicAccessBlock `json:"publicAccessBlock,omitempty"`

	// objectLock protects objects from being deleted or overwritten. Object lock must be declared
	// from the start: a store can turn it on only when it creates the bucket.
	// +optional
	ObjectLock *storagev1.ObjectLock `json:"objectLock,omitempty"`
}

// ProbeSpec configures the checks of a bucket's health. In v1alpha1, the
// interval between probes is a separate field of the spec.
type ProbeSpec struct {
	// method is Head or Canary. Canary writes to the bucket, and therefore
	// needs management Manage.
	// +kubebuilder:default=Head
	// +optional
	Method storagev1.ProbeMethod `json:"method,omitempty"`

	// timeout limits the time of one probe, as a duration from 100ms to 1m. The
	// default is 5s, or four fifths of the interval if that is less.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('100ms') && duration(self) <= duration('1m'))",message="must be 100ms to 1m"
	// +kubebuilder:validation:Type=string
	// +optional
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// failureThreshold is the number of probes in a row that must fail before a
	// healthy bucket is reported as unhealthy.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// successThreshold is the number of probes in a row that must succeed before an
	// unhealthy bucket is reported as healthy.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
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

// StorageBucketStatus is the last observed state of the bucket.
type StorageBucketStatus struct {
	// conditions of the bucket.
	//
	// Healthy is True when the last probe succeeded: the store answered an authenticated request
	// for this bucket with success. Healthy is False when the last probe failed, or when no probe
	// could be made because the credentials are missing or the endpoint is not usable; the reason
	// of the condition names the error. Healthy is absent until the controller has first checked
	// the bucket.
	//
	// Ready is True when the spec is usable (the endpoint parses, and the Secret
	// exists with both keys) and the bucket is Healthy. When Ready is False, its reason
	// names the problem.
	//
	// When True, Healthy has the reason ProbeSucceeded, and Ready has the reason Available. When
	// False, Healthy and Ready have one of these reasons: CredentialsNotFound, InvalidEndpoint,
	// InvalidCredentials, AccessDenied, BucketNotFound, WrongRegion, EndpointUnreachable, TLSError,
	// Timeout, Throttled, ClockSkew, ServerError, Unsupported, UnexpectedResponse.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status is
	// based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// bucketName is the name of the bucket in the store.
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// lastProbeTime is the time at which the last probe ended, whatever its result. lastProbeTime
	// does not change when no request could be sent, because the credentials were missing or the
	// endpoint was not usable.
	// +optional
	LastProbeTime *metav1.MicroTime `json:"lastProbeTime,omitempty"`

	// latencyMilliseconds is the time that the store took to answer the last probe, in
	// milliseconds, rounded up, from opening the connection to the end of the response
	// headers. latencyMilliseconds is absent if the store did not answer.
	// +kubebuilder:validation:Minimum=1
	// +optional
	LatencyMilliseconds *int64 `json:"latencyMilliseconds,omitempty"`

	// The fields below come from v1.

	// probe is the result of the last probe, except its time and latency.
	// +optional
	Probe *ProbeOutcome `json:"probe,omitempty"`

	// external is the bucket in the store that the operator created or adopted.
	// +optional
	External *storagev1.ExternalBucket `json:"external,omitempty"`

	// applied is the configuration that the operator has applied to the bucket.
	// +listType=map
	// +listMapKey=name
	// +optional
	Applied []storagev1.AppliedConfiguration `json:"applied,omitempty"`

	// unsupported names the declared configuration that the store does not support.
	// +listType=set
	// +optional
	Unsupported []string `json:"unsupported,omitempty"`

	// lastDriftCheckTime is the time at which the bucket's configuration was
	// last compared with the declared configuration and found, or made,
	// identical.
	// +optional
	LastDriftCheckTime *metav1.Time `json:"lastDriftCheckTime,omitempty"`

	// lastHandledReconcileAt is the value of the annotation
	// storage.koboshi.dev/reconcile-requested-at that was last acted on.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ProbeOutcome is the result of the last probe without its time and latency.
type ProbeOutcome struct {
	// reason is the outcome in one word.
	// +optional
	Reason string `json:"reason,omitempty"`

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

// StorageBucket declares a bucket in an S3-compatible object store outside the
// cluster. The controller probes the bucket at regular intervals and reports
// the result in the status. With management Manage, it also creates the bucket
// and keeps it as declared. Write new objects in v1.
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

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec declares the bucket.
	// +required
	Spec StorageBucketSpec `json:"spec"`

	// status is the last observed state of the bucket.
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
