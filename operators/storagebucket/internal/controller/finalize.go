package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

const (
	// emptyLimit limits how many objects one reconciliation removes, so that other
	// buckets get their turn and a changed spec is noticed.
	emptyLimit = 5000

	// lookAgain is the time from a deletion to the check that it took effect.
	lookAgain = time.Second

	// deleteAgain limits the time until a failed deletion is retried, even if the bucket
	// is probed less often. A deletion that fails for a reason that a person must fix is
	// retried only after this time; for other reasons, the first retry comes sooner.
	deleteAgain = time.Minute
)

// release removes the finalizer of an object whose bucket is kept. release needs no connection to
// the store, so a store that is down cannot block it. done is true if nothing else is left to do.
func (r *Buckets) release(ctx context.Context, t *task) (done bool, err error) {
	r.drift.forget(client.ObjectKeyFromObject(t))
	if !slices.Contains(t.Finalizers, storagev1.Finalizer) {
		r.plan.Forget(client.ObjectKeyFromObject(t))
		return true, nil
	}
	if keep := whyKept(t); keep != "" {
		return true, r.letGo(ctx, t, "Retained", keep)
	}
	return false, nil
}

// finalize deletes the bucket of an object that is being deleted, and then
// removes the object's finalizer.
func (r *Buckets) finalize(ctx context.Context, t *task) (ctrl.Result, error) {
	switch {
	case t.site.problem != nil, t.site.standing == down:
		return ctrl.Result{}, r.stuck(ctx, t)
	case t.site.standing == doubtful:
		// The deletion is soon tried again, because no event follows if the check finds the store
		// healthy.
		return ctrl.Result{RequeueAfter: doubtPause}, nil
	}
	leave, ok := r.sites.gate.enter(t.site.key, r.atOnce)
	if !ok {
		return ctrl.Result{RequeueAfter: doubtPause}, nil
	}
	defer leave()
	remote, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	again, err := r.deleteBucket(remote, ctx, t)
	var failure *s3store.Error
	switch {
	case errors.As(err, &failure):
		return r.deletionFailed(ctx, t, failure)
	case err != nil:
		return ctrl.Result{}, err
	default:
		return ctrl.Result{RequeueAfter: again}, nil
	}
}

// whyKept returns the reason for keeping a bucket, or "" if the bucket is to be
// deleted.
func whyKept(t *task) string {
	switch {
	case !t.Managed():
		return "it was only observed"
	case t.Spec.DeletionPolicy != storagev1.Delete:
		return "deletionPolicy is Retain"
	case t.Status.External == nil:
		return "it was never created by this object"
	default:
		return ""
	}
}

// letGo removes the finalizer and records an Event about the bucket.
func (r *Buckets) letGo(ctx context.Context, t *task, reason, why string) error {
	if err := r.ensureFinalizer(ctx, t, false); err != nil {
		return err
	}
	r.plan.Forget(client.ObjectKeyFromObject(t))
	r.event(t, true, reason, "Delete", fmt.Sprintf("bucket %q: %s", t.BucketName(), why))
	return nil
}

// stuck reports that the bucket cannot be deleted because its store cannot be used. The
// deletion is tried again when an event reports that the problem is fixed or the store is
// up.
func (r *Buckets) stuck(ctx context.Context, t *task) error {
	reason, message := reasonStoreUnavailable, fmt.Sprintf("the ObjectStore %q is not healthy", t.site.key.Name)
	if p := t.site.problem; p != nil {
		reason, message = p.reason, p.message
	}
	r.plan.Park(r.subject(t))
	r.set(t, storagev1.ConditionSynced, finding{metav1.ConditionFalse, reason,
		"the bucket cannot be deleted: " + message + "; fix this problem, or set deletionPolicy to Retain, so that " +
			"the bucket is kept and another StorageBucket can take it over"})
	return r.save(ctx, t)
}

// deletionFailed reports the reason for the failure, and plans the next attempt.
func (r *Buckets) deletionFailed(ctx context.Context, t *task, failure *s3store.Error) (ctrl.Result, error) {
	f := failed(failure)
	f.message = "the bucket cannot be deleted: " + f.message
	if failure.Reason == s3store.ReasonNotEmpty {
		f.message = "the bucket is not empty: empty it, or set forceEmpty, or set deletionPolicy to Retain"
	}
	r.set(t, storagev1.ConditionSynced, f)
	if err := r.save(ctx, t); err != nil {
		return ctrl.Result{}, err
	}
	if failure.Reason.Connection() && t.site.shared() {
		r.sites.doubt(client.ObjectKeyFromObject(t), t.site, r.Clock.Now())
	}
	subject := r.subject(t)
	subject.Interval = min(subject.Interval, deleteAgain)
	if failure.Reason.Terminal() {
		return ctrl.Result{RequeueAfter: max(failure.RetryAfter, subject.Interval)}, nil
	}
	// The failure may have a harmless cause, such as a lost response, so the deletion is
	// retried soon, and not only with the next regular probe.
	r.plan.Backoff(subject, failure.RetryAfter)
	return ctrl.Result{}, nil
}

// deleteBucket performs one step of the deletion and returns the time until the next
// step. It reads the bucket's state from the store before it removes anything, and again
// after the deletion. deleteBucket does not rely on responses to earlier requests.
func (r *Buckets) deleteBucket(remote, ctx context.Context, t *task) (again time.Duration, err error) {
	seen, err := t.site.store.Find(remote, t.BucketName())
	if err != nil {
		return 0, err
	}
	if !seen.Exists {
		if err := movedAway(t); err != nil {
			return 0, err
		}
		if wait := r.untilCreateIsOver(t, seen.StoreTime); wait > 0 {
			return wait, nil
		}
		return 0, r.letGo(ctx, t, "Deleted", "it no longer exists in the store")
	}
	tags, err := t.site.store.Tags(remote, t.BucketName())
	if err != nil {
		return 0, err
	}
	current := ownerOf(tags)
	switch ours, err := r.oursToDelete(remote, t, tags); {
	case err != nil:
		return 0, err
	case !ours:
		if err := movedAway(t); err != nil {
			return 0, err
		}
		return 0, r.letGo(ctx, t, "Retained", "it was not created by this object, so it is kept")
	case current.isOf(r.Cluster, t.UID) && current.origin != originCreated:
		return 0, r.letGo(ctx, t, "Retained", "it was adopted and not created by the operator, so it is kept")
	}
	again, err = r.removeBucket(remote, t)
	if err != nil || again > 0 {
		return again, err
	}
	if t.Status.External.State == storagev1.ExternalPending {
		return lookAgain, nil // a request to create it may still take effect
	}
	return 0, r.letGo(ctx, t, "Deleted", "it was deleted and no longer exists in the store")
}

// movedAway returns an error if the operator created the bucket at an endpoint other than the
// ObjectStore's current one, because the bucket may still exist at the original endpoint.
func movedAway(t *task) error {
	e := t.Status.External
	if e.State == storagev1.ExternalAdopted || e.Endpoint == t.site.endpoint {
		return nil
	}
	return &s3store.Error{
		Reason: s3store.ReasonBucketNotFound,
		Message: fmt.Sprintf("it was created at %s and does not exist at the ObjectStore's current endpoint: "+
			"correct the endpoint, or set deletionPolicy to Retain", e.Endpoint),
	}
}

// oursToDelete reports whether the bucket in the store belongs to this object. If the
// operator created the bucket and it has no tags yet, oursToDelete adds the tags, so
// that the next attempt can identify the owner.
func (r *Buckets) oursToDelete(ctx context.Context, t *task, tags map[string]string) (bool, error) {
	if ownerOf(tags).isOf(r.Cluster, t.UID) {
		return true, nil
	}
	if !none(tags) {
		return false, nil
	}
	ours, err := r.madeHere(ctx, t)
	if err != nil || !ours {
		return false, err
	}
	return true, r.mark(ctx, t, tags, owner{cluster: r.Cluster, uid: t.UID, origin: originCreated})
}

// removeBucket empties the bucket if that is allowed, and deletes it.
func (r *Buckets) removeBucket(ctx context.Context, t *task) (again time.Duration, err error) {
	r.set(t, storagev1.ConditionSynced, finding{metav1.ConditionFalse, reasonDeleting, "the bucket is being deleted"})
	if err := r.save(ctx, t); err != nil {
		return 0, err
	}
	if t.Spec.ForceEmpty {
		_, done, err := t.site.store.Empty(ctx, t.BucketName(), emptyLimit)
		if err != nil {
			return 0, err
		}
		if !done {
			return time.Millisecond, nil
		}
	}
	if err := t.site.store.Delete(ctx, t.BucketName()); err != nil {
		if t.Spec.ForceEmpty && s3store.ReasonOf(err) == s3store.ReasonNotEmpty {
			// Another client has written to the bucket meanwhile.
			return lookAgain, nil
		}
		return 0, err
	}
	seen, err := t.site.store.Find(ctx, t.BucketName())
	if err != nil || seen.Exists {
		return lookAgain, err
	}
	return 0, nil
}

// untilCreateIsOver returns how much longer an earlier request to create the bucket may still take
// effect. The process that sent the request may have ended before it received a response. If the
// store sends a date, the parameter now and the time in status.external come from the store's
// clock.
func (r *Buckets) untilCreateIsOver(t *task, now time.Time) time.Duration {
	e := t.Status.External
	if e.State != storagev1.ExternalPending {
		return 0
	}
	if now.IsZero() {
		now = r.Clock.Now()
	}
	return e.Since.Add(createWindow).Sub(now)
}
