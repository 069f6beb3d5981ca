// Package v1 is the API group post.example.com, version v1.
//
// +kubebuilder:object:generate=true
// +groupName=post.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the apiVersion of the objects in this package.
	GroupVersion = schema.GroupVersion{Group: "post.example.com", Version: "v1"}

	// SchemeBuilder collects the types that AddToScheme adds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
