package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialsSource is the source of the keys for a store.
// +kubebuilder:validation:Enum=Secret;Environment
type CredentialsSource string

// Sources of credentials.
const (
	// CredentialsFromSecret reads a static key pair from a Secret.
	CredentialsFromSecret CredentialsSource = "Secret"

	// CredentialsFromEnvironment uses the identity that the operator itself runs
	// with: environment variables, web identity (IRSA), pod identity or instance
	// role. This source works only in namespaces that the operator's command line
	// names, because there, every user who may create ObjectStores can act as the operator.
	CredentialsFromEnvironment CredentialsSource = "Environment"
)

// ObjectStoreSpec declares the address of an object store, how to connect to it,
// and the namespaces that may use it.
type ObjectStoreSpec struct {
	// endpoint is the URL of the S3 API, for example https://s3.example.com or
	// http://127.0.0.1:9000. The URL must not contain a user, a query or a fragment: credentials
	// belong in the Secret. The operator may be configured to refuse some addresses.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be an http or https URL, for example https://s3.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getHostname() != ''",message="must name a host"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must not contain a user or a password: put credentials in the Secret named by credentials.secretRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="must not contain a query or a fragment"
	// +required
	Endpoint string `json:"endpoint"`

	// region is the region that requests are signed for. Most stores other
	// than AWS accept the default.
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Region string `json:"region,omitempty"`

	// pathStyle addresses buckets in the path (endpoint/bucket) instead of in the host name
	// (bucket.endpoint). Almost every store other than AWS needs path-style addresses.
	// +kubebuilder:default=true
	// +optional
	PathStyle *bool `json:"pathStyle,omitempty"`

	// caBundle names the certificates of the authority that signs the
	// endpoint's certificate, in PEM. Without it, the certificates of the
	// operator's system are trusted.
	// +optional
	CABundle *CABundleReference `json:"caBundle,omitempty"`

	// expectedBucketOwner is the 12-digit ID of the AWS account that all buckets of this store
	// belong to. The ID is sent with each request for a bucket (x-amz-expected-bucket-owner): AWS
	// denies the request if the bucket is in another account, and the conditions of the bucket have
	// the reason AccessDenied. Other stores ignore it.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +optional
	ExpectedBucketOwner string `json:"expectedBucketOwner,omitempty"`

	// credentials sign the requests.
	// +required
	Credentials Credentials `json:"credentials"`

	// allowedNamespaces are the namespaces whose StorageBuckets may refer to
	// this store, in addition to its own namespace; * means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +optional
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`

	// suspend stops the checks of the store. The buckets of the store are still
	// reconciled.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// healthInterval is the time between two checks of the store itself, as a
	// duration such as 30s, from 1s to 24h. A store that is down is checked
	// at least every 5 seconds, so that its recovery is noticed soon.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="must be 1s to 24h"
	// +kubebuilder:validation:Type=string
	// +optional
	HealthInterval metav1.Duration `json:"healthInterval,omitzero"`

	// limits bound the load on the store. Each limit can only lower what the
	// operator's command line allows.
	// +optional
	Limits RequestLimits `json:"limits,omitzero"`
}

// CABundleReference names a key of a ConfigMap or a Secret in the namespace of
// the ObjectStore.
type CABundleReference struct {
	// kind is ConfigMap or Secret.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	// +kubebuilder:default=ConfigMap
	// +optional
	Kind string `json:"kind,omitempty"`

	// name of the ConfigMap or Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	Name string `json:"name"`

	// key is the key of the ConfigMap or Secret that holds the certificates.
	// +kubebuilder:default=ca.crt
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Key string `json:"key,omitempty"`
}

// Credentials name the keys that sign requests to a store.
// +kubebuilder:validation:XValidation:rule="(has(self.source) && self.source == 'Environment') != has(self.secretRef)",message="secretRef is required for source Secret, and not allowed for source Environment"
type Credentials struct {
	// source is Secret or Environment.
	// +kubebuilder:default=Secret
	// +optional
	Source CredentialsSource `json:"source,omitempty"`

	// secretRef names the Secret, in the namespace of the ObjectStore, that
	// holds the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for
	// temporary credentials, AWS_SESSION_TOKEN.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// RequestLimits bound the requests sent to one store.
type RequestLimits struct {
	// requestsPerSecond is the mean rate of requests. A burst may have as many requests
	// as this rate allows in a quarter of a second.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`

	// concurrency is the number of requests that may be in progress at the same time.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
}

// ObjectStoreStatus is the last observed state of the store.
type ObjectStoreStatus struct {
	// conditions of the store.
	//
	// Healthy is True when the store answered a signed request and accepted the credentials, and
	// False when the store did not; the reason of the condition names the error. While Healthy is
	// False, the buckets of the store are not probed: their Healthy condition is Unknown with the
	// reason StoreUnavailable.
	//
	// Ready is True when the endpoint is allowed, the credentials and the
	// certificates exist, and the store is Healthy.
	//
	// Stalled is present, and True, when Ready is False for a reason that does
	// not resolve itself: somebody has to change something.
	//
	// Synced is present only while the store is suspended: it is False with the
	// reason Suspended. While the store is suspended, Ready is kept only if it is True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status is
	// based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// probe is the last check of the store.
	// +optional
	Probe *ProbeStatus `json:"probe,omitempty"`

	// tagsOnCreate reports whether the store keeps the tags of the request that
	// creates a bucket. tagsOnCreate is absent until a bucket has been created.
	// +optional
	TagsOnCreate *bool `json:"tagsOnCreate,omitempty"`

	// lastHandledReconcileAt is the value of the annotation
	// storage.koboshi.dev/reconcile-requested-at that was last acted on.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ObjectStore declares an S3-compatible object store: its address, the credentials for it, and the
// namespaces that may use it. The operator checks the health of the store at regular intervals.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=obs,categories=storage
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Latency",type=integer,priority=1,JSONPath=`.status.probe.latencyMilliseconds`,description="Milliseconds the store took to answer the last recorded check."
// +kubebuilder:printcolumn:name="Region",type=string,priority=1,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectStore struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec declares the address of the store and how to use it.
	// +required
	Spec ObjectStoreSpec `json:"spec"`

	// status is the last observed state of the store.
	// +optional
	Status ObjectStoreStatus `json:"status,omitzero"`
}

// ObjectStoreList is a list of ObjectStores.
//
// +kubebuilder:object:root=true
type ObjectStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the ObjectStores.
	Items []ObjectStore `json:"items"`
}
