package v1

// TagValue is the value of a tag.
// +kubebuilder:validation:MaxLength=256
type TagValue string

// VersioningState is Enabled or Suspended.
// +kubebuilder:validation:Enum=Enabled;Suspended
type VersioningState string

// Versioning states.
const (
	VersioningEnabled   VersioningState = "Enabled"
	VersioningSuspended VersioningState = "Suspended"
)

// LifecycleRule is one rule of a bucket's lifecycle.
//
// +kubebuilder:validation:XValidation:rule="has(self.expirationDays) || has(self.noncurrentVersionExpirationDays) || has(self.abortIncompleteMultipartUploadDays) || (has(self.expiredObjectDeleteMarker) && self.expiredObjectDeleteMarker)",message="must do something: set expirationDays, noncurrentVersionExpirationDays, abortIncompleteMultipartUploadDays or expiredObjectDeleteMarker"
// +kubebuilder:validation:XValidation:rule="!has(self.expirationDays) || !has(self.expiredObjectDeleteMarker) || !self.expiredObjectDeleteMarker",message="expirationDays and expiredObjectDeleteMarker exclude each other"
type LifecycleRule struct {
	// id of the rule, unique within the bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	ID string `json:"id"`

	// disabled keeps the rule without applying it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// prefix of the keys the rule is for; without it, all.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// expirationDays after its creation an object is deleted.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ExpirationDays *int32 `json:"expirationDays,omitempty"`

	// expiredObjectDeleteMarker removes delete markers that hide no version any
	// more.
	// +optional
	ExpiredObjectDeleteMarker bool `json:"expiredObjectDeleteMarker,omitempty"`

	// noncurrentVersionExpirationDays after it was replaced an old version is
	// deleted.
	// +kubebuilder:validation:Minimum=1
	// +optional
	NoncurrentVersionExpirationDays *int32 `json:"noncurrentVersionExpirationDays,omitempty"`

	// abortIncompleteMultipartUploadDays after its start an unfinished upload
	// is given up.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AbortIncompleteMultipartUploadDays *int32 `json:"abortIncompleteMultipartUploadDays,omitempty"`
}

// CORSRule is one rule of a bucket's cross-origin configuration.
type CORSRule struct {
	// allowedOrigins such as https://example.com; one * per origin is allowed.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +required
	AllowedOrigins []string `json:"allowedOrigins"`

	// allowedMethods are HTTP methods.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=GET;PUT;POST;DELETE;HEAD
	// +required
	AllowedMethods []string `json:"allowedMethods"`

	// allowedHeaders a page may send; one * per header is allowed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	AllowedHeaders []string `json:"allowedHeaders,omitempty"`

	// exposeHeaders a page may read from an answer.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	ExposeHeaders []string `json:"exposeHeaders,omitempty"`

	// maxAgeSeconds a browser may remember the answer to a preflight request.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
}

// Encryption is a bucket's default encryption.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyID) || self.algorithm == 'aws:kms'",message="kmsKeyID requires algorithm aws:kms",fieldPath=.kmsKeyID
type Encryption struct {
	// algorithm is AES256 or aws:kms.
	// +kubebuilder:validation:Enum=AES256;aws:kms
	// +required
	Algorithm string `json:"algorithm"`

	// kmsKeyID names the key for aws:kms; without it, the account's own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	KMSKeyID string `json:"kmsKeyID,omitempty"`

	// bucketKey has objects encrypted with a key of the bucket, which means
	// fewer requests to the key service.
	// +optional
	BucketKey bool `json:"bucketKey,omitempty"`
}

// PublicAccessBlock forbids ways of making a bucket public. What is not set is
// not forbidden.
type PublicAccessBlock struct {
	// blockPublicACLs refuses requests that set a public ACL.
	// +optional
	BlockPublicACLs bool `json:"blockPublicACLs,omitempty"`

	// ignorePublicACLs has public ACLs that exist ignored.
	// +optional
	IgnorePublicACLs bool `json:"ignorePublicACLs,omitempty"`

	// blockPublicPolicy refuses a bucket policy that makes the bucket public.
	// +optional
	BlockPublicPolicy bool `json:"blockPublicPolicy,omitempty"`

	// restrictPublicBuckets limits a bucket with a public policy to its own
	// account.
	// +optional
	RestrictPublicBuckets bool `json:"restrictPublicBuckets,omitempty"`
}

// ObjectLock keeps objects from being deleted or overwritten.
type ObjectLock struct {
	// defaultRetention is given to new objects that bring none of their own.
	// +optional
	DefaultRetention *DefaultRetention `json:"defaultRetention,omitempty"`
}

// DefaultRetention is the time for which new objects are kept.
//
// +kubebuilder:validation:XValidation:rule="has(self.days) != has(self.years)",message="exactly one of days and years is required"
type DefaultRetention struct {
	// mode is Governance, which some users may lift, or Compliance, which nobody
	// can.
	// +kubebuilder:validation:Enum=Governance;Compliance
	// +required
	Mode string `json:"mode"`

	// days objects are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +optional
	Days *int32 `json:"days,omitempty"`

	// years objects are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Years *int32 `json:"years,omitempty"`
}
