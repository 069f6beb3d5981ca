/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// exemplarFinalizer keeps an Exemplar until its text has been deleted from the store.
const exemplarFinalizer = "gallery.koboshi.example/exemplar"

// exemplarCheckInterval is the time between two checks of a text in the store.
const exemplarCheckInterval = time.Minute

// These are the states of a text in the store.
const (
	exemplarPending = "Pending" // it may exist
	exemplarCreated = "Created" // it has been read
)

// exemplarWrites counts writes. It keeps growing if another program always undoes them.
var exemplarWrites = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
	Name:        "exemplar_store_writes_total",
	Help:        "Number of times that the controller created or changed a text in the store.",
	ConstLabels: prometheus.Labels{"group": "gallery.koboshi.example"},
})

// errExemplarStale reports that the cache lags behind the API server. An event will follow,
// and the event will trigger another reconciliation.
var errExemplarStale = errors.New("the cache is out of date")

// ExemplarReconciler keeps the text of each Exemplar in a store outside the cluster.
//
// Replace ExemplarStore with a client of the API that your kind needs. The order of the
// steps matters, because the process may be killed between any two of them:
//
//	finalizer ─▶ status Pending ─▶ create ─▶ read ─▶ status Created
//	delete ─▶ read ─▶ remove the finalizer
type ExemplarReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	Store  *ExemplarStore
	// CheckInterval is the time between two checks of a text. 0 means a minute.
	CheckInterval time.Duration

	// live reads from the API server. Client reads from the cache.
	live     client.Reader
	recorder events.EventRecorder
	due      *dueTimes
}

// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars/status,verbs=patch
// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the store to the state that one Exemplar describes. It runs after each
// change of the Exemplar, when a check is due, after a failure, and after a restart. It must
// therefore read what the store contains, and not rely on what it has done before.
func (r *ExemplarReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj galleryv1alpha7.Exemplar
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	step := r.keep
	if !obj.DeletionTimestamp.IsZero() {
		step = r.finalize
	}
	err := step(ctx, &obj)
	if errors.Is(err, errExemplarStale) {
		return ctrl.Result{}, nil
	}
	if controllerutil.ContainsFinalizer(&obj, exemplarFinalizer) {
		err = errors.Join(err, r.report(ctx, &obj, err))
	}
	return ctrl.Result{}, err
}

// keep creates or repairs the text in the store.
func (r *ExemplarReconciler) keep(ctx context.Context, obj *galleryv1alpha7.Exemplar) error {
	if err := r.prepare(ctx, obj); err != nil {
		return err
	}
	name, want := obj.Status.External.Name, obj.Spec.Text
	text, exists, err := r.Store.Get(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		// A text that is created for an object that no longer exists would never be deleted.
		if err := r.confirm(ctx, obj); err != nil {
			return err
		}
	}
	if !exists || text != want {
		if err := r.Store.Put(ctx, name, want); err != nil {
			return err
		}
		exemplarWrites.Inc()
		if text, exists, err = r.Store.Get(ctx, name); err != nil {
			return err
		}
	}
	if !exists || text != want {
		return errors.New("the store does not contain the text that was just written")
	}
	r.due.plan(obj)
	return nil
}

// prepare records, before the first request to create the text, that the text may exist.
func (r *ExemplarReconciler) prepare(ctx context.Context, obj *galleryv1alpha7.Exemplar) error {
	before := obj.DeepCopy()
	if controllerutil.AddFinalizer(obj, exemplarFinalizer) {
		if err := exemplarWrite(r.Patch(ctx, obj, exemplarPatch(before))); err != nil {
			return fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	if obj.Status.External != nil {
		return nil
	}
	before = obj.DeepCopy()
	obj.Status.External = &galleryv1alpha7.ExemplarExternal{Name: string(obj.UID), State: exemplarPending}
	if err := exemplarWrite(r.Status().Patch(ctx, obj, exemplarPatch(before))); err != nil {
		return fmt.Errorf("recording the name of the text: %w", err)
	}
	return nil
}

// finalize deletes the text, and removes the finalizer when the text no longer exists.
func (r *ExemplarReconciler) finalize(ctx context.Context, obj *galleryv1alpha7.Exemplar) error {
	if !controllerutil.ContainsFinalizer(obj, exemplarFinalizer) {
		return nil
	}
	if external := obj.Status.External; external != nil {
		if err := r.Store.Delete(ctx, external.Name); err != nil {
			return err
		}
		// The response to the deletion may promise more than the store has done.
		_, exists, err := r.Store.Get(ctx, external.Name)
		if err != nil {
			return err
		}
		if exists {
			return errors.New("the text still exists, although it has been deleted")
		}
	}
	before := obj.DeepCopy()
	controllerutil.RemoveFinalizer(obj, exemplarFinalizer)
	if err := exemplarWrite(r.Patch(ctx, obj, exemplarPatch(before))); err != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	return nil
}

// exemplarPatch returns a patch that fails if the object has changed since it was read.
func exemplarPatch(before *galleryv1alpha7.Exemplar) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// exemplarWrite replaces the error of a write that failed because the cache is out of date.
func exemplarWrite(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errExemplarStale
	}
	return err
}

// confirm returns errExemplarStale if the API server has another version of the Exemplar
// than the cache, or none.
func (r *ExemplarReconciler) confirm(ctx context.Context, obj *galleryv1alpha7.Exemplar) error {
	var live galleryv1alpha7.Exemplar
	err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), &live)
	if apierrors.IsNotFound(err) || err == nil && live.ResourceVersion != obj.ResourceVersion {
		return errExemplarStale
	}
	return err
}

// report writes the status if it has changed, and announces a change of the condition Ready
// as an Event. failure is the reason why the store does not match the object, or nil.
func (r *ExemplarReconciler) report(ctx context.Context, obj *galleryv1alpha7.Exemplar, failure error) error {
	before := obj.DeepCopy()
	status := &obj.Status
	status.ObservedGeneration = obj.Generation
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
		Reason: "Stored", Message: "the store contains the text",
	}
	eventType := corev1.EventTypeNormal
	if failure == nil {
		status.External.State = exemplarCreated
		meta.RemoveStatusCondition(&status.Conditions, "Reconciling")
	} else {
		eventType = corev1.EventTypeWarning
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "StoreFailed", failure.Error()
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: "Reconciling", Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
			Reason: "Retrying", Message: "the controller tries again",
		})
	}
	changed := meta.SetStatusCondition(&status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	if err := exemplarWrite(r.Status().Patch(ctx, obj, exemplarPatch(before))); errors.Is(err, errExemplarStale) {
		return nil
	} else if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	if changed {
		r.recorder.Eventf(obj, nil, eventType, ready.Reason, "Store", "%s", ready.Message)
	}
	return nil
}

// SetupWithManager adds the controller to a manager.
func (r *ExemplarReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.live = mgr.GetAPIReader()
	r.recorder = mgr.GetEventRecorder("exemplar-controller")
	r.due = newDueTimes(cmp.Or(r.CheckInterval, exemplarCheckInterval))
	if err := mgr.Add(r.due); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&galleryv1alpha7.Exemplar{}).
		WatchesRawSource(source.Channel(r.due.events, &handler.EnqueueRequestForObject{})).
		Named("gallery-exemplar").
		Complete(r)
}
