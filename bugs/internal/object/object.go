// Package object has custom resources without generated code: a type with a spec
// and a status, the scheme that knows all of them, and a mapper that needs no
// discovery.
package object

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all custom resources of the track record.
const Group = "bugs.koboshi.dev"

// Version is the API version of all custom resources of the track record.
var Version = schema.GroupVersion{Group: Group, Version: "v1"}

// Object is a custom resource.
type Object[Spec, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// DeepCopyObject implements runtime.Object.
func (o *Object[Spec, Status]) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// DeepCopy copies all; the spec and the status by way of JSON.
func (o *Object[Spec, Status]) DeepCopy() *Object[Spec, Status] {
	c := &Object[Spec, Status]{TypeMeta: o.TypeMeta}
	o.DeepCopyInto(&c.ObjectMeta)
	c.Spec, c.Status = byJSON(o.Spec), byJSON(o.Status)
	return c
}

// List is a list of them.
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

// byJSON copies a value. What cannot be copied is a mistake in the type.
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
