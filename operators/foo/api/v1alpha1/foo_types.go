package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FooSpec is the desired state, which users write.
//
// Replace image and replicas with your own fields, and then run `make manifests generate`. The
// markers become rules in the schema of the CRD, so that the API server refuses invalid objects.
type FooSpec struct {
	// image is the container image that the Pods run.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	Image string `json:"image"`

	// replicas is the number of Pods.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the state that the controller last observed.
type FooStatus struct {
	// observedGeneration is the metadata.generation for which the status was written. The
	// status is out of date while the two numbers differ.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// availableReplicas is the number of Pods that are available.
	//
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// conditions describe the state. Ready is True if all Pods run as the spec describes.
	// Reconciling is True while the cluster does not match the spec yet.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Foo runs a number of equal Pods, which belong to a Deployment.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name is the value of a label, so it can have at most 63 characters"
type Foo struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of Kubernetes objects.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec FooSpec `json:"spec"`

	// status is the observed state.
	//
	// +optional
	Status FooStatus `json:"status,omitzero"`
}

// FooList is a list of objects of the kind Foo.
//
// +kubebuilder:object:root=true
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Foo `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(SchemeGroupVersion, &Foo{}, &FooList{})
		return nil
	})
}
