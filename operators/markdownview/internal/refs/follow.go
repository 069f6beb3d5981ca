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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// retry is the backoff of a failing watch. The backoff grows from half a second to half a minute.
var retry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 15 * time.Second}

// follow watches one object until the context ends. The reflector lists again after a watch has
// expired or failed.
func (w *Watcher) follow(ctx context.Context, one *watched, q queue) {
	requests := &requester{
		client: w.client.Resource(one.ref.Resource).Namespace(one.ref.Namespace),
		name:   one.ref.Name,
		logger: logf.FromContext(ctx).WithName("refs").WithValues(
			"resource", one.ref.Resource.GroupResource().String(), "namespace", one.ref.Namespace, "name", one.ref.Name),
	}
	backoff := retry
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc:  requests.list,
			WatchFuncWithContext: requests.watch,
		}, requests),
		&metav1.PartialObjectMetadata{},
		&versionStore{changed: func() { w.tell(ctx, one, q) }},
		cache.ReflectorOptions{Name: "refs", Backoff: &backoff})
	// The logger is discarded, because the reflector would log every failed retry.
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// requester lists and watches one object by its name.
type requester struct {
	client metadata.ResourceInterface
	name   string
	logger logr.Logger
	// refused reports whether a refusal has been logged since the last successful watch.
	refused bool
}

// IsWatchListSemanticsUnSupported makes the reflector send a list request before a watch
// request. A streamed list would save nothing for one object.
func (*requester) IsWatchListSemanticsUnSupported() bool { return true }

// list returns a list with the object, if it exists.
func (r *requester) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := r.client.List(ctx, r.only(o))
	if err != nil {
		r.failed(ctx, err)
		return nil, err
	}
	return list, nil
}

// watch starts a stream that stops after each change; the reflector then starts a new one.
// Short streams save memory, because a stream keeps buffers of the size of its largest
// event until it stops. Events can be large, because the annotation of kubectl apply
// repeats all content.
func (r *requester) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	stream, err := r.client.Watch(ctx, r.only(o))
	if err != nil {
		r.failed(ctx, err)
		return nil, err
	}
	r.refused = false
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

// failed logs an error only if the operator lacks a right, because other failures are
// temporary or visible elsewhere. A missing right is logged only once, because retries fail
// until a user grants the right.
func (r *requester) failed(ctx context.Context, err error) {
	if !apierrors.IsForbidden(err) || r.refused || ctx.Err() != nil {
		return
	}
	r.refused = true
	r.logger.Error(err, "cannot watch an object to which a MarkdownView refers: allow the operator to list and watch it")
}

// versionStore reports changes of an object's version, and stores no other data of the
// object.
type versionStore struct {
	changed func()
	// version is the last version; empty if there is no object.
	version string
	// listed reports whether the object, or its absence, has been observed.
	listed bool
}

var _ cache.ReflectorStore = (*versionStore)(nil)

func (s *versionStore) observe(version string) {
	if s.listed && s.version == version {
		return
	}
	s.listed, s.version = true, version
	s.changed()
}

// Add records a new object.
func (s *versionStore) Add(obj any) error { return s.Update(obj) }

// Update records a changed object.
func (s *versionStore) Update(obj any) error {
	object, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	s.observe(string(object.GetUID()) + "/" + object.GetResourceVersion())
	return nil
}

// Delete records that the object is gone.
func (s *versionStore) Delete(any) error {
	s.observe("")
	return nil
}

// Replace records the result of a list, which has one object or none. The first result is
// reported even if it is empty, because the object may have been deleted after a
// reconciliation read it.
func (s *versionStore) Replace(found []any, _ string) error {
	if len(found) == 0 {
		return s.Delete(nil)
	}
	return s.Update(found[0])
}

// Resync does nothing.
func (*versionStore) Resync() error { return nil }
