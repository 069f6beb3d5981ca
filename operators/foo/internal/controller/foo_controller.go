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

	samplev1alpha1 "github.com/koboshi-dev/koboshi/operators/foo/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/foo/internal/operator"
	"github.com/koboshi-dev/koboshi/operators/foo/pkg/generated/clientset/versioned"
	"github.com/koboshi-dev/koboshi/operators/foo/pkg/generated/clientset/versioned/scheme"
	listers "github.com/koboshi-dev/koboshi/operators/foo/pkg/generated/listers/api/v1alpha1"
)

// fooWrites counts writes. The count keeps growing if another program always undoes the
// writes.
var fooWrites = metrics.NewCounter(&metrics.CounterOpts{
	Name:           "foo_deployment_writes_total",
	Help:           "Number of times that the controller created or changed a Deployment.",
	ConstLabels:    map[string]string{"group": "sample.koboshi.dev"},
	StabilityLevel: metrics.ALPHA,
})

func init() { legacyregistry.MustRegister(fooWrites) }

// errFooStale reports that the cache lags behind the API server. An event will follow,
// and the event will trigger another reconciliation.
var errFooStale = errors.New("the cache is out of date")

// fooLabel is the label of the Pods. Its value is the name of their Foo.
const fooLabel = "sample.koboshi.dev/foo"

// FooController keeps the Deployment of each Foo in its desired state.
//
// Replace the Deployment with the objects that your kind needs. To do so, change deployment,
// applyDeployment, AddFoo, and the permissions in the rbac markers.
type FooController struct {
	kubernetes kubernetes.Interface
	client     versioned.Interface
	// lister and deployments read from the cache.
	lister      listers.FooLister
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder    events.EventRecorder
}

// +kubebuilder:rbac:groups=sample.koboshi.dev,resources=foos,verbs=get;list;watch
// +kubebuilder:rbac:groups=sample.koboshi.dev,resources=foos/status,verbs=update
// +kubebuilder:rbac:groups=sample.koboshi.dev,resources=foos/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// AddFoo adds the controller to an operator.
func AddFoo(op *operator.Operator) error {
	own := op.Informers.Sample().V1alpha1().Foos()
	deployments := op.KubernetesInformers.Apps().V1().Deployments()
	c := &FooController{
		kubernetes:  op.Kubernetes,
		client:      op.Client,
		lister:      own.Lister(),
		deployments: deployments.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "sample-foo"},
		),
		recorder: op.Events.NewRecorder(scheme.Scheme, "foo-controller"),
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

// enqueue requests a reconciliation of one Foo.
func (c *FooController) enqueue(obj metav1.Object) {
	c.queue.Add(cache.NewObjectName(obj.GetNamespace(), obj.GetName()))
}

// enqueueOwner requests a reconciliation of the Foo that controls an object, if there is
// one.
func (c *FooController) enqueueOwner(obj metav1.Object) {
	owner := metav1.GetControllerOf(obj)
	if owner != nil && owner.Kind == "Foo" && inGroup(owner, samplev1alpha1.SchemeGroupVersion.Group) {
		c.queue.Add(cache.NewObjectName(obj.GetNamespace(), owner.Name))
	}
}

// Run implements operator.Controller.
func (c *FooController) Run(ctx context.Context, workers int) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("controller", "sample-foo"))
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

// next reconciles the next Foo in the queue. It reports whether there may be another one.
func (c *FooController) next(ctx context.Context) bool {
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
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to reconcile", "foo", name)
	}
	c.queue.AddRateLimited(name)
	return true
}

// reconcile brings the cluster to the state that one Foo describes. It runs after each
// change of the Foo or its Deployment, after a failure, and after a restart. It must
// therefore compare the complete state, and not rely on the knowledge of what has changed.
func (c *FooController) reconcile(ctx context.Context, name cache.ObjectName) error {
	cached, err := c.lister.Foos(name.Namespace).Get(name.Name)
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
	if errors.Is(err, errFooStale) {
		return nil
	}
	return errors.Join(err, c.report(ctx, obj, deployment, err))
}

// deployment returns the desired state of the Deployment. It contains only the fields that
// this controller manages; other clients may set other fields.
func (c *FooController) deployment(obj *samplev1alpha1.Foo) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{fooLabel: obj.Name}
	return appsv1ac.Deployment("foo-"+obj.Name, obj.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(samplev1alpha1.SchemeGroupVersion.String()).
			WithKind("Foo").
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
						WithName("foo").
						WithImage(obj.Spec.Image)))))
}

// replicasOf returns the number of Pods, whose default the API server sets.
func replicasOf(obj *samplev1alpha1.Foo) int32 {
	if obj.Spec.Replicas == nil {
		return 1
	}
	return *obj.Spec.Replicas
}

// applyDeployment creates or repairs the Deployment. If nothing differs, the API server writes
// nothing.
func (c *FooController) applyDeployment(ctx context.Context, obj *samplev1alpha1.Foo) (*appsv1.Deployment, error) {
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
		FieldManager: "foo-controller", Force: true,
	})
	if apierrors.IsConflict(err) {
		return nil, errFooStale
	}
	if err != nil {
		return nil, fmt.Errorf("applying the Deployment %s: %w", *want.Name, err)
	}
	if applied.ResourceVersion != version {
		fooWrites.Inc()
	}
	return applied, nil
}

// confirm returns errFooStale if the Foo no longer exists, or if the API server
// has another version of it than the cache.
func (c *FooController) confirm(ctx context.Context, obj *samplev1alpha1.Foo) error {
	live, err := c.client.SampleV1alpha1().Foos(obj.Namespace).Get(ctx, obj.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.ResourceVersion != obj.ResourceVersion {
		return errFooStale
	}
	return err
}

// report writes the status if it has changed, and announces a change of the condition Ready as
// an Event. failure is the reason why the Deployment could not be applied, or nil.
func (c *FooController) report(ctx context.Context, obj *samplev1alpha1.Foo, deployment *appsv1.Deployment, failure error) error {
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
	// The write fails if the Foo has changed since it was read. That change causes an event.
	_, err := c.client.SampleV1alpha1().Foos(obj.Namespace).UpdateStatus(ctx, obj, metav1.UpdateOptions{})
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
func readiness(obj *samplev1alpha1.Foo, deployment *appsv1.Deployment, failure error) metav1.Condition {
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
