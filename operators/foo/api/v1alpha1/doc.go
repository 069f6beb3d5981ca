// Package v1alpha1 contains the API types of the group sample.koboshi.dev, version v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=sample.koboshi.dev
// +groupGoName=Sample
package v1alpha1
