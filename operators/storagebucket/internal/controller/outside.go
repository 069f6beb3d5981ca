package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

// Controllers receives events from outside the cluster.
type Controllers struct {
	client  client.Client
	elected <-chan struct{}
	buckets *schedule.Plan
}

func newControllers(mgr ctrl.Manager, plan *schedule.Plan) *Controllers {
	return &Controllers{client: mgr.GetClient(), elected: mgr.Elected(), buckets: plan}
}

// Poke requests an immediate check of a bucket. If several managers run, only one is
// active, and the others forward the request to it by setting the same annotation that a
// person would set.
func (c *Controllers) Poke(ctx context.Context, bucket types.NamespacedName) error {
	var b storagev1.StorageBucket
	if err := c.client.Get(ctx, bucket, &b); err != nil {
		return fmt.Errorf("reading the storage bucket: %w", err)
	}
	select {
	case <-c.elected:
		c.buckets.Poke(bucket)
		return nil
	default:
	}
	b = *b.DeepCopy()
	before := b.DeepCopy()
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, storagev1.AnnotationReconcileRequestedAt, time.Now().UTC().Format(time.RFC3339Nano))
	if err := c.client.Patch(ctx, &b, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("asking the active manager to check the storage bucket: %w", err)
	}
	return nil
}

// Buckets returns the objects that declare the given bucket in the given store.
func (c *Controllers) Buckets(ctx context.Context, store types.NamespacedName, name string) ([]types.NamespacedName, error) {
	if err := c.client.Get(ctx, store, &storagev1.ObjectStore{}); err != nil {
		return nil, fmt.Errorf("reading the object store: %w", err)
	}
	var all storagev1.StorageBucketList
	err := c.client.List(ctx, &all, client.MatchingFields{storeIndex: store.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the buckets of the store: %w", err)
	}
	var found []types.NamespacedName
	for i := range all.Items {
		if all.Items[i].BucketName() == name {
			found = append(found, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return found, nil
}
