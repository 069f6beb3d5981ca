// Package v1 is the API of group usage.storage.koboshi.dev, version v1: what is
// in a bucket at the moment of asking. Nothing of it is stored, so there is no
// CustomResourceDefinition: the program usage-server answers for the group.
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
	// GroupVersion of the types in this package.
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
