// Package v1alpha1 defines version v1alpha1 of the API group
// storage.koboshi.dev: resources that declare buckets in an object store outside the
// cluster.
//
// +kubebuilder:object:generate=true
// +groupName=storage.koboshi.dev
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// GroupVersion is the group and version of this API.
	GroupVersion = schema.GroupVersion{Group: "storage.koboshi.dev", Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types of this package with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &StorageBucket{}, &StorageBucketList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
