package crash

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// takenBy makes another client create the bucket while the operator is dead. If the
// operator had already created its bucket, the new bucket replaces the operator's.
func takenBy(tags map[string]string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if err := purge(ctx, w.name); err != nil {
			return err
		}
		if err := makeForeign(ctx, w.name, tags); err != nil {
			return err
		}
		var err error
		if w.foreign, err = w.note(ctx); err != nil {
			return err
		}
		// The annotation makes the operator check the bucket again, because an operator
		// that has no work left would otherwise not check it soon.
		return w.annotate(ctx, storagev1.AnnotationReconcileRequestedAt, "now")
	}
}

func wantConflict(ctx context.Context, w *world) error {
	if w.foreign == nil {
		// The operator survived, and no other client took the bucket.
		return wantCreated(ctx, w)
	}
	return w.conflicted(ctx)
}

// letGo deletes the StorageBucket, whose spec asks to empty and delete the bucket.
func letGo(ctx context.Context, w *world) error {
	if err := w.remove(ctx); err != nil {
		return err
	}
	return poll(ctx, func() error { return w.gone(ctx, w.foreign) })
}

func TestUntaggedBucketSomebodyMadeMeanwhileIsNotTouched(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{act: declareConfigured, meddle: takenBy(nil), want: wantConflict, then: letGo, writes: writesOfCreate})
}

func TestBucketSomebodyTaggedMeanwhileIsNotTouched(t *testing.T) {
	sweep(t, scenario{act: declareConfigured, want: wantConflict, then: letGo, writes: writesOfCreate, meddle: takenBy(map[string]string{
		tagCluster: "another-cluster", tagUID: "00000000-0000-0000-0000-000000000001", tagOrigin: "created",
	})})
}

// The store drops tags, so the operator may claim a bucket because of the
// time at which it was created, but it may not claim a bucket that contains an object.
func TestBucketSomebodyMadeMeanwhileIsNotTouchedThoughTheStoreDropsTags(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		habit: dropsTags, meddle: takenBy(nil), want: wantConflict, then: letGo,
		act: func(ctx context.Context, w *world) error { return w.declare(ctx, w.managed(storagev1.Delete, true)) },
	})
}

// If a store keeps tags, a bucket without tags cannot be the operator's, even if it is
// empty and was created at that very moment.
func TestEmptyBucketSomebodyMadeMeanwhileIsNotTouchedWhereTheStoreKeepsTags(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		prepare: func(ctx context.Context, w *world) error {
			store := &storagev1.ObjectStore{}
			if err := api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name}, store); err != nil {
				return err
			}
			store.Status.TagsOnCreate = new(true)
			return api.Status().Update(ctx, store)
		},
		act: declareConfigured, want: wantConflict, then: letGo,
		meddle: func(ctx context.Context, w *world) error {
			if err := purge(ctx, w.name); err != nil {
				return err
			}
			err := shop.MakeBucket(ctx, w.name)
			if err == nil {
				w.foreign, err = w.note(ctx)
			}
			if err != nil {
				return err
			}
			return w.annotate(ctx, storagev1.AnnotationReconcileRequestedAt, "now")
		},
	})
}

// A deletion in progress must not continue in a bucket that another client has created meanwhile.
func TestBucketSomebodyMadeDuringADeletionIsNotTouched(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		prepare: filled, act: removeObject,
		meddle: func(ctx context.Context, w *world) error {
			if err := purge(ctx, w.name); err != nil {
				return err
			}
			err := makeForeign(ctx, w.name, nil)
			if err == nil {
				w.foreign, err = w.note(ctx)
			}
			return err
		},
		want: func(ctx context.Context, w *world) error { return w.gone(ctx, w.foreign) },
	})
}
