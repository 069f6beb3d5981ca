// Package controller contains the controllers.
package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// onChange returns a handler that calls f for each object that is created, changed or deleted.
func onChange(f func(metav1.Object)) cache.ResourceEventHandler {
	handle := func(obj any) {
		// A cache that has missed a deletion passes on the last known state of the object.
		if deleted, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = deleted.Obj
		}
		if object, ok := obj.(metav1.Object); ok {
			f(object)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, obj any) { handle(obj) },
		DeleteFunc: handle,
	}
}

// inGroup reports whether the owner belongs to an API group, in any version.
func inGroup(owner *metav1.OwnerReference, group string) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == group
}
