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

	// prefix of the keys that the rule applies to; the default is all keys.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// expirationDays is the age in days at which an object is deleted.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ExpirationDays *int32 `json:"expirationDays,omitempty"`

	// expiredObjectDeleteMarker removes delete markers that no longer hide any
	// version.
	// +optional
	ExpiredObjectDeleteMarker bool `json:"expiredObjectDeleteMarker,omitempty"`

	// noncurrentVersionExpirationDays is the number of days after which a
	// version that has been replaced is deleted.
	// +kubebuilder:validation:Minimum=1
	// +optional
	NoncurrentVersionExpirationDays *int32 `json:"noncurrentVersionExpirationDays,omitempty"`

	// abortIncompleteMultipartUploadDays is the age in days at which an unfinished
	// upload is aborted.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AbortIncompleteMultipartUploadDays *int32 `json:"abortIncompleteMultipartUploadDays,omitempty"`
}

// CORSRule is one rule of a bucket's cross-origin configuration.
type CORSRule struct {
	// allowedOrigins are origins such as https://example.com; each may contain one *.
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

	// allowedHeaders are the headers that a page may send; each may contain one *.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	AllowedHeaders []string `json:"allowedHeaders,omitempty"`

	// exposeHeaders are the response headers that a page may read.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	ExposeHeaders []string `json:"exposeHeaders,omitempty"`

	// maxAgeSeconds is the number of seconds for which a browser may remember the
	// response to a preflight request.
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

	// kmsKeyID names the key for aws:kms; the default is the account's own key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	KMSKeyID string `json:"kmsKeyID,omitempty"`

	// bucketKey encrypts objects with a key of the bucket, which means fewer
	// requests to the key service.
	// +optional
	BucketKey bool `json:"bucketKey,omitempty"`
}

// PublicAccessBlock forbids ways of making a bucket public. A field that is
// not set forbids nothing.
type PublicAccessBlock struct {
	// blockPublicACLs refuses requests that set a public ACL.
	// +optional
	BlockPublicACLs bool `json:"blockPublicACLs,omitempty"`

	// ignorePublicACLs makes the store ignore existing public ACLs.
	// +optional
	IgnorePublicACLs bool `json:"ignorePublicACLs,omitempty"`

	// blockPublicPolicy refuses a bucket policy that makes the bucket public.
	// +optional
	BlockPublicPolicy bool `json:"blockPublicPolicy,omitempty"`

	// restrictPublicBuckets limits access to a bucket with a public policy to
	// the account of the bucket.
	// +optional
	RestrictPublicBuckets bool `json:"restrictPublicBuckets,omitempty"`
}

// ObjectLock protects objects from being deleted or overwritten.
type ObjectLock struct {
	// defaultRetention applies to new objects that do not set a retention themselves.
	// +optional
	DefaultRetention *DefaultRetention `json:"defaultRetention,omitempty"`
}

// DefaultRetention is the time for which new objects are kept.
//
// +kubebuilder:validation:XValidation:rule="has(self.days) != has(self.years)",message="exactly one of days and years is required"
type DefaultRetention struct {
	// mode is Governance, from which users with a special permission are exempt, or
	// Compliance, from which no user is exempt.
	// +kubebuilder:validation:Enum=Governance;Compliance
	// +required
	Mode string `json:"mode"`

	// days is the number of days for which objects are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +optional
	Days *int32 `json:"days,omitempty"`

	// years is the number of years for which objects are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Years *int32 `json:"years,omitempty"`
}
