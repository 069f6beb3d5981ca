package refs

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// resources are the kinds that can be watched.
var resources = map[string]schema.GroupVersionResource{
	"Secret":    {Version: "v1", Resource: "secrets"},
	"ConfigMap": {Version: "v1", Resource: "configmaps"},
}

// retry is the backoff of a failing watch: it grows from half a second to half a
// minute.
var retry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 15 * time.Second}

// follow watches one object until the context ends. If a watch expires or breaks, the
// reflector lists the object again.
func (w *Watcher) follow(ctx context.Context, one *watched) {
	requests := &requester{
		client: w.client.Resource(resources[one.ref.Kind]).Namespace(one.ref.Namespace),
		name:   one.ref.Name,
		logger: logf.FromContext(ctx).WithName("refs").
			WithValues("kind", one.ref.Kind, "namespace", one.ref.Namespace, "name", one.ref.Name),
		refused: func() { w.refused(one) },
	}
	backoff := retry
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc:  requests.list,
			WatchFuncWithContext: requests.watch,
		}, requests),
		&metav1.PartialObjectMetadata{},
		versionStore{func(version string) { w.saw(one, version) }},
		cache.ReflectorOptions{Name: "refs", Backoff: &backoff})
	// The logger is discarded, because the reflector would log the failure of every
	// retry.
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// requester lists and watches one object by its name.
type requester struct {
	client metadata.ResourceInterface
	name   string
	logger logr.Logger
	// refused is called when the API server refuses a request.
	refused func()
	// failing reports whether a refusal has been logged since the last successful watch.
	failing bool
}

// IsWatchListSemanticsUnSupported makes the reflector list and then watch, instead of
// streaming the list. A stream saves nothing for one object, and a reflector that waits
// to retry the stream would not end with its context.
func (*requester) IsWatchListSemanticsUnSupported() bool { return true }

// list finds the object, if it exists.
func (r *requester) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := r.client.List(ctx, r.only(o))
	if err != nil {
		r.failed(ctx, err)
		return nil, err
	}
	return list, nil
}

// watch returns a watch that ends after each change; the reflector then starts another.
// A watch that stayed open would keep the last event in a buffer, with all its
// metadata.
func (r *requester) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	stream, err := r.client.Watch(ctx, r.only(o))
	if err != nil {
		r.failed(ctx, err)
		return nil, err
	}
	if r.failing {
		r.failing = false
		r.logger.Info("watching again")
	}
	return watch.Filter(stream, func(e watch.Event) (watch.Event, bool) {
		if e.Type != watch.Bookmark {
			stream.Stop()
		}
		return e, true
	}), nil
}

func (r *requester) only(o metav1.ListOptions) metav1.ListOptions {
	o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, r.name).String()
	return o
}

// failed logs a missing permission once, as an error, because a person must grant it.
// Other failures, such as an unavailable API server, are reported elsewhere.
func (r *requester) failed(ctx context.Context, err error) {
	if apierrors.IsForbidden(err) && ctx.Err() == nil {
		r.refused()
	}
	if r.failing || ctx.Err() != nil {
		return
	}
	if !apierrors.IsForbidden(err) {
		r.logger.V(1).Info("cannot watch a referenced object, trying again", "error", err.Error())
		return
	}
	r.failing = true
	r.logger.Error(err, "cannot watch a referenced object, trying again: "+
		"allow the operator to list and watch it")
}

// versionStore reports the versions of the objects and does not store anything.
type versionStore struct{ saw func(version string) }

var _ cache.ReflectorStore = versionStore{}

// Add handles a new object.
func (s versionStore) Add(obj any) error { return s.Update(obj) }

// Update handles a changed object.
func (s versionStore) Update(obj any) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	s.saw(string(object.GetUID()) + "/" + object.GetResourceVersion())
	return nil
}

// Delete handles a deleted object.
func (s versionStore) Delete(any) error {
	s.saw("")
	return nil
}

// Replace handles the result of a listing, which holds one object or none.
func (s versionStore) Replace(found []any, _ string) error {
	if len(found) == 0 {
		return s.Delete(nil)
	}
	return s.Update(found[0])
}

// Resync does nothing.
func (versionStore) Resync() error { return nil }
