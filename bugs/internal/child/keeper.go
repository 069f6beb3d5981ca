// Package child creates, repairs and deletes the objects that a controller makes for its
// own resource. The controllers of the track record use this package, so that each of them
// handles its children correctly whatever its bug is.
//
// Every operation can be repeated at any time: after a kill, after a lost response, or with
// a lagging cache. Nothing is created or deleted based on the cache alone. Before a child
// is created, its owner is read from the server again. Before a child is deleted, the child
// itself is read from the server again.
package child

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keeper keeps the children of owners in their desired state.
type Keeper struct {
	client.Client
	// Live reads from the server; Client reads from the cache.
	Live client.Reader
}

// NewKeeper returns a Keeper with the clients of a manager.
func NewKeeper(mgr ctrl.Manager) Keeper {
	return Keeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
}

// Ensure creates or updates child, which needs only a name and a namespace; set fills in the rest.
// Ensure writes only if set changes something, and reports whether the child exists and is not
// being deleted. If Ensure reports false, an event of the child or the owner will follow, and the
// caller should then call Ensure again.
func (k Keeper) Ensure(ctx context.Context, owner, child client.Object, set func()) (bool, error) {
	key := client.ObjectKeyFromObject(child)
	err := k.Get(ctx, key, child)
	if err == nil {
		return k.repair(ctx, owner, child, set)
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading %T %s: %w", child, key, err)
	}
	if current, err := k.Current(ctx, owner); err != nil || !current {
		return false, err
	}
	set()
	err = k.Create(ctx, child)
	if err == nil {
		return true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating %T %s: %w", child, key, err)
	}
	// The child exists, but the cache does not have it yet.
	blank(child, key)
	if err := k.Live.Get(ctx, key, child); err != nil {
		return false, fmt.Errorf("reading the existing %T %s: %w", child, key, err)
	}
	return k.repair(ctx, owner, child, set)
}

// repair updates an existing child.
func (k Keeper) repair(ctx context.Context, owner, child client.Object, set func()) (bool, error) {
	if !child.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	if ref := metav1.GetControllerOf(child); ref != nil && ref.UID != owner.GetUID() {
		return false, fmt.Errorf("cannot repair %T %s, because it belongs to %s %s (UID %s)", child, child.GetName(), ref.Kind, ref.Name, ref.UID)
	}
	before := child.DeepCopyObject()
	set()
	if equality.Semantic.DeepEqual(before, child) {
		return true, nil
	}
	if err := k.Update(ctx, child); err != nil {
		return false, fmt.Errorf("updating %T %s: %w", child, child.GetName(), err)
	}
	return true, nil
}

// Current asks the server whether the caller's copy of an object is up to date, which means that
// the object was not deleted or replaced by another object of the same name, and that its spec has
// not changed.
func (k Keeper) Current(ctx context.Context, have client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(have)
	now := have.DeepCopyObject().(client.Object)
	blank(now, key)
	if err := k.Live.Get(ctx, key, now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return now.GetUID() == have.GetUID() && now.GetGeneration() == have.GetGeneration() &&
		now.GetDeletionTimestamp().IsZero(), nil
}

// Remove deletes the child if mine accepts it, and reports whether the child is gone. Only the name
// and namespace of the child need to be set. Remove deletes exactly the object that it has read
// from the server. If Remove reports false, an event of the child will follow, and the caller
// should then call Remove again.
func (k Keeper) Remove(ctx context.Context, child client.Object, mine func(client.Object) bool) (gone bool, err error) {
	key := client.ObjectKeyFromObject(child)
	if gone, err := k.absent(ctx, child, key, mine); err != nil || gone {
		return gone, err
	}
	if !child.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	uid, version := child.GetUID(), child.GetResourceVersion()
	err = k.Delete(ctx, child, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting %T %s: %w", child, key, err)
	}
	return k.absent(ctx, child, key, mine)
}

// absent reads the child from the server, and reports whether it does not exist.
func (k Keeper) absent(ctx context.Context, child client.Object, key client.ObjectKey, mine func(client.Object) bool) (bool, error) {
	blank(child, key)
	err := k.Live.Get(ctx, key, child)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", child, key, err)
	}
	return !mine(child), nil
}

// Own makes owner the controller of child.
func (k Keeper) Own(owner, child client.Object) {
	// SetControllerReference fails only if the child has another controller, which Ensure
	// has ruled out.
	if err := ctrl.SetControllerReference(owner, child, k.Scheme()); err != nil {
		panic(err)
	}
}

// OwnedBy returns a function that reports whether an object is controlled by exactly
// this owner, not by an earlier owner of the same name.
func OwnedBy(owner client.Object) func(client.Object) bool {
	return func(o client.Object) bool { return metav1.IsControlledBy(o, owner) }
}

// blank empties an object except for its name and namespace, so that another state can be
// read into it.
func blank(obj client.Object, key client.ObjectKey) {
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
}
