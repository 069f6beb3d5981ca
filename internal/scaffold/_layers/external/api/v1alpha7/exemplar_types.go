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
// Replace text with your own fields, and then run `make generate manifests`. The markers
// become rules in the schema of the CRD, so that the API server refuses invalid objects.
type ExemplarSpec struct {
	// text is stored outside the cluster.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	Text string `json:"text"`
}

// ExemplarExternal identifies what the controller may have created outside the cluster.
type ExemplarExternal struct {
	// name is the name of the text in the store. No two objects have the same name there.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// state is Pending from before the first request to create the text until the text has
	// been read. From Pending on, the deletion of the object also deletes the text.
	//
	// +required
	// +kubebuilder:validation:Enum=Pending;Created
	State string `json:"state"`
}

// ExemplarStatus is the state that the controller last observed.
type ExemplarStatus struct {
	// observedGeneration is the metadata.generation for which the status was written. The
	// status is out of date while the two numbers differ.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// external is set before anything is created outside the cluster.
	//
	// +optional
	External *ExemplarExternal `json:"external,omitempty"`

	// conditions describe the state. Ready is True if the store matches the spec.
	// Reconciling is True while the controller still tries to reach this state.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Exemplar stores a text outside the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
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
