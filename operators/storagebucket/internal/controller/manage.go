package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

// createWindow is the time for which a request to create the bucket may still take effect after the
// state Pending was written. createWindow equals the time limit of one reconciliation.
const createWindow = remoteTimeout

// syncDue reports whether the existence and the configuration of the bucket must be
// checked now, and not only its health.
func (r *Buckets) syncDue(t *task, turn schedule.Turn) bool {
	if !t.Managed() {
		// The finalizer of a bucket that was managed before must be removed.
		return slices.Contains(t.Finalizers, storagev1.Finalizer)
	}
	driftDue := r.drift.due(t.StorageBucket, r.Clock.Now())
	return driftDue || turn.Cause != schedule.Slot || !inSync(t)
}

// inSync reports whether the current spec was carried out, as far as possible.
func inSync(t *task) bool {
	for _, c := range t.stored.Conditions {
		if c.Type == storagev1.ConditionSynced {
			// A setting that the store does not support now will not be supported a
			// minute later.
			done := c.Status == metav1.ConditionTrue || c.Reason == string(s3store.ReasonUnsupported)
			return done && c.ObservedGeneration == t.Generation
		}
	}
	return false
}

// sync creates and configures the bucket as declared. An *s3store.Error is reported in
// the status, and the schedule causes a retry; any other error comes from the API
// server.
func (r *Buckets) sync(ctx context.Context, t *task) error {
	if !t.Managed() {
		return r.ensureFinalizer(ctx, t, false)
	}
	err := r.ensureFinalizer(ctx, t, true)
	if err == nil {
		err = r.ensureBucket(ctx, t)
	}
	if err == nil {
		err = r.configure(ctx, t)
	}
	var failure *s3store.Error
	now := metav1.NewTime(r.Clock.Now())
	switch {
	case errors.As(err, &failure):
		r.set(t, storagev1.ConditionSynced, failed(failure))
	case err == nil:
		r.set(t, storagev1.ConditionSynced, found(reasonInSync, "the store holds what is declared"))
		t.Status.LastDriftCheckTime = &now
	}
	if err == nil || s3store.ReasonOf(err) == s3store.ReasonUnsupported {
		// A setting that the store does not support is tried again only at the next comparison.
		r.drift.checked(t.StorageBucket, now.Time)
	}
	return err
}

// ensureBucket creates the bucket if it does not exist, and ensures that it belongs
// to the object.
func (r *Buckets) ensureBucket(ctx context.Context, t *task) error {
	seen, err := t.site.store.Find(ctx, t.BucketName())
	if err != nil {
		return err
	}
	if !seen.Exists {
		return r.create(ctx, t, seen.StoreTime)
	}
	tags, err := t.site.store.Tags(ctx, t.BucketName())
	if err != nil {
		return err
	}
	return r.claim(ctx, t, tags)
}

// create creates the bucket, which the store has just reported as missing.
func (r *Buckets) create(ctx context.Context, t *task, storeTime time.Time) error {
	if err := r.refuseRival(ctx, t); err != nil {
		return err
	}
	if e := t.Status.External; e != nil && e.Endpoint != t.site.endpoint {
		return &s3store.Error{
			Reason: s3store.ReasonBucketNotFound,
			Message: fmt.Sprintf("the bucket was created at %s and does not exist at the ObjectStore's current endpoint: "+
				"correct the endpoint, or delete and recreate this object", e.Endpoint),
		}
	}
	if storeTime.IsZero() {
		storeTime = r.Clock.Now()
	}
	retry := t.Status.External != nil
	if err := r.setExternal(ctx, t, storagev1.ExternalPending, storeTime); err != nil {
		return err
	}
	me := owner{cluster: r.Cluster, uid: t.UID, origin: originCreated}
	err := t.site.store.Create(ctx, t.BucketName(), s3store.CreateOptions{
		Tags:       me.tagged(nil),
		ObjectLock: t.Spec.ObjectLock != nil,
	})
	switch reason := s3store.ReasonOf(err); {
	case err == nil, reason == s3store.ReasonBucketExists:
		// An existing bucket may be the result of our own earlier request, if the response
		// was lost. The tags of the bucket show its owner.
	case reason.Terminal():
		// The store has refused to create the bucket, but an earlier request may still be
		// in progress.
		if !retry {
			t.Status.External = nil
		}
		return err
	default:
		return err
	}
	tags, tagsErr := t.site.store.Tags(ctx, t.BucketName())
	if tagsErr != nil {
		return tagsErr
	}
	kept := ownerOf(tags) == me
	// A successful response does not prove that the bucket is new: some stores also report
	// success for a bucket that this account already has. Before a bucket without tags is
	// claimed, madeHere must therefore confirm that the operator created the bucket.
	if claimErr := r.claim(ctx, t, tags); claimErr != nil {
		return claimErr
	}
	if err == nil {
		return r.noteTagsOnCreate(ctx, t, kept)
	}
	return nil
}

// noteTagsOnCreate records in the ObjectStore's status whether the store keeps the tags
// from a request to create a bucket.
func (r *Buckets) noteTagsOnCreate(ctx context.Context, t *task, keeps bool) error {
	store := t.site.object
	if store.Status.TagsOnCreate != nil && *store.Status.TagsOnCreate == keeps {
		return nil
	}
	before := store.DeepCopy()
	store = store.DeepCopy()
	store.Status.TagsOnCreate = &keeps
	if err := r.Client.Status().Patch(ctx, store, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("recording whether the store keeps the tags of new buckets: %w", err)
	}
	t.site.object = store
	return nil
}

// learnTagsOnCreate calls noteTagsOnCreate for a bucket that one of our requests created, if it is
// not known yet whether the store keeps the tags of such a request. learnTagsOnCreate must run
// before the bucket is recorded as created, so that it runs again if the API server refuses the
// write or the manager dies. learnTagsOnCreate must also run before the operator adds tags, because
// until then, every tag of a pending bucket comes from the request that created the bucket.
func (r *Buckets) learnTagsOnCreate(ctx context.Context, t *task, kept bool) error {
	e := t.Status.External
	if t.site.object.Status.TagsOnCreate != nil || e == nil || e.State != storagev1.ExternalPending {
		return nil
	}
	return r.noteTagsOnCreate(ctx, t, kept)
}

// claim determines the owner of an existing bucket.
func (r *Buckets) claim(ctx context.Context, t *task, tags map[string]string) error {
	current := ownerOf(tags)
	if current.isOf(r.Cluster, t.UID) {
		if current.origin == originCreated {
			if err := r.learnTagsOnCreate(ctx, t, true); err != nil {
				return err
			}
		}
		return r.setExternal(ctx, t, current.state(), r.Clock.Now())
	}
	if none(tags) {
		ours, err := r.madeHere(ctx, t)
		if err != nil {
			return err
		}
		if ours {
			if err := r.learnTagsOnCreate(ctx, t, false); err != nil {
				return err
			}
			return r.mark(ctx, t, tags, owner{cluster: r.Cluster, uid: t.UID, origin: originCreated})
		}
	}
	if t.Annotations[storagev1.AnnotationAdopt] != t.BucketName() {
		return conflict(current, tags, t)
	}
	return r.adopt(ctx, t, tags, current)
}

// adopt takes over an existing bucket that is named in the annotation "adopt". If the bucket
// belongs to another cluster, the annotation adopt-from must name its owner. A bucket whose
// owner still exists in a namespace that the operator watches is never taken over.
func (r *Buckets) adopt(ctx context.Context, t *task, tags map[string]string, current owner) error {
	if err := r.refuseRival(ctx, t); err != nil {
		return err
	}
	me := owner{cluster: r.Cluster, uid: t.UID, origin: originAdopted}
	named := !none(tags) && t.Annotations[storagev1.AnnotationAdoptFrom] == current.String()
	if named && current.origin == originCreated {
		me.origin = originCreated
	}
	if !none(tags) {
		if current.cluster != r.Cluster && !named {
			return conflict(current, tags, t)
		}
		alive, err := r.alive(ctx, current, named)
		if err != nil {
			return err
		}
		if alive {
			return conflict(current, tags, t)
		}
	}
	t.takenOver = true
	return r.mark(ctx, t, tags, me)
}

// madeHere reports whether this operator created a bucket that has no tags. The operator's
// own bucket may have no tags if the response to the create request was lost, or if the
// operator stopped before it added the tags. docs/design explains each condition that
// madeHere checks.
func (r *Buckets) madeHere(ctx context.Context, t *task) (bool, error) {
	e := t.Status.External
	if e == nil || e.State != storagev1.ExternalPending || e.BucketName != t.BucketName() || e.Endpoint != t.site.endpoint {
		return false, nil
	}
	if keeps := t.site.object.Status.TagsOnCreate; keeps != nil && *keeps {
		return false, nil
	}
	at, listed, err := t.site.store.Creation(ctx, t.BucketName())
	if err != nil || !listed {
		return false, err
	}
	// Both the time in status.external and the creation time come from the store's
	// clock, in whole seconds.
	since := e.Since.Add(-time.Second)
	if at.Before(since) || at.After(since.Add(createWindow)) {
		return false, nil
	}
	return t.site.store.IsEmpty(ctx, t.BucketName())
}

// mark writes the ownership tags, and then verifies that no other client has
// overwritten them with its own.
func (r *Buckets) mark(ctx context.Context, t *task, tags map[string]string, me owner) error {
	if err := t.site.store.SetTags(ctx, t.BucketName(), me.tagged(tags)); err != nil {
		return err
	}
	now, err := t.site.store.Tags(ctx, t.BucketName())
	if err != nil {
		return err
	}
	if current := ownerOf(now); current != me {
		return conflict(current, now, t)
	}
	return r.setExternal(ctx, t, me.state(), r.Clock.Now())
}

// confirmOwner verifies, before something is written to a bucket, that the bucket
// belongs to the object at this moment.
func (r *Buckets) confirmOwner(ctx context.Context, t *task) *s3store.Error {
	tags, err := t.site.store.Tags(ctx, t.BucketName())
	var failure *s3store.Error
	switch {
	case errors.As(err, &failure):
		return failure
	case err != nil:
		return &s3store.Error{Reason: s3store.ReasonUnexpectedResponse, Message: "the bucket's tags could not be read"}
	case !ownerOf(tags).isOf(r.Cluster, t.UID):
		return conflict(ownerOf(tags), tags, t)
	default:
		return nil
	}
}

// conflict returns an error that names the bucket's owner and the remedy.
func conflict(current owner, tags map[string]string, t *task) *s3store.Error {
	message := fmt.Sprintf("bucket %q exists and was not created by this object: to let this object manage it, "+
		"set the annotation %s=%s", t.BucketName(), storagev1.AnnotationAdopt, t.BucketName())
	if !none(tags) {
		message = fmt.Sprintf("bucket %q belongs to another StorageBucket (uid %q, cluster %q): "+
			"delete that StorageBucket first; if it no longer exists, as after a restore or a move to another cluster, set the annotations %s=%s and %s=%s",
			t.BucketName(), current.uid, current.cluster,
			storagev1.AnnotationAdopt, t.BucketName(), storagev1.AnnotationAdoptFrom, current)
	}
	return &s3store.Error{Reason: s3store.ReasonOwnershipConflict, Message: message}
}

// setExternal writes the state of the bucket to the status. The status must be written
// before the operator continues.
func (r *Buckets) setExternal(ctx context.Context, t *task, state storagev1.ExternalState, since time.Time) error {
	e := t.Status.External
	if e != nil && e.State == state && e.BucketName == t.BucketName() && e.Endpoint == t.site.endpoint &&
		state != storagev1.ExternalPending {
		return nil
	}
	t.Status.External = &storagev1.ExternalBucket{
		State:      state,
		BucketName: t.BucketName(),
		Endpoint:   t.site.endpoint,
		Since:      metav1.NewTime(since),
	}
	if err := r.save(ctx, t); err != nil {
		return err
	}
	switch {
	case t.takenOver:
		r.event(t, true, "Adopted", "Adopt", fmt.Sprintf("bucket %q was taken over unchanged", t.BucketName()))
	case state == storagev1.ExternalCreated:
		r.event(t, true, "Created", "Create", fmt.Sprintf("bucket %q was created", t.BucketName()))
	}
	return nil
}

// refuseRival refuses to touch a bucket that an older object of this cluster manages:
// otherwise, the two objects would keep overwriting each other's changes.
func (r *Buckets) refuseRival(ctx context.Context, t *task) error {
	var claims storagev1.StorageBucketList
	err := r.Client.List(ctx, &claims, client.MatchingFields{claimIndex: claimOf(t.StorageBucket)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the objects that claim the bucket: %w", err)
	}
	for i := range claims.Items {
		other := &claims.Items[i]
		if other.UID != t.UID && older(other, t.StorageBucket) {
			return &s3store.Error{
				Reason: s3store.ReasonOwnershipConflict,
				Message: fmt.Sprintf("bucket %q is managed by the older StorageBucket %s/%s: delete one of them",
					t.BucketName(), other.Namespace, other.Name),
			}
		}
	}
	return nil
}

// alive reports whether the owner of a bucket must be assumed to exist. named is true if the
// annotation adopt-from names the owner, and so declares that the owner no longer exists. An owner
// in another cluster is assumed to be gone, because the annotation always names such an owner. If
// not all namespaces are watched, an owner in this cluster is assumed to exist unless the
// annotation names it.
func (r *Buckets) alive(ctx context.Context, o owner, named bool) (bool, error) {
	if o.cluster != r.Cluster {
		return false, nil
	}
	if len(r.sites.watched) > 0 && !named {
		return true, nil
	}
	var all storagev1.StorageBucketList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the storage buckets: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(b storagev1.StorageBucket) bool { return b.UID == o.uid }), nil
}

func older(a, b *storagev1.StorageBucket) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
