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
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// exemplarWrites counts writes. It keeps growing if another program always undoes them.
var exemplarWrites = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
	Name:        "exemplar_configmap_writes_total",
	Help:        "Number of times that the controller created or changed a ConfigMap.",
	ConstLabels: prometheus.Labels{"group": "gallery.koboshi.example"},
})

// errExemplarStale reports that the cache lags behind the API server. An event will follow,
// and the event will trigger another reconciliation.
var errExemplarStale = errors.New("the cache is out of date")

// ExemplarReconciler keeps the ConfigMap of each Exemplar in its desired state.
//
// Replace the ConfigMap with the objects that your kind needs. To do so, change configMap,
// the type in applyConfigMap and SetupWithManager, and the permissions in the rbac markers.
type ExemplarReconciler struct {
	client.Client
	Scheme *runtime.Scheme

	// live reads from the API server. Client reads from the cache.
	live     client.Reader
	recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars,verbs=get;list;watch
// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars/status,verbs=patch
// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the cluster to the state that one Exemplar describes. It runs after each
// change of the Exemplar or its ConfigMap, after a failure, and after a restart. It must
// therefore compare the complete state, and not rely on the knowledge of what has changed.
func (r *ExemplarReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj galleryv1alpha7.Exemplar
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the ConfigMap
	}
	err := r.applyConfigMap(ctx, &obj)
	if errors.Is(err, errExemplarStale) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, errors.Join(err, r.report(ctx, &obj, err))
}

// configMap returns the desired state of the ConfigMap. It contains only the fields that
// this controller manages; other clients may set other fields.
func (r *ExemplarReconciler) configMap(obj *galleryv1alpha7.Exemplar) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap("exemplar-"+obj.Name, obj.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(galleryv1alpha7.GroupVersion.String()).
			WithKind("Exemplar").
			WithName(obj.Name).
			WithUID(obj.UID).
			WithController(true).
			WithBlockOwnerDeletion(true)).
		WithData(map[string]string{"text": obj.Spec.Text})
}

// applyConfigMap creates or repairs the ConfigMap. If nothing differs, the API server
// writes nothing.
func (r *ExemplarReconciler) applyConfigMap(ctx context.Context, obj *galleryv1alpha7.Exemplar) error {
	want := r.configMap(obj)
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	key := client.ObjectKey{Namespace: *want.Namespace, Name: *want.Name}
	err := r.Get(ctx, key, current)
	if apierrors.IsNotFound(err) {
		// The cache may not know yet what another client has created.
		err = r.live.Get(ctx, key, current)
	}
	switch {
	case apierrors.IsNotFound(err):
		// A ConfigMap would be deleted again if its owner no longer exists.
		err = r.confirm(ctx, obj)
	case err == nil && !metav1.IsControlledBy(current, obj):
		err = fmt.Errorf("the ConfigMap %s belongs to another owner: delete or rename it", *want.Name)
	case err == nil:
		want.WithUID(current.UID) // Apply fails if the ConfigMap has been deleted or replaced
	}
	if err != nil {
		return err
	}
	err = r.Apply(ctx, want, client.FieldOwner("exemplar-controller"), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return errExemplarStale
	}
	if err != nil {
		return fmt.Errorf("applying the ConfigMap %s: %w", *want.Name, err)
	}
	if *want.ResourceVersion != current.ResourceVersion {
		exemplarWrites.Inc()
	}
	return nil
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
// as an Event. failure is the reason why the cluster does not match the spec, or nil.
func (r *ExemplarReconciler) report(ctx context.Context, obj *galleryv1alpha7.Exemplar, failure error) error {
	before := obj.DeepCopy()
	status := &obj.Status
	status.ObservedGeneration = obj.Generation
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
		Reason: "Applied", Message: "the ConfigMap contains the text",
	}
	eventType := corev1.EventTypeNormal
	if failure == nil {
		meta.RemoveStatusCondition(&status.Conditions, "Reconciling")
	} else {
		eventType = corev1.EventTypeWarning
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "ApplyFailed", failure.Error()
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: "Reconciling", Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
			Reason: "Retrying", Message: "the controller tries again",
		})
	}
	changed := meta.SetStatusCondition(&status.Conditions, ready)
	if equality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	// The lock makes the write fail if the Exemplar has changed since it was read.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, obj, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status: %w", err))
	}
	if changed {
		r.recorder.Eventf(obj, nil, eventType, ready.Reason, "Apply", "%s", ready.Message)
	}
	return nil
}

// SetupWithManager adds the controller to a manager.
func (r *ExemplarReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.live = mgr.GetAPIReader()
	r.recorder = mgr.GetEventRecorder("exemplar-controller")
	return ctrl.NewControllerManagedBy(mgr).
		For(&galleryv1alpha7.Exemplar{}).
		// The cache needs only the metadata of ConfigMaps, because Apply compares the rest.
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Named("gallery-exemplar").
		Complete(r)
}
