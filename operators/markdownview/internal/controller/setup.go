package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/refs"
)

// Options configure the controller.
type Options struct {
	// Children holds the defaults of viewers. Its Image is required.
	Children children.Options
	// AllowedImage reports whether a spec may name an image; nil allows all.
	AllowedImage func(image string) bool
	// Overrides limits the fields of a spec that change how children are exposed and
	// scheduled; nil allows all.
	Overrides *overrides.Policy
	// ContentLimit is the maximum total size of the files of a site, in bytes; 0 means
	// content.DefaultLimit.
	ContentLimit int
	// ProgressDeadline is the maximum time for new viewers to become Ready before the site
	// is Degraded; 0 means 5 minutes.
	ProgressDeadline time.Duration
	// MaxConcurrent is the number of parallel reconciliations; 0 means 4.
	MaxConcurrent int
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
}

func (o *Options) imageAllowed(image string) bool {
	return o.AllowedImage == nil || o.AllowedImage(image)
}

func (o *Options) complete() error {
	if o.Children.Image == "" {
		return fmt.Errorf("the image of the viewers is not set: set --viewer-image")
	}
	if o.ProgressDeadline == 0 {
		o.ProgressDeadline = 5 * time.Minute
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 4
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// CacheOptions returns options that limit the cache to the operator's own objects and to
// the fields that are read. Without namespaces, all namespaces are cached.
func CacheOptions(namespaces ...string) cache.Options {
	o := cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{children.ManagerLabel: children.Owner}),
		ByObject: map[client.Object]cache.ByObject{
			&viewv1.MarkdownView{}: {Label: labels.Everything(), Transform: withoutFields},
		},
		DefaultTransform: strip,
	}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o
}

// strip removes unused fields from a child. This matters most for a ReplicaSet, because its
// template lists all files of a site.
func strip(obj any) (any, error) {
	if set, ok := obj.(*appsv1.ReplicaSet); ok {
		set.Spec.Template = corev1.PodTemplateSpec{}
		return withoutFields(set)
	}
	return obj, nil
}

// withoutFields removes the managed fields, and the annotation in which kubectl apply
// repeats the complete object.
func withoutFields(obj any) (any, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a tombstone has no metadata, and is returned unchanged
	}
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	return obj, nil
}

// Setup adds the controller to a manager whose cache uses CacheOptions.
func Setup(mgr manager.Manager, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	names, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating the metadata client: %w", err)
	}
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(children.Owner),
		refs:     refs.New(names), options: o, clock: o.Clock,
	}
	metrics.Register(mgr.GetClient())
	c, err := watches(mgr, r).Build(r)
	if err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	r.routes = &routes{mapper: mgr.GetRESTMapper(), cache: mgr.GetCache(), controller: c, scheme: mgr.GetScheme()}
	return nil
}

// watches sets the events that trigger a reconciliation. The controller's own status
// changes also trigger a reconciliation. An earlier reconciliation with a stale cache may
// have read an outdated status, found it correct, and written nothing.
func watches(mgr manager.Manager, r *Reconciler) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named("markdownview").
		For(&viewv1.MarkdownView{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, statusChanged))).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Owns(&networkingv1.Ingress{}).
		Watches(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(siteOf)).
		WatchesRawSource(r.refs).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.options.MaxConcurrent,
			RateLimiter:             backoff(),
		})
}

// statusChanged passes updates that change the status. Labels and annotations do not affect
// a site.
var statusChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*viewv1.MarkdownView)
	after, same := e.ObjectNew.(*viewv1.MarkdownView)
	return ok && same && !equality.Semantic.DeepEqual(before.Status, after.Status)
}}

// backoff returns a rate limiter that retries failures quickly at first, and then at growing
// intervals of up to a minute.
func backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Minute)
}

// siteOf finds the site of an object by the object's labels. The owner reference of a
// ReplicaSet does not lead to the site, because it names the Deployment and not the
// MarkdownView.
func siteOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[children.InstanceLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}
