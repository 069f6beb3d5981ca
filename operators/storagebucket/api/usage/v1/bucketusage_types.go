package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BucketUsage reports the number and total size of the objects in the bucket that
// the StorageBucket of the same name and namespace declares. The objects are counted during
// the request, unless they were counted in the last few minutes: see measuredAt.
// BucketUsages cannot be watched or written.
//
// +kubebuilder:object:root=true
type BucketUsage struct {
	metav1.TypeMeta `json:",inline"`

	// metadata has the name, the namespace and the labels of the StorageBucket.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// bucketName is the name of the bucket in the store.
	BucketName string `json:"bucketName"`

	// store is the ObjectStore the bucket is in, as namespace/name, or "inline"
	// when the StorageBucket has an inline store.
	Store string `json:"store"`

	// objects is the number of objects in the bucket, not counting old versions. This
	// field is absent if the objects could not be counted; see reason.
	// +optional
	Objects *int64 `json:"objects,omitempty"`

	// bytes is the total size of the objects, not counting old versions. This field is absent if
	// the field objects is absent.
	// +optional
	Bytes *int64 `json:"bytes,omitempty"`

	// truncated means that counting stopped at the server's limit of objects: the
	// bucket holds at least as many objects and bytes as reported.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// measuredAt is the time at which counting ended, whether it succeeded or not.
	MeasuredAt metav1.Time `json:"measuredAt"`

	// reason is the cause of a failed count, in one word; it is absent if the objects were
	// counted.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message explains the reason and what to do about it.
	// +optional
	Message string `json:"message,omitempty"`
}

// BucketUsageList is a list of BucketUsages. The list includes the buckets that could not be
// measured, with the reason.
//
// +kubebuilder:object:root=true
type BucketUsageList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata has the token for the next page if the list was requested in pages.
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the BucketUsages.
	Items []BucketUsage `json:"items"`
}

// OpenAPIModelName is the name of the type in the published schema.
func (BucketUsage) OpenAPIModelName() string { return "dev.koboshi.storage.usage.v1.BucketUsage" }

// OpenAPIModelName is the name of the type in the published schema.
func (BucketUsageList) OpenAPIModelName() string {
	return "dev.koboshi.storage.usage.v1.BucketUsageList"
}
