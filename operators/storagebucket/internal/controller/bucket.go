// Package controller reconciles ObjectStores and StorageBuckets.
//
// The stores are outside the cluster and send no events, so schedule.Ticker creates the
// events: one for each object and slot, through a channel that the controller watches. An
// event only triggers a reconciliation, and schedule.Plan decides whether the store is
// probed. Therefore, an event that was caused by a status write or an edited label puts no
// load on a store.
package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

const (
	// probeTimeout limits one probe if the spec does not. For short intervals,
	// the limit is shorter.
	probeTimeout = 5 * time.Second

	// remoteTimeout limits the time that one reconciliation spends on requests to a
	// store. The next reconciliation does the rest of the work.
	remoteTimeout = time.Minute

	// minInterval is the CRD's minimum for the interval between probes. The minimum is enforced
	// here as well, to protect stores from an object that bypassed the CRD's validation.
	minInterval = time.Second

	// defaultInterval is the CRD's default for the interval between probes.
	defaultInterval = time.Minute

	// doubtPause is the time after which a waiting bucket is tried again. Usually, the
	// bucket waits for a check of its store.
	doubtPause = 250 * time.Millisecond
)

// Buckets reconciles StorageBuckets. All fields are required.
type Buckets struct {
	// Client reads objects from a cache, and writes them.
	Client client.Client
	// Events records the work that was done and the changes in health.
	Events events.EventRecorder
	// Clock gives the times of probes and transitions.
	Clock clock.Clock
	// Cluster identifies this cluster in the ownership tags.
	Cluster string
	// Heartbeat is the minimum time between two status writes if only the time of the
	// probe has changed. Zero means that a new probe time alone never causes a write.
	Heartbeat time.Duration

	plan  *schedule.Plan
	sites *sites
	drift *driftClock
	// atOnce limits how many buckets of one store are managed at the same time, so that
	// a slow store leaves workers for the other stores.
	atOnce int
}

// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=storagebuckets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=storagebuckets/status,verbs=patch
// +kubebuilder:rbac:groups=storage.koboshi.dev,resources=storagebuckets/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,resourceNames=kube-system

// task is a StorageBucket under reconciliation.
type task struct {
	*storagev1.StorageBucket
	// stored is the status in the API server.
	stored storagev1.StorageBucketStatus
	site   site
	// takenOver reports whether this reconciliation adopted the bucket.
	takenOver bool
}

// Reconcile does the work that is due for one StorageBucket. Reconcile sets no timer, because the
// schedule (r.plan) sends the next event.
func (r *Buckets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var bucket storagev1.StorageBucket
	if err := r.Client.Get(ctx, req.NamespacedName, &bucket); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading the storage bucket: %w", err)
	}
	// The object that was read belongs to the cache and must not be changed; see CacheOptions.
	t := &task{StorageBucket: &bucket, stored: bucket.Status}
	t.Status = *bucket.Status.DeepCopy()
	result, err := r.reconcile(ctx, t)
	if err != nil && ctx.Err() != nil {
		// The manager is stopping. The next manager finishes the interrupted work.
		return ctrl.Result{}, nil
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// The cache is stale. The next reconciliation asks the store for the state of the
		// bucket, and so finds what this reconciliation has done there.
		return ctrl.Result{RequeueAfter: doubtPause}, nil
	}
	return result, err
}

func (r *Buckets) reconcile(ctx context.Context, t *task) (ctrl.Result, error) {
	if why := suspension(t, t.Spec.Suspend); why != "" {
		return ctrl.Result{}, r.suspend(ctx, t, why)
	}
	if !t.DeletionTimestamp.IsZero() {
		if done, err := r.release(ctx, t); done || err != nil {
			return ctrl.Result{}, err
		}
	}
	where, err := r.sites.of(ctx, t.StorageBucket)
	if err != nil {
		return ctrl.Result{}, ignoreNotYet(err)
	}
	t.site = where
	switch {
	case !t.DeletionTimestamp.IsZero():
		return r.finalize(ctx, t)
	case where.problem != nil:
		return ctrl.Result{}, r.unusable(ctx, t, *where.problem)
	case where.standing == down:
		return ctrl.Result{}, r.standDown(ctx, t)
	case where.standing == doubtful:
		r.plan.Postpone(r.subject(t), doubtPause)
		return ctrl.Result{}, nil
	default:
		return ctrl.Result{}, r.visit(ctx, t)
	}
}

// forget drops everything kept for an object that is gone.
func (r *Buckets) forget(req ctrl.Request) {
	r.plan.Forget(req.NamespacedName)
	r.drift.forget(req.NamespacedName)
	r.sites.forget(req.NamespacedName)
}

// suspend reports that no work is done on the bucket.
func (r *Buckets) suspend(ctx context.Context, t *task, why string) error {
	r.plan.Forget(client.ObjectKeyFromObject(t))
	news := suspend(&t.Status.Conditions, t.Generation, r.Clock.Now(), why)
	t.Status.ObservedGeneration, t.Status.BucketName = t.Generation, t.BucketName()
	if err := r.write(ctx, t); err != nil {
		return err
	}
	if news && !t.Spec.Suspend && deprecatedPause(t) {
		r.event(t, false, reasonDeprecated, "Suspend", why)
	}
	return nil
}

// unusable reports a problem that a person must fix before requests can be sent to the
// store. When the problem is fixed, the bucket gets an event, except when the fix is to
// grant a permission.
func (r *Buckets) unusable(ctx context.Context, t *task, problem finding) error {
	if t.site.object == nil && s3store.Reason(problem.reason).Forbidden() {
		r.plan.Backoff(r.subject(t), 0)
	} else {
		r.plan.Park(r.subject(t))
	}
	r.set(t, storagev1.ConditionHealthy, problem)
	r.set(t, storagev1.ConditionSynced, problem)
	return r.save(ctx, t)
}

// standDown reports that the store is down. The condition Synced stays unchanged if it describes
// the current spec, because the configuration cannot be compared while the store is down.
func (r *Buckets) standDown(ctx context.Context, t *task) error {
	r.plan.Park(r.subject(t))
	f := unknown(reasonStoreUnavailable, fmt.Sprintf("the ObjectStore %q is not healthy; see its status", t.site.key.Name))
	r.set(t, storagev1.ConditionHealthy, f)
	if c := meta.FindStatusCondition(t.Status.Conditions, storagev1.ConditionSynced); c == nil || c.ObservedGeneration != t.Generation {
		r.set(t, storagev1.ConditionSynced, f)
	}
	return r.save(ctx, t)
}

// visit probes the bucket if a probe is due. If the bucket is managed, visit first creates and
// configures it.
func (r *Buckets) visit(ctx context.Context, t *task) error {
	subject, token := r.subject(t), requestedAt(t)
	turn := r.turn(t, subject, token)
	if turn.Cause == "" {
		return nil
	}
	sync := r.syncDue(t, turn)
	if sync {
		leave, ok := r.sites.gate.enter(t.site.key, r.atOnce)
		if !ok {
			r.plan.Postpone(subject, doubtPause)
			return nil
		}
		defer leave()
	}
	release, wait := t.site.store.Limiter().TryAcquire()
	if release == nil {
		r.plan.Postpone(subject, wait)
		return nil
	}
	if turn.Cause == schedule.Slot {
		metrics.DueLag.Observe(turn.Lag.Seconds())
	}
	remote, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()

	var failure *s3store.Error
	if sync {
		release()
		var err error
		if failure, err = r.trySync(remote, t); err != nil {
			return err
		}
		if failure != nil && failure.Reason == s3store.ReasonThrottled {
			// The store asked for a pause.
			r.plan.Backoff(subject, failure.RetryAfter)
			return r.save(ctx, t)
		}
		if release, err = t.site.store.Limiter().Acquire(remote); err != nil {
			return fmt.Errorf("waiting until the store's limits allow a request: %w", err)
		}
	}
	result := r.probe(ctx, t, failure)
	release()
	if ctx.Err() != nil {
		// The manager is stopping. A request that was interrupted proves nothing about the bucket
		// or the store.
		return ctx.Err()
	}
	if r.doubted(t, result, failure) {
		r.plan.Postpone(subject, doubtPause)
		return nil
	}
	return r.conclude(ctx, t, subject, token, result, failure)
}

// turn returns the reason why the bucket must be probed now, if there is one. If the
// schedule (r.plan) gives no reason, but a user has requested a probe with the annotation,
// turn passes the request to the schedule, which merges frequent requests.
func (r *Buckets) turn(t *task, subject schedule.Subject, token string) schedule.Turn {
	turn := r.plan.Due(subject)
	if turn.Cause == "" && token != "" && token != t.Status.LastHandledReconcileAt {
		r.plan.Poke(subject.Key)
		turn = r.plan.Due(subject)
	}
	return turn
}

// trySync syncs the bucket. If a request to the store failed, trySync returns the
// failure, and the probe that follows may explain it. Any other error ends the visit.
func (r *Buckets) trySync(ctx context.Context, t *task) (failure *s3store.Error, err error) {
	if err = r.sync(ctx, t); errors.As(err, &failure) {
		return failure, nil
	}
	return nil, err
}

// doubted reports whether a failure may be caused by the store and not by the bucket.
func (r *Buckets) doubted(t *task, result s3store.Result, failure *s3store.Error) bool {
	key := client.ObjectKeyFromObject(t)
	if !result.Reason.Connection() && (failure == nil || !failure.Reason.Connection()) {
		r.sites.gate.trust(key)
		return false
	}
	return t.site.shared() && !r.sites.doubt(key, t.site, r.Clock.Now())
}

// conclude writes the result to the status and plans the next probe.
func (r *Buckets) conclude(ctx context.Context, t *task, subject schedule.Subject, token string,
	result s3store.Result, failure *s3store.Error,
) error {
	limit := thresholdsOf(t.Spec.Probe)
	before := meta.FindStatusCondition(t.Status.Conditions, storagev1.ConditionHealthy)
	t.Status.Probe = noteProbe(t.Status.Probe, result, r.Clock.Now(), limit)
	verdict := health(before, t.Status.Probe, result, limit)
	if verdict == nil {
		verdict = &finding{before.Status, before.Reason, before.Message}
	}
	noteworthy := news(before, verdict.status)
	r.set(t, storagev1.ConditionHealthy, *verdict)
	if !t.Managed() {
		r.set(t, storagev1.ConditionSynced, found(reasonObserved, "the bucket is only observed, and not changed"))
	}
	if token != "" {
		t.Status.LastHandledReconcileAt = token
	}
	if err := r.save(ctx, t); err != nil {
		// The probe is still due: the retry probes again instead of reporting an old
		// result.
		return err
	}
	if noteworthy {
		r.event(t, result.Succeeded(), string(result.Reason), "Probe", result.Message)
	}
	if failure != nil && !failure.Reason.Terminal() {
		r.plan.Backoff(subject, max(failure.RetryAfter, result.RetryAfter))
		return nil
	}
	r.plan.Probed(subject, result.RetryAfter)
	if log := logf.FromContext(ctx).V(1); log.Enabled() {
		log.Info("probed", "reason", result.Reason, "latency", result.Latency.String())
	}
	return nil
}

// probe probes the bucket, unless an attempt to configure the bucket has just failed to
// connect.
func (r *Buckets) probe(ctx context.Context, t *task, failure *s3store.Error) s3store.Result {
	if failure != nil && failure.Reason.Connection() {
		return s3store.Result{Reason: failure.Reason, Message: failure.Message}
	}
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(t.Spec.Probe))
	defer cancel()
	var result s3store.Result
	if t.Spec.Probe.Method == storagev1.ProbeCanary && t.Managed() {
		result = r.canary(ctx, t, failure)
	} else {
		result = t.site.store.Probe(ctx, t.BucketName())
	}
	metrics.Probes.WithLabelValues(t.site.label(), string(result.Reason)).Inc()
	if result.Latency > 0 {
		metrics.ProbeDuration.WithLabelValues(t.site.label()).Observe(result.Latency.Seconds())
	}
	return result
}

// canary probes by writing to the bucket, but only if the bucket belongs to the object
// at this moment.
func (r *Buckets) canary(ctx context.Context, t *task, failure *s3store.Error) s3store.Result {
	if failure == nil {
		failure = r.confirmOwner(ctx, t)
	}
	if failure != nil {
		return s3store.Result{Reason: failure.Reason, Message: failure.Message, RetryAfter: failure.RetryAfter}
	}
	return t.site.store.Canary(ctx, t.BucketName(), canaryKey(t))
}

func canaryKey(t *task) string { return ".koboshi-canary/" + string(t.UID) }

// subject returns the properties of a bucket that its schedule depends on.
func (r *Buckets) subject(t *task) schedule.Subject {
	s := schedule.Subject{
		Key:      client.ObjectKeyFromObject(t),
		UID:      t.UID,
		Interval: intervalOf(t.Spec.Probe),
		Inputs: strconv.FormatInt(t.Generation, 10) + "/" + t.site.inputs + "/" + t.Annotations[storagev1.AnnotationAdopt] +
			"/" + t.Annotations[storagev1.AnnotationAdoptFrom],
		Fresh:     t.stored.ObservedGeneration == t.Generation && probed(&t.stored),
		Heartbeat: r.Heartbeat,
	}
	if p := t.stored.Probe; p != nil && p.LastProbeTime != nil {
		s.LastProbe = p.LastProbeTime.Time
	}
	return s
}

func intervalOf(p storagev1.ProbeSpec) time.Duration {
	if p.Interval.Duration == 0 {
		return defaultInterval
	}
	return max(p.Interval.Duration, minInterval)
}

func timeoutOf(p storagev1.ProbeSpec) time.Duration {
	if p.Timeout.Duration > 0 {
		return p.Timeout.Duration
	}
	return schedule.Timeout(probeTimeout, intervalOf(p))
}

// set writes a condition of the bucket.
func (r *Buckets) set(t *task, kind string, f finding) {
	set(&t.Status.Conditions, kind, t.Generation, r.Clock.Now(), f)
}

// save updates Ready and Stalled, and writes the status. The write fails if the object has
// changed since it was read, so a written status is always based on the newest version of
// the object.
func (r *Buckets) save(ctx context.Context, t *task) error {
	generation := observed(t.Status.Conditions, storagev1.ConditionSynced, storagev1.ConditionHealthy)
	set(&t.Status.Conditions, storagev1.ConditionReady, generation, r.Clock.Now(),
		summarise(t.Status.Conditions, storagev1.ConditionSynced, storagev1.ConditionHealthy))
	stall(&t.Status.Conditions, r.Clock.Now())
	t.Status.ObservedGeneration, t.Status.BucketName = generation, t.BucketName()
	return r.write(ctx, t)
}

// write writes the status if there is anything new in it.
func (r *Buckets) write(ctx context.Context, t *task) error {
	if !worthWriting(&t.stored, &t.Status, r.Heartbeat) {
		return nil
	}
	t.StorageBucket = t.DeepCopy() // the response is decoded into it
	before := t.DeepCopy()
	before.Status = t.stored
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, t.StorageBucket, patch); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	metrics.StatusWrites.WithLabelValues("StorageBucket").Inc()
	t.stored = *t.Status.DeepCopy()
	return nil
}

// ensureFinalizer adds or removes the finalizer. The write fails if the object has
// changed, or has been replaced by another object of the same name.
func (r *Buckets) ensureFinalizer(ctx context.Context, t *task, want bool) error {
	if controllerutil.ContainsFinalizer(t, storagev1.Finalizer) == want {
		return nil
	}
	t.StorageBucket = t.DeepCopy()
	before := t.DeepCopy()
	if want {
		controllerutil.AddFinalizer(t, storagev1.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(t, storagev1.Finalizer)
	}
	status := t.Status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, t.StorageBucket, patch); err != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	t.Status = status
	return nil
}

func (r *Buckets) event(t *task, good bool, reason, action, message string) {
	kind := corev1.EventTypeWarning
	if good {
		kind = corev1.EventTypeNormal
	}
	r.Events.Eventf(t.StorageBucket, nil, kind, reason, action, "%s", message)
}
