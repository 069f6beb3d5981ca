package controller

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
)

const (
	// downInterval is the longest time between two checks of a store that is
	// down.
	downInterval = 5 * time.Second

	// defaultHealthInterval is the CRD's default for spec.healthInterval.
	defaultHealthInterval = 30 * time.Second
)

// Stores reconciles ObjectStores. All fields are required.
type Stores struct {
	// Client reads objects from a cache, and writes them.
	Client client.Client
	// Events records the changes in health.
	Events events.EventRecorder
	// Clock gives the times of probes and transitions.
	Clock clock.Clock
	// Heartbeat is the minimum time between two status writes if only the time of the probe
	// has changed. Zero means that a new probe time alone never causes a write.
	Heartbeat time.Duration

	plan     *schedule.Plan
	registry *stores.Registry
	gate     *gate
	watched  []string
	// suspended holds the stores that were suspended at their last reconciliation.
	suspended sync.Map
}

// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=objectstores,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=objectstores/status,verbs=patch
// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=objectstores/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get;list;watch

// Reconcile checks the store of one ObjectStore if a check is due.
func (r *Stores) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if !watches(r.watched, req.Namespace) {
		return ctrl.Result{}, nil // only a bucket refers to the store, and the bucket's status reports the problem
	}
	var store storagev1.ObjectStore
	if err := r.Client.Get(ctx, req.NamespacedName, &store); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the object store: %w", err)
	}
	err := r.reconcile(ctx, store.DeepCopy())
	if err != nil && ctx.Err() != nil {
		// The manager is stopping. The next manager finishes the interrupted work.
		return ctrl.Result{}, nil
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: doubtPause}, nil
	}
	return ctrl.Result{}, err
}

func (r *Stores) reconcile(ctx context.Context, store *storagev1.ObjectStore) error {
	if err := r.keepWhileUsed(ctx, store); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(store)
	if why := suspension(store, store.Spec.Suspend); why != "" {
		r.suspended.Store(key, true)
		r.plan.Forget(key)
		r.gate.forget(key)
		return r.suspend(ctx, store, why)
	}
	if _, was := r.suspended.LoadAndDelete(key); was {
		r.plan.Poke(key)
	}
	connection, err := r.registry.Connect(ctx, client.ObjectKeyFromObject(store), stores.OfStore(store))
	if err != nil {
		return ignoreNotYet(err)
	}
	if connection.Problem != nil {
		return r.unusable(ctx, store, connection)
	}
	return r.check(ctx, store, connection)
}

func (r *Stores) forget(req ctrl.Request) {
	r.suspended.Delete(req.NamespacedName)
	r.plan.Forget(req.NamespacedName)
	r.registry.Forget(req.NamespacedName)
	r.gate.forget(req.NamespacedName)
	metrics.ForgetStore(req.String())
}

// keepWhileUsed keeps the finalizer on a store while buckets in it are managed,
// because they could not be deleted without the store.
func (r *Stores) keepWhileUsed(ctx context.Context, store *storagev1.ObjectStore) error {
	var users storagev1.StorageBucketList
	err := r.Client.List(ctx, &users, client.MatchingFields{managedIn: client.ObjectKeyFromObject(store).String()},
		client.UnsafeDisableDeepCopy, client.Limit(1))
	if err != nil {
		return fmt.Errorf("listing the buckets that are managed in the store: %w", err)
	}
	used, deleting := len(users.Items) > 0, !store.DeletionTimestamp.IsZero()
	if controllerutil.ContainsFinalizer(store, storagev1.Finalizer) == used || used && deleting {
		return nil
	}
	before := store.DeepCopy()
	if used {
		controllerutil.AddFinalizer(store, storagev1.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(store, storagev1.Finalizer)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, store, patch); err != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	return nil
}

// suspend reports that the store is not checked.
func (r *Stores) suspend(ctx context.Context, store *storagev1.ObjectStore, why string) error {
	before := store.DeepCopy()
	forgetLearnt(store)
	news := suspend(&store.Status.Conditions, store.Generation, r.Clock.Now(), why)
	store.Status.ObservedGeneration = store.Generation
	if err := r.write(ctx, before, store); err != nil {
		return err
	}
	if news && !store.Spec.Suspend && deprecatedPause(store) {
		r.Events.Eventf(store, nil, corev1.EventTypeWarning, reasonDeprecated, "Suspend", "%s", why)
	}
	return nil
}

// unusable reports a problem that a person must fix before requests can be sent to the
// store.
func (r *Stores) unusable(ctx context.Context, store *storagev1.ObjectStore, c stores.Connection) error {
	if c.Again {
		r.plan.Backoff(r.subject(store, c), 0)
	} else {
		r.plan.Park(r.subject(store, c))
	}
	r.gate.settle(client.ObjectKeyFromObject(store), c.Inputs, down, r.Clock.Now())
	before := store.DeepCopy()
	forgetLearnt(store)
	changed := r.set(store, storagev1.ConditionHealthy, failed(c.Problem))
	return r.save(ctx, before, store, changed)
}

// check checks the store if a check is due.
func (r *Stores) check(ctx context.Context, store *storagev1.ObjectStore, c stores.Connection) error {
	subject := r.subject(store, c)
	token := requestedAt(store)
	forced := token != "" && token != store.Status.LastHandledReconcileAt
	if turn := r.plan.Due(subject); turn.Cause == "" && !forced {
		return nil
	}
	key := client.ObjectKeyFromObject(store)
	remote, cancel := context.WithTimeout(ctx, schedule.Timeout(probeTimeout, subject.Interval))
	result := c.Store.Check(remote)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	metrics.StoreChecks.WithLabelValues(key.String(), string(result.Reason)).Inc()

	before := store.DeepCopy()
	forgetLearnt(store)
	verdict, standing := finding{metav1.ConditionFalse, string(result.Reason), result.Message}, down
	if result.Succeeded() || result.Reason == s3store.ReasonThrottled {
		// A store that asks for fewer requests is considered up.
		verdict.status, standing = metav1.ConditionTrue, up
	}
	store.Status.Probe = noteProbe(store.Status.Probe, result, r.Clock.Now(), thresholds{1, 1})
	changed := r.set(store, storagev1.ConditionHealthy, verdict)
	if token != "" {
		store.Status.LastHandledReconcileAt = token
	}
	// The gate must be set before the status is written. If the store is down, none of
	// its buckets is probed from here on, even if the write fails.
	r.gate.settle(key, c.Inputs, standing, r.Clock.Now())
	if err := r.save(ctx, before, store, changed); err != nil {
		return err
	}
	r.plan.Probed(r.subject(store, c), result.RetryAfter)
	return nil
}

// forgetLearnt drops status.tagsOnCreate if the spec has changed since the status was
// written.
func forgetLearnt(store *storagev1.ObjectStore) {
	if store.Status.ObservedGeneration != store.Generation {
		store.Status.TagsOnCreate = nil
	}
}

func (r *Stores) subject(store *storagev1.ObjectStore, c stores.Connection) schedule.Subject {
	healthy := meta.FindStatusCondition(store.Status.Conditions, storagev1.ConditionHealthy)
	s := schedule.Subject{
		Key:       client.ObjectKeyFromObject(store),
		UID:       store.UID,
		Interval:  store.Spec.HealthInterval.Duration,
		Inputs:    strconv.FormatInt(store.Generation, 10) + "/" + c.Inputs,
		Fresh:     store.Status.ObservedGeneration == store.Generation && healthy != nil,
		Heartbeat: r.Heartbeat,
	}
	if s.Interval <= 0 {
		s.Interval = defaultHealthInterval
	}
	s.Interval = max(s.Interval, minInterval)
	if healthy != nil && healthy.Status != metav1.ConditionTrue {
		s.Interval = min(s.Interval, downInterval)
	}
	if p := store.Status.Probe; p != nil && p.LastProbeTime != nil {
		s.LastProbe = p.LastProbeTime.Time
	}
	return s
}

func (r *Stores) set(store *storagev1.ObjectStore, kind string, f finding) (changed bool) {
	return set(&store.Status.Conditions, kind, store.Generation, r.Clock.Now(), f)
}

// save writes the status if there is anything new in it, and records an Event
// if the health has changed.
func (r *Stores) save(ctx context.Context, before, store *storagev1.ObjectStore, changed bool) error {
	r.set(store, storagev1.ConditionReady, summarise(store.Status.Conditions, storagev1.ConditionHealthy))
	stall(&store.Status.Conditions, r.Clock.Now())
	// Synced is present only while the store is suspended.
	meta.RemoveStatusCondition(&store.Status.Conditions, storagev1.ConditionSynced)
	store.Status.ObservedGeneration = store.Generation
	quiet := store.Status.DeepCopy()
	quiet.Probe = quieted(before.Status.Probe, store.Status.Probe)
	if equality.Semantic.DeepEqual(&before.Status, quiet) && !heartbeatDue(before.Status.Probe, store.Status.Probe, r.Heartbeat) {
		return nil
	}
	if err := r.write(ctx, before, store); err != nil {
		return err
	}
	if c := meta.FindStatusCondition(store.Status.Conditions, storagev1.ConditionHealthy); changed && c != nil {
		kind := corev1.EventTypeWarning
		if c.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeNormal
		}
		r.Events.Eventf(store, nil, kind, c.Reason, "Check", "%s", c.Message)
	}
	return nil
}

// write writes the status if it differs from before.
func (r *Stores) write(ctx context.Context, before, store *storagev1.ObjectStore) error {
	if equality.Semantic.DeepEqual(&before.Status, &store.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, store, patch); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	metrics.StatusWrites.WithLabelValues("ObjectStore").Inc()
	return nil
}
