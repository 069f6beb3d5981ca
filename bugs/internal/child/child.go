// Package child has what the controllers here do with the objects that they make,
// done so that it can be repeated at any time: after a kill, after an answer that
// was lost, with a cache that lags.
package child

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Again is when to call Remove again. To wait for an event would do as well, but
// not while the watch lags.
const Again = 50 * time.Millisecond

// Ensure makes obj, of which only the name is given, as set says. It writes only
// what is not so already, and only on top of what it has read: a cache that lags
// leads to AlreadyExists or a conflict, which is tried again, and never to a
// second object or to an older content. An object that is being deleted is left
// alone; its end is an event, after which Ensure is called again.
func Ensure(ctx context.Context, c client.Client, obj client.Object, set func() error) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		if err := set(); err != nil {
			return fmt.Errorf("describing %T %s: %w", obj, obj.GetName(), err)
		}
		return c.Create(ctx, obj)
	}
	if err != nil || !obj.GetDeletionTimestamp().IsZero() {
		return err
	}
	before := obj.DeepCopyObject()
	if err := set(); err != nil {
		return fmt.Errorf("describing %T %s: %w", obj, obj.GetName(), err)
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	return c.Update(ctx, obj)
}

// OwnedBy says whether the object is controlled by exactly this owner and not by
// one of the same name that was there before.
func OwnedBy(owner types.UID) func(client.Object) bool {
	return func(o client.Object) bool {
		ref := metav1.GetControllerOf(o)
		return ref != nil && ref.UID == owner
	}
}

// Remove deletes obj, of which only the name is given, if it is mine, and says
// whether it is gone. It asks the API server and not a cache, and deletes exactly
// what it has seen. If the object is not gone yet, Remove has to be called again.
func Remove(ctx context.Context, c client.Client, live client.Reader, obj client.Object, mine func(client.Object) bool) (gone bool, err error) {
	err = live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !mine(obj) {
		return true, nil
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err = c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return false, client.IgnoreNotFound(err)
}
