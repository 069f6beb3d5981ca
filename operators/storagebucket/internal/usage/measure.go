package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// touchTimeout limits the first request to a store.
const touchTimeout = 10 * time.Second

// Stores finds the store of a bucket.
type Stores interface {
	// Find reads the declaration of the bucket's store, without a request to the store. It
	// returns nil if the store does not exist.
	Find(ctx context.Context, bucket *storagev1.StorageBucket) (Store, error)
}

// Store is a declared store, to which there is no connection yet.
type Store interface {
	// Allows reports whether StorageBuckets of a namespace may refer to the store.
	Allows(namespace string) bool
	// Concurrency returns how many buckets of the store may be counted at the same
	// time.
	Concurrency() int
	// Connect reads the credentials and returns the connection.
	Connect(ctx context.Context) (Counter, error)
}

// Counter counts the objects in buckets.
type Counter interface {
	// Usage counts at most maxObjects objects.
	Usage(ctx context.Context, bucket string, maxObjects int64) (s3store.Usage, error)
	// Close closes the connections.
	Close()
}

// Measurement is the result for one bucket.
type Measurement struct {
	// Usage is valid if Err is nil.
	Usage s3store.Usage
	// Err is an *s3store.Error. The text of Err may be shown to any user who may see the bucket.
	Err error
	// At is the time at which counting ended.
	At time.Time
}

// Measurer counts the objects in buckets, within limits. It is safe for
// concurrent use.
type Measurer struct {
	// Stores finds the stores.
	Stores Stores
	// MaxObjects limits the count of one bucket.
	MaxObjects int64
	// Concurrency is the number of buckets that one request may count at the same time.
	Concurrency int
	// MaxAge is the time for which a count is kept and returned again. Zero means that
	// every request counts again.
	MaxAge time.Duration

	counts counts
	// gates apply each store's concurrency to all requests together.
	gates gates
}

// Measure counts the objects in each bucket. A failure is in the Measurement of its
// bucket and does not affect other buckets. Measure ends some time before the context
// does, so that a response can still be sent.
func (m *Measurer) Measure(ctx context.Context, buckets []storagev1.StorageBucket) []Measurement {
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	r := &request{
		counting: make(chan struct{}, m.Concurrency),
		calling:  make(chan struct{}, callsPerCount*m.Concurrency),
	}
	results := make([]Measurement, len(buckets))
	var wg sync.WaitGroup
	for name, indexes := range byStore(buckets) {
		v := m.visit(ctx, name, r)
		defer v.close()
		// There are never more workers than buckets. The gates and the slots limit how
		// many workers work at the same time.
		work := make(chan int, len(indexes))
		for _, i := range indexes {
			work <- i
		}
		close(work)
		for range min(len(indexes), m.Concurrency) {
			wg.Go(func() {
				for i := range work {
					count, err := v.count(&buckets[i])
					results[i] = Measurement{Usage: count.usage, Err: presentable(ctx, &buckets[i], err), At: count.at}
				}
			})
		}
	}
	wg.Wait()
	return results
}

// beforeDeadline reserves a tenth of the time, and at most two seconds, for
// writing the response.
func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	reserve := min(time.Until(deadline)/10, 2*time.Second)
	return context.WithDeadline(ctx, deadline.Add(-reserve))
}

func byStore(buckets []storagev1.StorageBucket) map[string][]int {
	groups := map[string][]int{}
	for i := range buckets {
		name := storeKey(&buckets[i])
		groups[name] = append(groups[name], i)
	}
	return groups
}

// request holds the slots that all stores of a request share.
type request struct {
	// counting has a slot for each bucket that may be counted at the same time.
	counting chan struct{}
	// calling has slots for the first requests to stores. First requests do not use the slots of
	// counting, so that stores that hang do not delay stores that answer.
	calling chan struct{}
}

// callsPerCount is the number of slots in calling for each slot in counting.
const callsPerCount = 8

// take waits for a free slot.
func take(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// visit is the part of one request that concerns one store. It looks up the store only
// once. As soon as the store turns out not to be usable, the visit sends it no more
// requests.
type visit struct {
	*Measurer
	*request
	name string
	// asking is the context of all requests to the store. The context ends with the request, or as
	// soon as the store turns out not to be usable.
	asking context.Context
	stop   context.CancelCauseFunc

	// mu ensures that the store is looked up only once for all buckets.
	mu    sync.Mutex
	found bool
	store Store

	// turn must be held to read or write counter.
	turn    chan struct{}
	counter Counter
}

func (m *Measurer) visit(ctx context.Context, name string, r *request) *visit {
	v := &visit{Measurer: m, request: r, name: name, turn: make(chan struct{}, 1)}
	v.asking, v.stop = context.WithCancelCause(ctx)
	return v
}

func (v *visit) close() {
	v.stop(nil)
	if v.counter != nil {
		v.counter.Close()
	}
}

// count returns a new count, or one that was kept and is not too old. Even for a kept
// count, it first checks whether the bucket may be counted.
func (v *visit) count(bucket *storagev1.StorageBucket) (count, error) {
	store, err := v.find(bucket)
	if err != nil {
		return count{at: time.Now()}, err
	}
	key := v.name + "\x00" + bucket.BucketName()
	return v.counts.get(v.asking, key, v.MaxAge, func() (s3store.Usage, error) { return v.ask(store, bucket) })
}

// ask counts the bucket by having the store list it.
func (v *visit) ask(store Store, bucket *storagev1.StorageBucket) (s3store.Usage, error) {
	leave, err := v.gates.enter(v.asking, v.name, store.Concurrency())
	if err != nil {
		return s3store.Usage{}, err
	}
	defer leave()
	counter, err := v.connect(store, bucket.BucketName())
	if err != nil {
		return s3store.Usage{}, err
	}
	release, err := take(v.asking, v.counting)
	if err != nil {
		return s3store.Usage{}, err
	}
	defer release()
	usage, err := counter.Usage(v.asking, bucket.BucketName(), v.MaxObjects)
	if err != nil && v.asking.Err() != nil {
		return usage, context.Cause(v.asking)
	}
	if ofStore(s3store.ReasonOf(err)) {
		v.stop(err)
	}
	return usage, err
}

// ofStore reports whether a failure with this reason applies to all buckets of the
// store.
func ofStore(reason s3store.Reason) bool {
	switch reason {
	case s3store.ReasonInvalidCredentials, s3store.ReasonThrottled, s3store.ReasonClockSkew, s3store.ReasonEndpointForbidden:
		return true
	default:
		return reason.Connection()
	}
}

// find looks up the store. It first checks whether the bucket's namespace may
// use the store: a tenant must not learn what is wrong with another tenant's
// store, or even whether it exists.
func (v *visit) find(bucket *storagev1.StorageBucket) (Store, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.found {
		if v.asking.Err() != nil {
			return nil, context.Cause(v.asking)
		}
		store, err := v.Stores.Find(v.asking, bucket)
		if err != nil {
			v.stop(err)
			return nil, err
		}
		v.found, v.store = true, store
	}
	namespace, _ := bucket.StoreKey()
	switch {
	case v.store != nil && v.store.Allows(bucket.Namespace):
		return v.store, nil
	case v.store == nil && (namespace == bucket.Namespace || namespace == ""):
		return nil, notFound(bucket)
	default:
		return nil, notAllowed(bucket)
	}
}

// connect returns the connection. An error is the reason why the bucket cannot be
// counted.
func (v *visit) connect(store Store, bucket string) (Counter, error) {
	done, err := take(v.asking, v.turn)
	if err != nil {
		return nil, err
	}
	defer done()
	if v.asking.Err() != nil {
		return nil, context.Cause(v.asking)
	}
	if v.counter != nil {
		return v.counter, nil
	}
	release, err := take(v.asking, v.calling)
	if err != nil {
		return nil, err
	}
	defer release()
	counter, err := store.Connect(v.asking)
	if err != nil {
		v.stop(err)
		return nil, err
	}
	v.counter = counter
	return counter, v.touch(counter, bucket)
}

// touch lists one object with a short time limit, so that a store that hangs is
// detected long before the whole request times out.
func (v *visit) touch(counter Counter, bucket string) error {
	ctx, cancel := context.WithTimeout(v.asking, touchTimeout)
	defer cancel()
	_, err := counter.Usage(ctx, bucket, 1)
	if ofStore(s3store.ReasonOf(err)) {
		v.stop(err)
	}
	return err
}

// presentable converts any error into one that may be shown to users. Errors from the API
// server, for example about this program's own rights, are logged and not shown.
func presentable(ctx context.Context, bucket *storagev1.StorageBucket, err error) error {
	if err == nil {
		return nil
	}
	var known *s3store.Error
	if errors.As(err, &known) && known.Reason != s3store.ReasonCanceled {
		return known
	}
	if ctx.Err() != nil {
		return &s3store.Error{
			Reason:  s3store.ReasonTimeout,
			Message: "the bucket could not be counted within the time limit of the request: request this bucket alone, or lower --max-objects of the usage server",
		}
	}
	klog.ErrorS(err, "Reading the objects that a bucket refers to", "storageBucket", klog.KObj(bucket))
	return &s3store.Error{
		Reason:  ReasonInternalError,
		Message: "the objects that the bucket refers to could not be read: see the log of the usage server",
	}
}

// These reasons are used in addition to the reasons of package s3store.
const (
	// ReasonStoreNotFound means that the ObjectStore does not exist.
	ReasonStoreNotFound s3store.Reason = "StoreNotFound"
	// ReasonStoreNotAllowed means that an ObjectStore in another namespace does not exist,
	// or does not allow the bucket's namespace.
	ReasonStoreNotAllowed s3store.Reason = "StoreNotAllowed"
	// ReasonInternalError means that the usage server failed; its log has the cause.
	ReasonInternalError s3store.Reason = "InternalError"
)

func notFound(bucket *storagev1.StorageBucket) error {
	return &s3store.Error{
		Reason:  ReasonStoreNotFound,
		Message: fmt.Sprintf("there is no ObjectStore %s: create it", storeName(bucket)),
	}
}

func notAllowed(bucket *storagev1.StorageBucket) error {
	return &s3store.Error{
		Reason: ReasonStoreNotAllowed,
		Message: fmt.Sprintf("there is no ObjectStore %s that namespace %s may use: check its name and its allowedNamespaces",
			storeName(bucket), bucket.Namespace),
	}
}

// inline is used in place of a name for an inline store, which has no name.
const inline = "inline"

// storeName returns the name of the bucket's store for messages.
func storeName(bucket *storagev1.StorageBucket) string {
	namespace, name := bucket.StoreKey()
	if name == "" {
		return inline
	}
	return namespace + "/" + name
}

// storeKey returns a key that is equal for all buckets in the same store.
func storeKey(bucket *storagev1.StorageBucket) string {
	if store := bucket.Spec.Store; bucket.Spec.StoreRef == nil && store != nil {
		return fmt.Sprintf("%s:%q,%q,%q,%q", inline, bucket.Namespace, store.Endpoint, store.Region, store.CredentialsSecretRef.Name)
	}
	return storeName(bucket)
}
