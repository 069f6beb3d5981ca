// Package keep is what a reconciler has to do right at each child, whatever class
// of bug it is about: find it, make it, mend it, delete it.
//
// It reads from the cache, which may be late. So nothing is made or deleted on the
// cache's word alone: the owner is read again from the server before, and an
// object that the cache does not know is read from the server too.
package keep

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

// Keeper keeps children.
type Keeper struct {
	client.Client
	// Live reads from the server.
	Live client.Reader
}

// New is a Keeper with the clients of a manager.
func New(mgr ctrl.Manager) Keeper {
	return Keeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
}

// Child makes a child be as set says: set changes child, which has a name and a
// namespace when Child is called. It reports whether the child is there to stay.
// If it is not, an event of the child or of the owner will come.
func (k Keeper) Child(ctx context.Context, owner, child client.Object, set func()) (bool, error) {
	key := client.ObjectKeyFromObject(child)
	err := k.Get(ctx, key, child)
	if err == nil {
		return k.mend(ctx, owner, child, set)
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
	// It is there, the cache does not know yet.
	Clear(child, key)
	if err := k.Live.Get(ctx, key, child); err != nil {
		return false, fmt.Errorf("reading %T %s, which exists already: %w", child, key, err)
	}
	return k.mend(ctx, owner, child, set)
}

// mend changes a child that is there.
func (k Keeper) mend(ctx context.Context, owner, child client.Object, set func()) (bool, error) {
	if !child.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	if ref := metav1.GetControllerOf(child); ref != nil && ref.UID != owner.GetUID() {
		return false, fmt.Errorf("%T %s belongs to %s %s with UID %s", child, child.GetName(), ref.Kind, ref.Name, ref.UID)
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

// Current asks the server whether an object is still the one that the caller has:
// not deleted, not another one of the same name, its spec not changed.
func (k Keeper) Current(ctx context.Context, have client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(have)
	now := have.DeepCopyObject().(client.Object)
	Clear(now, key)
	if err := k.Live.Get(ctx, key, now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return now.GetUID() == have.GetUID() && now.GetGeneration() == have.GetGeneration() &&
		now.GetDeletionTimestamp().IsZero(), nil
}

// Remove deletes this very object, not another one of the same name. That it is
// gone already is no error.
func (k Keeper) Remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := k.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting %T %s: %w", obj, obj.GetName(), err)
}

// Gone deletes an object that the server has, and reports whether it is gone. If
// it is not, an event of it will come.
func (k Keeper) Gone(ctx context.Context, obj client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(obj)
	if err := k.Live.Get(ctx, key, obj); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	if err := k.Remove(ctx, obj); err != nil {
		return false, err
	}
	Clear(obj, key)
	err := k.Live.Get(ctx, key, obj)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// Own makes owner the controller of child.
func (k Keeper) Own(owner, child client.Object) {
	// It fails only if there is another controller, which Child excludes.
	if err := ctrl.SetControllerReference(owner, child, k.Scheme()); err != nil {
		panic(err)
	}
}

// Owned tells whether owner is the controller of child.
func Owned(owner, child client.Object) bool { return metav1.IsControlledBy(child, owner) }

// Clear empties an object but for its name, so that it can be read into.
func Clear(obj client.Object, key client.ObjectKey) {
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
}
