// Package v1 contains the API types of the group view.koboshi.dev, version v1. These types
// declare the Markdown of a site, and how the site is served.
//
// +kubebuilder:object:generate=true
// +groupName=view.koboshi.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "view.koboshi.dev", Version: "v1"}

	// SchemeBuilder registers the types with a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MarkdownView{}, &MarkdownViewList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
