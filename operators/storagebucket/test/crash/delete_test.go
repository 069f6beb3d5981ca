package crash

import (
	"context"
	"testing"
	"time"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

func removeObject(ctx context.Context, w *world) error { return w.remove(ctx) }

func wantGone(ctx context.Context, w *world) error { return w.gone(ctx, nil) }

// filled creates a bucket that is as hard to empty as possible.
func filled(ctx context.Context, w *world) error {
	if err := settled(ctx, w, declareConfigured); err != nil {
		return err
	}
	return fill(ctx, w.name)
}

func TestBucketIsEmptiedAndDeletedWhereverTheOperatorDies(t *testing.T) {
	sweep(t, scenario{
		prepare: filled, act: removeObject, want: wantGone,
		writes: []string{"PATCH storagebuckets/status", "POST ?delete", "DELETE ?uploadId", "DELETE bucket", "PATCH storagebuckets", "PATCH objectstores"},
	})
}

func TestBucketIsEmptiedOneByOneWhereverTheOperatorDies(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		habit: noBatches, prepare: filled, act: removeObject, want: wantGone,
		writes: []string{"DELETE ?versionId", "DELETE ?uploadId", "DELETE bucket"},
		skip:   func(at int) bool { return at > 3 && at < 60 && at%9 != 0 },
	})
}

func emptyBucket(ctx context.Context, w *world) error {
	return settled(ctx, w, func(ctx context.Context, w *world) error {
		return w.declare(ctx, w.managed(storagev1.Delete, false))
	})
}

func TestEmptyBucketIsDeletedWhereverTheOperatorDies(t *testing.T) {
	sweep(t, scenario{
		prepare: emptyBucket, act: removeObject, want: wantGone,
		writes: []string{"DELETE bucket", "PATCH storagebuckets"},
	})
}

// The finalizer must be removed only when the bucket is known to be gone. A store's promise
// to delete the bucket is not enough.
func TestBucketIsSeenToBeGoneBeforeItsObjectIs(t *testing.T) {
	sweep(t, scenario{
		habit: deletesLater, prepare: emptyBucket, act: removeObject, want: wantGone,
		writes: []string{"DELETE bucket", "PATCH storagebuckets"},
	})
}

func TestRetainedBucketStaysAsItIsWhereverTheOperatorDies(t *testing.T) {
	sweep(t, scenario{
		prepare: func(ctx context.Context, w *world) error {
			err := settled(ctx, w, func(ctx context.Context, w *world) error {
				return w.declare(ctx, w.configured(storagev1.Retain, false))
			})
			if err == nil {
				err = fill(ctx, w.name)
			}
			if err == nil {
				w.base, err = w.note(ctx)
			}
			return err
		},
		act:    removeObject,
		want:   func(ctx context.Context, w *world) error { return w.gone(ctx, w.base) },
		writes: []string{"PATCH storagebuckets", "PATCH objectstores"},
	})
}

// The user deletes the object while the operator is dead. When the operator dies, the
// bucket may or may not have been created, and a request in progress may still create it.
// The operator must wait as long as a late request may create the bucket.
func TestBucketOfAnObjectDeletedMeanwhileIsNotOrphaned(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		act: declareConfigured, meddle: removeObject,
		want: func(ctx context.Context, w *world) error {
			b, err := w.bucket(ctx)
			if err == nil && b.DeletionTimestamp.IsZero() {
				// The operator survived, so the user did not delete the object.
				return wantCreated(ctx, w)
			}
			return wantGone(ctx, w)
		},
		limit: 100 * time.Second,
	})
}
