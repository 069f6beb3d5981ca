package child

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// These labels name the owner of an object if an owner reference cannot be used or
// is not wanted.
const (
	markNamespace = "bugs.koboshi.dev/owner-namespace"
	markName      = "bugs.koboshi.dev/owner-name"
)

// Mark adds labels that name owner as the owner of obj. It keeps other labels.
func Mark(obj, owner client.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[markNamespace], labels[markName] = owner.GetNamespace(), owner.GetName()
	obj.SetLabels(labels)
}

// Marks returns the labels that Mark adds to the objects of an owner.
func Marks(owner client.Object) client.MatchingLabels {
	return client.MatchingLabels{markNamespace: owner.GetNamespace(), markName: owner.GetName()}
}

// MarkedBy returns a function that reports whether an object has the marks of the owner.
func MarkedBy(owner client.Object) func(client.Object) bool {
	return func(o client.Object) bool {
		l := o.GetLabels()
		return l[markNamespace] == owner.GetNamespace() && l[markName] == owner.GetName()
	}
}

// ToOwner maps a marked object to its owner. If the marks are edited, the event also carries the
// previous object, whose marks still name the owner.
func ToOwner() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		l := o.GetLabels()
		if l[markName] == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: l[markNamespace], Name: l[markName]}}}
	})
}
