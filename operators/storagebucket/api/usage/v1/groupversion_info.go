// Package v1 defines version v1 of the API group usage.storage.koboshi.dev, which reports
// the number and total size of the objects in a bucket. The program usage-server serves the
// group. The group has no CustomResourceDefinition, because its objects are not stored.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "usage.storage.koboshi.dev", Version: "v1"}

	// SchemeBuilder registers the types with a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &BucketUsage{}, &BucketUsageList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
