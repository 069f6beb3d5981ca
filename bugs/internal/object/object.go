// Package object provides custom resources without generated code: a generic type with
// a spec and a status, a scheme for all of them, and a mapper that needs no discovery.
package object

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the API version of the custom resources of the track record. Example is the
// API version of a few kinds that have the names of built-in kinds.
var (
	Version = schema.GroupVersion{Group: "bugs.koboshi.dev", Version: "v1"}
	Example = schema.GroupVersion{Group: "example.com", Version: "v1"}
)

// Object is a custom resource.
type Object[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// DeepCopyObject implements runtime.Object.
func (o *Object[Spec, Status]) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// DeepCopy copies the object. It copies the spec and status by way of JSON.
func (o *Object[Spec, Status]) DeepCopy() *Object[Spec, Status] {
	c := &Object[Spec, Status]{TypeMeta: o.TypeMeta}
	o.DeepCopyInto(&c.ObjectMeta)
	c.Spec, c.Status = byJSON(o.Spec), byJSON(o.Status)
	return c
}

// List is a list of custom resources.
type List[Spec, Status any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Object[Spec, Status] `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *List[Spec, Status]) DeepCopyObject() runtime.Object {
	c := &List[Spec, Status]{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}

// byJSON copies a value. byJSON panics if the type cannot be encoded.
func byJSON[T any](in T) T {
	var out T
	data, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("copying a %T: %v", in, err))
	}
	return out
}
