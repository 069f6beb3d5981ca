package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagementPolicy limits what the operator may do to a bucket.
// +kubebuilder:validation:Enum=Observe;Manage
type ManagementPolicy string

// Management policies.
const (
	// Observe only probes the bucket: nothing in the store is created, changed or
	// deleted.
	Observe ManagementPolicy = "Observe"

	// Manage creates the bucket when it does not exist, keeps its configuration
	// as declared, and deletes it when deletionPolicy is Delete.
	Manage ManagementPolicy = "Manage"
)

// DeletionPolicy decides whether a managed bucket is deleted with its
// StorageBucket.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// Deletion policies.
const (
	// Retain leaves the bucket as it is.
	Retain DeletionPolicy = "Retain"

	// Delete deletes the bucket, provided the operator created it.
	Delete DeletionPolicy = "Delete"
)

// StorageBucketSpec declares a bucket and how the operator treats it.
//
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) != has(self.store)",message="exactly one of storeRef and store is required"
// +kubebuilder:validation:XValidation:rule="has(self.storeRef) == has(oldSelf.storeRef) && (!has(self.storeRef) || self.storeRef == oldSelf.storeRef)",message="storeRef is immutable: create another StorageBucket for a bucket in another store",fieldPath=.storeRef
// +kubebuilder:validation:XValidation:rule="!has(self.management) || self.management != 'Manage' || has(self.storeRef)",message="management Manage requires storeRef: a bucket of an inline store is only observed",fieldPath=.management
// +kubebuilder:validation:XValidation:rule="!has(self.forceEmpty) || !self.forceEmpty || (has(self.deletionPolicy) && self.deletionPolicy == 'Delete')",message="forceEmpty requires deletionPolicy Delete",fieldPath=.forceEmpty
// +kubebuilder:validation:XValidation:rule="!has(self.probe) || !has(self.probe.method) || self.probe.method != 'Canary' || (has(self.management) && self.management == 'Manage')",message="method Canary requires management Manage: it writes to the bucket",fieldPath=.probe.method
// +kubebuilder:validation:XValidation:rule="!has(self.probe) || !has(self.probe.method) || self.probe.method != 'Canary' || !has(self.objectLock) || !has(self.objectLock.defaultRetention)",message="method Canary is not possible with objectLock.defaultRetention: its objects could not be deleted",fieldPath=.probe.method
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.objectLock) || has(self.objectLock)",message="objectLock cannot be removed: a store cannot turn it off again",fieldPath=.objectLock
// +kubebuilder:validation:XValidation:rule="!has(self.objectLock) || !has(self.versioning) || self.versioning == 'Enabled'",message="objectLock requires versioning Enabled",fieldPath=.versioning
type StorageBucketSpec struct {
	// bucketName is the name of the bucket; the default is the name of this object. The name
	// consists of 3 to 63 lower-case letters, digits, dots and hyphens, begins and ends with a
	// letter or a digit, has no two dots in a row, and is not in the form of an IPv4 address (the
	// S3 naming rules for general purpose buckets). The name cannot be changed: for another bucket,
	// create another StorageBucket.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="must not contain two dots in a row"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$')",message="must not have the form of an IPv4 address"
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// storeRef names the ObjectStore that the bucket is in.
	// +optional
	StoreRef *ObjectStoreReference `json:"storeRef,omitempty"`

	// store declares the store of the bucket here, without an ObjectStore. An inline store is meant
	// for a single bucket that is only observed.
	// +optional
	Store *InlineStore `json:"store,omitempty"`

	// management is Observe or Manage. Observe, the default, changes nothing in
	// the store, whatever else is declared here.
	// +kubebuilder:default=Observe
	// +optional
	Management ManagementPolicy `json:"management,omitempty"`

	// deletionPolicy is Retain or Delete. With Delete, deleting this object
	// deletes the bucket too, if the operator created it and it is empty.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// forceEmpty deletes all objects, all their versions and all unfinished
	// multipart uploads before the bucket is deleted.
	// +optional
	ForceEmpty bool `json:"forceEmpty,omitempty"`

	// suspend stops all work on this object: no requests are sent to the store, and nothing in it
	// is changed. The deletion of a suspended object waits until the suspension ends.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// probe configures the checks of the bucket's health.
	// +kubebuilder:default={}
	// +optional
	Probe ProbeSpec `json:"probe,omitzero"`

	// driftInterval is the minimum time between two comparisons of a managed
	// bucket's configuration with the declared configuration, as a duration such as
	// 10m, from 1m to 168h. A comparison that is due is made together with the next
	// probe. Notifications from the store and the annotation
	// storage.koboshi.dev/reconcile-requested-at cause an immediate comparison.
	// +kubebuilder:default="10m0s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('1m') && duration(self) <= duration('168h'))",message="must be 1m to 168h"
	// +kubebuilder:validation:Type=string
	// +optional
	DriftInterval metav1.Duration `json:"driftInterval,omitzero"`

	// The fields below configure a managed bucket. Configuration that is not
	// declared is not touched. Configuration that is no longer declared is
	// removed from the bucket.

	// versioning keeps old versions of objects. Once Enabled, versioning can only be Suspended;
	// removing the field suspends it.
	// +optional
	Versioning VersioningState `json:"versioning,omitempty"`

	// tags of the bucket. Tags set by other clients are kept. Keys that begin with
	// storage.koboshi.dev/ are reserved for the operator.
	// +kubebuilder:validation:MaxProperties=44
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && !k.startsWith('storage.koboshi.dev/') && !k.startsWith('aws:'))",message="keys must have 1 to 128 characters and not begin with storage.koboshi.dev/ or aws:"
	// +optional
	Tags map[string]TagValue `json:"tags,omitempty"`

	// lifecycle rules delete old objects and old versions, and abort unfinished uploads.
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Lifecycle []LifecycleRule `json:"lifecycle,omitempty"`

	// policy is the bucket policy, written as an object instead of a string.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Policy *apiextensionsv1.JSON `json:"policy,omitempty"`

	// cors rules allow web pages to use the bucket from a browser.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	CORS []CORSRule `json:"cors,omitempty"`

	// encryption is the default encryption of new objects.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// publicAccessBlock forbids ways of making the bucket public.
	// +optional
	PublicAccessBlock *PublicAccessBlock `json:"publicAccessBlock,omitempty"`

	// objectLock protects objects from being deleted or overwritten. Object lock must be declared
	// from the start: a store can turn it on only when it creates the bucket.
	// +optional
	ObjectLock *ObjectLock `json:"objectLock,omitempty"`
}

// ObjectStoreReference names an ObjectStore.
type ObjectStoreReference struct {
	// name of the ObjectStore.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	Name string `json:"name"`

	// namespace of the ObjectStore; the default is the namespace of this
	// object. The ObjectStore must allow the namespace of this object.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// InlineStore is a store declared in the StorageBucket itself.
type InlineStore struct {
	// endpoint is the URL of the S3 API, for example https://s3.example.com or
	// http://127.0.0.1:9000. The URL must not contain a user, a query or a fragment. The bucket is
	// addressed in the path (endpoint/bucket).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be an http or https URL, for example https://s3.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getHostname() != ''",message="must name a host"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must not contain a user or a password: put credentials in the Secret named by credentialsSecretRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="must not contain a query or a fragment"
	// +required
	Endpoint string `json:"endpoint"`

	// region is the region that requests are signed for.
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Region string `json:"region,omitempty"`

	// credentialsSecretRef names the Secret, in the same namespace, that holds
	// the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
	// +required
	CredentialsSecretRef SecretReference `json:"credentialsSecretRef"`
}

// ProbeMethod is the kind of request that a probe makes.
// +kubebuilder:validation:Enum=Head;Canary
type ProbeMethod string

// Probe methods.
const (
	// ProbeHead sends a HEAD request for the bucket, which needs the
	// permission s3:ListBucket and changes nothing.
	ProbeHead ProbeMethod = "Head"

	// ProbeCanary writes, reads and deletes one small object under the key
	// .koboshi-canary/UID, which shows that the bucket can be written to.
	ProbeCanary ProbeMethod = "Canary"
)

// ProbeSpec configures the checks of a bucket's health.
//
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.interval) || duration(self.timeout) <= duration(self.interval)",message="timeout must not be longer than interval",fieldPath=.timeout
type ProbeSpec struct {
	// method is Head or Canary. Canary writes to the bucket, and therefore
	// needs management Manage.
	// +kubebuilder:default=Head
	// +optional
	Method ProbeMethod `json:"method,omitempty"`

	// interval is the time between two probes, as a duration such as 30s or 5m,
	// from 1s to 168h.
	// +kubebuilder:default="1m0s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('168h'))",message="must be 1s to 168h"
	// +kubebuilder:validation:Type=string
	// +optional
	Interval metav1.Duration `json:"interval,omitzero"`

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

// StorageBucketStatus is the last observed state of the bucket, and records
// what the operator has done to it.
type StorageBucketStatus struct {
	// conditions of the bucket.
	//
	// Healthy is True when the last probes succeeded. Healthy is Unknown with
	// the reason StoreUnavailable while the store itself is down.
	//
	// Synced is True when the spec has been carried out or, for a bucket that is
	// only observed, when it could be probed.
	//
	// Ready is True when the bucket is Synced and Healthy. If Ready is not
	// True, it has the reason of the condition that is not True.
	//
	// Stalled is present, and True, when Ready is False for a reason that does
	// not resolve itself: somebody has to change something.
	//
	// While the object is suspended, Synced is False with the reason Suspended, and Ready
	// is kept only if it is True.
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

	// probe is the result of the last probe.
	// +optional
	Probe *ProbeStatus `json:"probe,omitempty"`

	// external is the bucket in the store that the operator created or adopted.
	// +optional
	External *ExternalBucket `json:"external,omitempty"`

	// applied is the configuration that the operator has applied to the bucket.
	// Anything listed here that is no longer declared is removed from the
	// bucket.
	// +listType=map
	// +listMapKey=name
	// +optional
	Applied []AppliedConfiguration `json:"applied,omitempty"`

	// unsupported names the declared configuration that the store does not support.
	// +listType=set
	// +optional
	Unsupported []string `json:"unsupported,omitempty"`

	// lastDriftCheckTime is the time at which the bucket's configuration was last compared with the
	// declared configuration and found, or made, identical. A manager that has just started
	// schedules the next comparison from this time. To spare the API server, this time is usually
	// written together with other changes of the status. The time is written without other changes
	// only when it has advanced by --status-heartbeat. If driftInterval is shorter than
	// --status-heartbeat, the last comparison may be more recent than this time.
	// +optional
	LastDriftCheckTime *metav1.Time `json:"lastDriftCheckTime,omitempty"`

	// lastHandledReconcileAt is the value of the annotation
	// storage.koboshi.dev/reconcile-requested-at that was last acted on.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ExternalState is the progress in creating or adopting a bucket.
// +kubebuilder:validation:Enum=Pending;Created;Adopted
type ExternalState string

// External states.
const (
	// ExternalPending means that the bucket was found not to exist, and that
	// the request to create it may or may not have been sent.
	ExternalPending ExternalState = "Pending"

	// ExternalCreated means that the operator created the bucket, which now
	// carries the operator's tags.
	ExternalCreated ExternalState = "Created"

	// ExternalAdopted means that the bucket existed and was handed to the
	// operator, and that it now carries the operator's tags.
	ExternalAdopted ExternalState = "Adopted"
)

// ExternalBucket is a bucket in a store.
type ExternalBucket struct {
	// state is Pending, Created or Adopted.
	// +required
	State ExternalState `json:"state"`

	// bucketName is the name of the bucket in the store.
	// +required
	BucketName string `json:"bucketName"`

	// endpoint is the endpoint of the store that the bucket is in. If the endpoint of the
	// ObjectStore has changed since, the bucket is not created again at the new endpoint.
	// +required
	Endpoint string `json:"endpoint"`

	// since is the time at which the state began. For Pending, the time comes from the
	// store's clock.
	// +required
	Since metav1.Time `json:"since"`
}

// AppliedConfiguration is one piece of configuration that was applied to the
// bucket.
type AppliedConfiguration struct {
	// name of the field of spec.
	// +required
	Name string `json:"name"`

	// hash of the applied value. The hash shows whether the value in the spec has changed since it
	// was applied, without revealing the value.
	// +required
	Hash string `json:"hash"`

	// keys of the tags that were applied, if the field is tags. Tags that other clients set are
	// kept.
	// +listType=set
	// +optional
	Keys []string `json:"keys,omitempty"`
}

// StorageBucket declares a bucket in an object store outside the cluster. The operator checks the
// health of the bucket at regular intervals. With management Manage, it also creates the bucket and
// keeps it as declared.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=stb,categories=storage
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.bucketName`
// +kubebuilder:printcolumn:name="Management",type=string,JSONPath=`.spec.management`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Synced",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Store",type=string,priority=1,JSONPath=`.spec.storeRef.name`
// +kubebuilder:printcolumn:name="Latency",type=integer,priority=1,JSONPath=`.status.probe.latencyMilliseconds`,description="Milliseconds the store took to answer the last recorded probe."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.bucketName) || (size(self.metadata.name) >= 3 && size(self.metadata.name) <= 63 && !self.metadata.name.contains('..') && !self.metadata.name.matches('^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$'))",message="bucketName is required: metadata.name is not the name of a bucket (3 to 63 characters, no two dots in a row, not an IPv4 address)",fieldPath=.spec.bucketName
// +kubebuilder:validation:XValidation:rule="(has(self.spec.bucketName) ? self.spec.bucketName : self.metadata.name) == (has(oldSelf.spec.bucketName) ? oldSelf.spec.bucketName : oldSelf.metadata.name)",message="is immutable: create another StorageBucket for another bucket",fieldPath=.spec.bucketName
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

// BucketName returns the name of the bucket in the store.
func (b *StorageBucket) BucketName() string {
	if b.Spec.BucketName != "" {
		return b.Spec.BucketName
	}
	return b.Name
}

// Managed reports whether the operator may change the bucket. The bucket of an object with an
// inline store is only observed, even if the object bypassed the validation.
func (b *StorageBucket) Managed() bool {
	return b.Spec.Management == Manage && b.Spec.StoreRef != nil
}

// StoreKey returns the key of the ObjectStore the bucket is in; it is empty for an inline
// store.
func (b *StorageBucket) StoreKey() (namespace, name string) {
	ref := b.Spec.StoreRef
	if ref == nil {
		return "", ""
	}
	if ref.Namespace == "" {
		return b.Namespace, ref.Name
	}
	return ref.Namespace, ref.Name
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
