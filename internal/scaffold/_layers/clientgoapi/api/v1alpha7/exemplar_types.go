/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package v1alpha7

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ExemplarSpec is the desired state, which users write.
//
// Replace image and replicas with your own fields, and then run `make manifests generate`. The
// markers become rules in the schema of the CRD, so that the API server refuses invalid objects.
type ExemplarSpec struct {
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

// ExemplarStatus is the state that the controller last observed.
type ExemplarStatus struct {
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

// Exemplar runs a number of equal Pods, which belong to a Deployment.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name is the value of a label, so it can have at most 63 characters"
type Exemplar struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of Kubernetes objects.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec ExemplarSpec `json:"spec"`

	// status is the observed state.
	//
	// +optional
	Status ExemplarStatus `json:"status,omitzero"`
}

// ExemplarList is a list of objects of the kind Exemplar.
//
// +kubebuilder:object:root=true
type ExemplarList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Exemplar `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(SchemeGroupVersion, &Exemplar{}, &ExemplarList{})
		return nil
	})
}
