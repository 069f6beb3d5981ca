package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GreetingSpec defines the words of the greeting.
type GreetingSpec struct {
	// To is the name to greet.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	To string `json:"to"`

	// Words come before the name. The webhook fills them in.
	//
	// +optional
	Words string `json:"words,omitempty"`
}

// GreetingStatus holds the written greeting.
type GreetingStatus struct {
	// Said is the greeting in the ConfigMap.
	//
	// +optional
	Said string `json:"said,omitempty"`
}

// Greeting is written into a ConfigMap of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="To",type=string,JSONPath=`.spec.to`
type Greeting struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec GreetingSpec `json:"spec"`

	// +optional
	Status GreetingStatus `json:"status,omitzero"`
}

// GreetingList is a list of Greetings.
//
// +kubebuilder:object:root=true
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Greeting `json:"items"`
}
