// Package v1 defines version v1 of the API group storage.koboshi.dev: object stores and the buckets
// in them. Version v1 is the stored version, and the hub through which all other versions are
// converted.
//
// +kubebuilder:object:generate=true
// +groupName=storage.koboshi.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "storage.koboshi.dev", Version: "v1"}

	// SchemeBuilder registers the types with a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ObjectStore{}, &ObjectStoreList{},
		&StorageBucket{}, &StorageBucketList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
