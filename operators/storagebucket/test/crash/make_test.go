package crash

import (
	"context"
	"testing"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

func wantCreated(ctx context.Context, w *world) error { return w.ready(ctx, storagev1.ExternalCreated) }

func declareConfigured(ctx context.Context, w *world) error {
	return w.declare(ctx, w.configured(storagev1.Delete, true))
}

var writesOfCreate = []string{
	"PATCH storagebuckets", "PATCH storagebuckets/status", "PATCH objectstores",
	"PUT bucket", "PUT ?versioning", "PUT ?policy", "PUT ?cors", "PUT ?tagging",
}

func TestBucketIsMadeAndConfiguredWhereverTheOperatorDies(t *testing.T) {
	sweep(t, scenario{act: declareConfigured, want: wantCreated, writes: writesOfCreate})
}

// Between the creation and the tagging of the bucket, nothing in the store
// identifies its owner.
func TestBucketIsMadeWhereverTheOperatorDiesThoughTheStoreDropsTags(t *testing.T) {
	sweep(t, scenario{
		habit: dropsTags,
		act:   func(ctx context.Context, w *world) error { return w.declare(ctx, w.managed(storagev1.Delete, true)) },
		want:  wantCreated, writes: []string{"PUT bucket", "PUT ?tagging"},
	})
}

func TestBucketIsReconfiguredWhereverTheOperatorDies(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		prepare: func(ctx context.Context, w *world) error { return settled(ctx, w, declareConfigured) },
		act: func(ctx context.Context, w *world) error {
			spec := w.managed(storagev1.Delete, true)
			spec.Versioning = storagev1.VersioningSuspended
			spec.Tags = map[string]storagev1.TagValue{"team": "archive", "owner": "ann"}
			return w.declare(ctx, spec)
		},
		want:   wantCreated,
		writes: []string{"PUT ?versioning", "PUT ?tagging", "DELETE ?policy", "DELETE ?cors", "PATCH storagebuckets/status"},
	})
}

// Configuration that is recorded before it is applied can be removed again.
func TestConfigurationTakenBackMeanwhileIsRemoved(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		act: declareConfigured,
		meddle: func(ctx context.Context, w *world) error {
			return w.declare(ctx, w.managed(storagev1.Delete, true))
		},
		want: wantCreated,
	})
}

func TestBucketThatVanishedMeanwhileIsMadeAgain(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		act: declareConfigured, want: wantCreated,
		meddle: func(ctx context.Context, w *world) error {
			if err := purge(ctx, w.name); err != nil {
				return err
			}
			return w.annotate(ctx, storagev1.AnnotationReconcileRequestedAt, "now")
		},
	})
}

func TestBucketIsAdoptedWhereverTheOperatorDies(t *testing.T) {
	wholeSet(t)
	sweep(t, scenario{
		prepare: func(ctx context.Context, w *world) error {
			if err := makeForeign(ctx, w.name, map[string]string{"team": "before", "cost": "42"}); err != nil {
				return err
			}
			var err error
			if w.foreign, err = w.note(ctx); err != nil {
				return err
			}
			spec := w.managed(storagev1.Delete, true)
			spec.Tags = map[string]storagev1.TagValue{"team": "after"}
			if err := w.declare(ctx, spec); err != nil {
				return err
			}
			w.base = w.foreign
			return poll(ctx, func() error { return w.conflicted(ctx) })
		},
		act:  func(ctx context.Context, w *world) error { return w.annotate(ctx, storagev1.AnnotationAdopt, w.name) },
		want: func(ctx context.Context, w *world) error { return w.ready(ctx, storagev1.ExternalAdopted) },
		// The operator did not create the bucket, so it must not delete it, whatever the
		// policy is.
		then: func(ctx context.Context, w *world) error {
			adopted, err := w.note(ctx)
			if err != nil {
				return err
			}
			if err := w.remove(ctx); err != nil {
				return err
			}
			return poll(ctx, func() error { return w.gone(ctx, adopted) })
		},
		writes: []string{"PUT ?tagging", "PATCH storagebuckets/status"},
	})
}

// settled waits until a declared bucket exists.
func settled(ctx context.Context, w *world, declare func(context.Context, *world) error) error {
	if err := declare(ctx, w); err != nil {
		return err
	}
	return poll(ctx, func() error { return wantCreated(ctx, w) })
}
