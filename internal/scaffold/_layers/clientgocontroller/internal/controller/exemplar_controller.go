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
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
	"koboshi.example/project/internal/operator"
	"koboshi.example/project/pkg/generated/clientset/versioned"
	"koboshi.example/project/pkg/generated/clientset/versioned/scheme"
	listers "koboshi.example/project/pkg/generated/listers/api/v1alpha7"
)

// exemplarWrites counts writes. The count keeps growing if another program always undoes the
// writes.
var exemplarWrites = metrics.NewCounter(&metrics.CounterOpts{
	Name:           "exemplar_deployment_writes_total",
	Help:           "Number of times that the controller created or changed a Deployment.",
	ConstLabels:    map[string]string{"group": "gallery.koboshi.example"},
	StabilityLevel: metrics.ALPHA,
})

func init() { legacyregistry.MustRegister(exemplarWrites) }

// errExemplarStale reports that the cache lags behind the API server. An event will follow,
// and the event will trigger another reconciliation.
var errExemplarStale = errors.New("the cache is out of date")

// exemplarLabel is the label of the Pods. Its value is the name of their Exemplar.
const exemplarLabel = "gallery.koboshi.example/exemplar"

// ExemplarController keeps the Deployment of each Exemplar in its desired state.
//
// Replace the Deployment with the objects that your kind needs. To do so, change deployment,
// applyDeployment, AddExemplar, and the permissions in the rbac markers.
type ExemplarController struct {
	kubernetes kubernetes.Interface
	client     versioned.Interface
	// lister and deployments read from the cache.
	lister      listers.ExemplarLister
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder    events.EventRecorder
}

// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars,verbs=get;list;watch
// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars/status,verbs=update
// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// AddExemplar adds the controller to an operator.
func AddExemplar(op *operator.Operator) error {
	own := op.Informers.Gallery().V1alpha7().Exemplars()
	deployments := op.KubernetesInformers.Apps().V1().Deployments()
	c := &ExemplarController{
		kubernetes:  op.Kubernetes,
		client:      op.Client,
		lister:      own.Lister(),
		deployments: deployments.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "gallery-exemplar"},
		),
		recorder: op.Events.NewRecorder(scheme.Scheme, "exemplar-controller"),
	}
	if _, err := own.Informer().AddEventHandler(onChange(c.enqueue)); err != nil {
		return err
	}
	if _, err := deployments.Informer().AddEventHandler(onChange(c.enqueueOwner)); err != nil {
		return err
	}
	op.Add(c)
	return nil
}

// enqueue requests a reconciliation of one Exemplar.
func (c *ExemplarController) enqueue(obj metav1.Object) {
	c.queue.Add(cache.NewObjectName(obj.GetNamespace(), obj.GetName()))
}

// enqueueOwner requests a reconciliation of the Exemplar that controls an object, if there is
// one.
func (c *ExemplarController) enqueueOwner(obj metav1.Object) {
	owner := metav1.GetControllerOf(obj)
	if owner != nil && owner.Kind == "Exemplar" && inGroup(owner, galleryv1alpha7.SchemeGroupVersion.Group) {
		c.queue.Add(cache.NewObjectName(obj.GetNamespace(), owner.Name))
	}
}

// Run implements operator.Controller.
func (c *ExemplarController) Run(ctx context.Context, workers int) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("controller", "gallery-exemplar"))
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
}

// next reconciles the next Exemplar in the queue. It reports whether there may be another one.
func (c *ExemplarController) next(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	err := c.reconcile(ctx, name)
	if err == nil {
		c.queue.Forget(name)
		return true
	}
	if ctx.Err() == nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to reconcile", "exemplar", name)
	}
	c.queue.AddRateLimited(name)
	return true
}

// reconcile brings the cluster to the state that one Exemplar describes. It runs after each
// change of the Exemplar or its Deployment, after a failure, and after a restart. It must
// therefore compare the complete state, and not rely on the knowledge of what has changed.
func (c *ExemplarController) reconcile(ctx context.Context, name cache.ObjectName) error {
	cached, err := c.lister.Exemplars(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !cached.DeletionTimestamp.IsZero() {
		return nil // the garbage collector deletes the Deployment
	}
	obj := cached.DeepCopy() // objects in the cache must not be changed
	deployment, err := c.applyDeployment(ctx, obj)
	if errors.Is(err, errExemplarStale) {
		return nil
	}
	return errors.Join(err, c.report(ctx, obj, deployment, err))
}

// deployment returns the desired state of the Deployment. It contains only the fields that
// this controller manages; other clients may set other fields.
func (c *ExemplarController) deployment(obj *galleryv1alpha7.Exemplar) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{exemplarLabel: obj.Name}
	return appsv1ac.Deployment("exemplar-"+obj.Name, obj.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(galleryv1alpha7.SchemeGroupVersion.String()).
			WithKind("Exemplar").
			WithName(obj.Name).
			WithUID(obj.UID).
			WithController(true).
			WithBlockOwnerDeletion(true)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(replicasOf(obj)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(corev1ac.PodSpec().
					WithAutomountServiceAccountToken(false).
					WithContainers(corev1ac.Container().
						WithName("exemplar").
						WithImage(obj.Spec.Image)))))
}

// replicasOf returns the number of Pods, whose default the API server sets.
func replicasOf(obj *galleryv1alpha7.Exemplar) int32 {
	if obj.Spec.Replicas == nil {
		return 1
	}
	return *obj.Spec.Replicas
}

// applyDeployment creates or repairs the Deployment. If nothing differs, the API server writes
// nothing.
func (c *ExemplarController) applyDeployment(ctx context.Context, obj *galleryv1alpha7.Exemplar) (*appsv1.Deployment, error) {
	want := c.deployment(obj)
	current, err := c.deployments.Deployments(*want.Namespace).Get(*want.Name)
	if apierrors.IsNotFound(err) {
		// The cache may still lack a Deployment that another client has created.
		current, err = c.kubernetes.AppsV1().Deployments(*want.Namespace).Get(ctx, *want.Name, metav1.GetOptions{})
	}
	version := ""
	switch {
	case apierrors.IsNotFound(err):
		// If the owner no longer exists, a new Deployment would be deleted again.
		err = c.confirm(ctx, obj)
	case err == nil && !metav1.IsControlledBy(current, obj):
		err = fmt.Errorf("the Deployment %s belongs to another owner: delete or rename it", *want.Name)
	case err == nil:
		want.WithUID(current.UID) // Apply fails if the Deployment has been deleted or replaced
		version = current.ResourceVersion
	}
	if err != nil {
		return nil, err
	}
	applied, err := c.kubernetes.AppsV1().Deployments(*want.Namespace).Apply(ctx, want, metav1.ApplyOptions{
		FieldManager: "exemplar-controller", Force: true,
	})
	if apierrors.IsConflict(err) {
		return nil, errExemplarStale
	}
	if err != nil {
		return nil, fmt.Errorf("applying the Deployment %s: %w", *want.Name, err)
	}
	if applied.ResourceVersion != version {
		exemplarWrites.Inc()
	}
	return applied, nil
}

// confirm returns errExemplarStale if the Exemplar no longer exists, or if the API server
// has another version of it than the cache.
func (c *ExemplarController) confirm(ctx context.Context, obj *galleryv1alpha7.Exemplar) error {
	live, err := c.client.GalleryV1alpha7().Exemplars(obj.Namespace).Get(ctx, obj.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.ResourceVersion != obj.ResourceVersion {
		return errExemplarStale
	}
	return err
}

// report writes the status if it has changed, and announces a change of the condition Ready as
// an Event. failure is the reason why the Deployment could not be applied, or nil.
func (c *ExemplarController) report(ctx context.Context, obj *galleryv1alpha7.Exemplar, deployment *appsv1.Deployment, failure error) error {
	before := obj.Status.DeepCopy()
	status := &obj.Status
	status.ObservedGeneration = obj.Generation
	if deployment != nil {
		status.AvailableReplicas = deployment.Status.AvailableReplicas
	}
	ready := readiness(obj, deployment, failure)
	if ready.Status == metav1.ConditionTrue {
		meta.RemoveStatusCondition(&status.Conditions, "Reconciling")
	} else {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: "Reconciling", Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
			Reason: ready.Reason, Message: ready.Message,
		})
	}
	changed := meta.SetStatusCondition(&status.Conditions, ready)
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	// The write fails if the Exemplar has changed since it was read. That change causes an event.
	_, err := c.client.GalleryV1alpha7().Exemplars(obj.Namespace).UpdateStatus(ctx, obj, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	if changed {
		eventType := corev1.EventTypeNormal
		if failure != nil {
			eventType = corev1.EventTypeWarning
		}
		c.recorder.Eventf(obj, nil, eventType, ready.Reason, "Apply", "%s", ready.Message)
	}
	return nil
}

// readiness returns the condition Ready.
func readiness(obj *galleryv1alpha7.Exemplar, deployment *appsv1.Deployment, failure error) metav1.Condition {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: obj.Generation}
	switch {
	case failure != nil:
		ready.Reason, ready.Message = "ApplyFailed", failure.Error()
	case !rolledOut(deployment, replicasOf(obj)):
		ready.Reason, ready.Message = "Progressing", "the Pods are not all available yet"
	default:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, "Available", "all Pods are available"
	}
	return ready
}

// rolledOut reports whether the Deployment has exactly the Pods that it should have.
func rolledOut(d *appsv1.Deployment, replicas int32) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == replicas &&
		d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == replicas
}
