// Package controller reconciles StorageBuckets: it asks the store for each
// bucket when its time has come, and reports what it saw in the status.
//
// The store is outside the cluster and sends no events, so schedule.Ticker
// makes them: one for each object and slot, through a channel the controller
// watches. An event of any kind is only a reason to look. Whether the store is
// asked follows from the plan alone, so that neither the controller's own
// status writes nor anybody's label edits turn into load on the store.
package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/probe"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

const (
	// probeTimeout bounds one probe; short intervals shorten it further.
	probeTimeout = 5 * time.Second

	// minInterval is what the CRD enforces as well. Here it keeps a store safe
	// from an object that came past the CRD's validation.
	minInterval = time.Second
)

// Prober asks a store for a bucket. It returns soon after the context ends,
// and its result holds no secret.
type Prober interface {
	Probe(ctx context.Context, target probe.Target) probe.Result
}

// Reconciler keeps the status of StorageBuckets true. All fields are required.
type Reconciler struct {
	// Client reads StorageBuckets, from a cache, and writes their status.
	Client client.Client
	// Secrets reads single Secrets, from the API server: their content is kept
	// nowhere.
	Secrets client.Reader
	// Prober asks the store.
	Prober Prober
	// Events records changes of health.
	Events events.EventRecorder
	// Clock stamps probes and transitions, and drives the plan.
	Clock clock.Clock
	// MaxConcurrent is how many buckets are probed at the same time, so that
	// an endpoint that hangs does not hold up the others.
	MaxConcurrent int

	plan *schedule.Plan
}

// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=storagebuckets,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=storagebuckets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile looks at one StorageBucket and, when a probe is due, asks the
// store and reports. It keeps no timer of its own: the plan sends the next
// event.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var bucket storagev1alpha1.StorageBucket
	if err := r.Client.Get(ctx, req.NamespacedName, &bucket); err != nil {
		if apierrors.IsNotFound(err) {
			r.plan.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the storage bucket: %w", err)
	}
	if !bucket.DeletionTimestamp.IsZero() {
		// Nothing was made in the store, so there is nothing to clean up; and
		// the health of what is going away is of no interest.
		r.plan.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}

	credentials, err := r.readCredentials(ctx, &bucket)
	if err != nil {
		return ctrl.Result{}, err
	}
	subject := subjectOf(&bucket, credentials)
	if !r.plan.Due(subject) {
		return ctrl.Result{}, nil
	}

	seen := r.observe(ctx, &bucket, credentials)
	if ctx.Err() != nil {
		// The manager is stopping. A probe cut short says nothing of the
		// store, and must not be reported.
		return ctrl.Result{}, ctx.Err()
	}
	if err := r.report(ctx, &bucket, seen); err != nil {
		// Still due: the retry asks again rather than report an old result.
		return ctrl.Result{}, err
	}
	r.plan.Probed(subject, seen.result.RetryAfter)
	logf.FromContext(ctx).V(1).Info("probed", "reason", seen.result.Reason, "latency", seen.result.Latency.String())
	return ctrl.Result{}, nil
}

// subjectOf is what the plan has to know of a bucket.
func subjectOf(bucket *storagev1alpha1.StorageBucket, c credentials) schedule.Subject {
	s := schedule.Subject{
		Key:      client.ObjectKeyFromObject(bucket),
		UID:      bucket.UID,
		Interval: intervalOf(bucket),
		Inputs:   fmt.Sprintf("%d/%s", bucket.Generation, c.version),
		Fresh:    bucket.Status.ObservedGeneration == bucket.Generation,
	}
	if last := bucket.Status.LastProbeTime; last != nil {
		s.LastProbe = last.Time
	}
	return s
}

func intervalOf(bucket *storagev1alpha1.StorageBucket) time.Duration {
	return max(bucket.Spec.ProbeInterval.Duration, minInterval)
}

// observation is the outcome of one look at a bucket.
type observation struct {
	result probe.Result
	at     time.Time
	// asked says that the store was asked; it is not when something is
	// missing for that.
	asked bool
}

// observe asks the store, provided there is all that takes.
func (r *Reconciler) observe(ctx context.Context, bucket *storagev1alpha1.StorageBucket, c credentials) observation {
	endpoint, err := probe.ParseEndpoint(bucket.Spec.Endpoint)
	if err != nil {
		return observation{at: r.Clock.Now(), result: probe.Result{Reason: ReasonInvalidEndpoint, Message: err.Error()}}
	}
	if c.problem != nil {
		return observation{at: r.Clock.Now(), result: *c.problem}
	}
	ctx, cancel := context.WithTimeout(ctx, schedule.Timeout(probeTimeout, intervalOf(bucket)))
	defer cancel()
	result := r.Prober.Probe(ctx, probe.Target{
		Endpoint:    endpoint,
		Region:      bucket.Spec.Region,
		Bucket:      bucket.Spec.Bucket,
		Credentials: c.keys,
	})
	return observation{at: r.Clock.Now(), asked: true, result: result}
}

// report writes what was seen to the status, and records an Event when the
// health changed. The write fails when the object has changed since it was
// read, so that transitions are worked out from the newest status.
func (r *Reconciler) report(ctx context.Context, bucket *storagev1alpha1.StorageBucket, seen observation) error {
	before := bucket.DeepCopy()
	changed := applyObservation(&bucket.Status, bucket.Generation, seen)
	if statusEqual(&before.Status, &bucket.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, bucket, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // deleted meanwhile
		}
		return fmt.Errorf("writing the status: %w", err)
	}
	if changed {
		r.recordChange(bucket, seen.result)
	}
	return nil
}

// recordChange records an Event. Only the Healthy condition's status counts as
// a change: a store that is down may give another reason at every probe.
func (r *Reconciler) recordChange(bucket *storagev1alpha1.StorageBucket, result probe.Result) {
	eventType := corev1.EventTypeWarning
	if result.Succeeded() {
		eventType = corev1.EventTypeNormal
	}
	r.Events.Eventf(bucket, nil, eventType, string(result.Reason), "Probe", "%s", result.Message)
}
