package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// cluster is a set of stores, by "namespace/name".
type cluster map[string]*scripted

func (c cluster) Find(_ context.Context, bucket *storagev1.StorageBucket) (Store, error) {
	store, ok := c[storeName(bucket)]
	if !ok {
		return nil, nil
	}
	return store, store.findErr
}

// scripted is a store that gives prescribed answers and records the requests.
type scripted struct {
	allowed     []string
	concurrency int
	findErr     error
	connectErr  error
	// count returns the response for a bucket; nil means one object of 10 bytes.
	count func(ctx context.Context, bucket string, maxObjects int64) (s3store.Usage, error)

	mu               sync.Mutex
	asked, now, most int
	closed           int
}

func (s *scripted) Allows(namespace string) bool {
	return namespace == "home" || slices.Contains(s.allowed, namespace)
}

func (s *scripted) Concurrency() int { return max(1, s.concurrency) }

func (s *scripted) Connect(context.Context) (Counter, error) {
	if s.connectErr != nil {
		return nil, s.connectErr
	}
	return s, nil
}

func (s *scripted) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

func (s *scripted) Usage(ctx context.Context, bucket string, maxObjects int64) (s3store.Usage, error) {
	s.mu.Lock()
	s.asked++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	if s.count == nil {
		return s3store.Usage{Objects: 1, Bytes: 10}, nil
	}
	return s.count(ctx, bucket, maxObjects)
}

// seconds returns a function that takes n seconds to count a bucket.
func seconds(n time.Duration) func(context.Context, string, int64) (s3store.Usage, error) {
	return func(ctx context.Context, _ string, maxObjects int64) (s3store.Usage, error) {
		if maxObjects == 1 { // the touch
			return s3store.Usage{}, nil
		}
		return answerAfter(ctx, n*time.Second)
	}
}

// hang never answers, not even the first request.
func hang(ctx context.Context, _ string, _ int64) (s3store.Usage, error) {
	return answerAfter(ctx, time.Hour)
}

// answerAfter returns an answer after a while. If the context ends first, it returns
// the same error as s3store.
func answerAfter(ctx context.Context, d time.Duration) (s3store.Usage, error) {
	select {
	case <-time.After(d):
		return s3store.Usage{Objects: 1, Bytes: 10}, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return s3store.Usage{}, &s3store.Error{Reason: s3store.ReasonCanceled, Message: "the caller gave up"}
		}
		return s3store.Usage{}, &s3store.Error{Reason: s3store.ReasonTimeout, Message: "the store did not answer in time"}
	}
}

func newMeasurer(stores Stores, concurrency int) *Measurer {
	return &Measurer{Stores: stores, MaxObjects: 1000, Concurrency: concurrency}
}

// bucketIn returns a StorageBucket in namespace home, for a store as namespace/name.
func bucketIn(store, name string) storagev1.StorageBucket {
	namespace, storeName, _ := strings.Cut(store, "/")
	return storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name},
		Spec:       storagev1.StorageBucketSpec{StoreRef: &storagev1.ObjectStoreReference{Namespace: namespace, Name: storeName}},
	}
}

func bucketsIn(store string, n int) []storagev1.StorageBucket {
	buckets := make([]storagev1.StorageBucket, n)
	for i := range buckets {
		buckets[i] = bucketIn(store, fmt.Sprintf("%s-%d", strings.ReplaceAll(store, "/", "-"), i))
	}
	return buckets
}

// reasons returns the outcomes in one word each; "ok" means success.
func reasons(measured []Measurement) []string {
	all := make([]string, len(measured))
	for i, m := range measured {
		all[i] = "ok"
		if m.Err != nil {
			all[i] = string(s3store.ReasonOf(m.Err))
		}
	}
	return all
}

func wantReasons(t *testing.T, measured []Measurement, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, reasons(measured)); diff != "" {
		t.Errorf("outcomes differ (-want +got):\n%s", diff)
	}
}

func TestBrokenBucketIsAloneWithItsError(t *testing.T) {
	denied := func(_ context.Context, bucket string, _ int64) (s3store.Usage, error) {
		if bucket == "b" {
			return s3store.Usage{}, &s3store.Error{Reason: s3store.ReasonAccessDenied, Message: "denied"}
		}
		return s3store.Usage{Objects: 1}, nil
	}
	stores := cluster{
		"home/good":    {count: denied, concurrency: 1},
		"home/keyless": {connectErr: &s3store.Error{Reason: s3store.ReasonCredentialsNotFound, Message: "no Secret"}},
		"home/unread":  {findErr: errors.New("secret text of the API server")},
	}
	buckets := []storagev1.StorageBucket{
		bucketIn("home/good", "a"), bucketIn("home/good", "b"), bucketIn("home/good", "c"),
		bucketIn("home/keyless", "d"), bucketIn("home/unread", "e"), bucketIn("home/missing", "f"),
	}
	measured := newMeasurer(stores, 4).Measure(t.Context(), buckets)
	wantReasons(t, measured, "ok", "AccessDenied", "ok", "CredentialsNotFound", "InternalError", "StoreNotFound")
	if got := measured[4].Err.Error(); strings.Contains(got, "secret text") {
		t.Errorf("the error text of the API server is shown: %q", got)
	}
	if got := stores["home/good"].closed; got != 1 {
		t.Errorf("the connection was closed %d times instead of once", got)
	}
}

func TestStoreThatIsDownIsAskedOnce(t *testing.T) {
	for _, reason := range []s3store.Reason{
		s3store.ReasonEndpointUnreachable, s3store.ReasonTLSError, s3store.ReasonThrottled, s3store.ReasonInvalidCredentials,
	} {
		t.Run(string(reason), func(t *testing.T) {
			down := &scripted{concurrency: 4, count: func(context.Context, string, int64) (s3store.Usage, error) {
				return s3store.Usage{}, &s3store.Error{Reason: reason, Message: "down"}
			}}
			measured := newMeasurer(cluster{"home/down": down}, 8).Measure(t.Context(), bucketsIn("home/down", 50))
			for i, got := range reasons(measured) {
				if got != string(reason) {
					t.Fatalf("bucket %d: %s instead of %s", i, got, reason)
				}
			}
			if down.asked != 1 {
				t.Errorf("the store was asked %d times", down.asked)
			}
		})
	}
}

func TestStoresThatHangDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := cluster{"home/good": {concurrency: 4}}
		var buckets []storagev1.StorageBucket
		for i := range 8 {
			name := fmt.Sprintf("home/hangs-%d", i)
			stores[name] = &scripted{concurrency: 4, count: hang}
			buckets = append(buckets, bucketsIn(name, 20)...)
		}
		buckets = append(buckets, bucketsIn("home/good", 20)...)
		ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
		defer cancel()
		measured := newMeasurer(stores, 4).Measure(ctx, buckets)
		for i, got := range reasons(measured[len(measured)-20:]) {
			if got != "ok" {
				t.Errorf("bucket %d of the good store: %s", i, got)
			}
		}
		for i, got := range reasons(measured[:len(measured)-20]) {
			if got != "Timeout" {
				t.Errorf("bucket %d of a store that hangs: %s", i, got)
			}
		}
	})
}

func TestMeasureEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		stores := cluster{"home/slow": {count: seconds(8), concurrency: 1}}
		measured := newMeasurer(stores, 8).Measure(ctx, bucketsIn("home/slow", 4))
		if ctx.Err() != nil {
			t.Error("no time is left for the response")
		}
		ok, late := 0, 0
		for _, m := range measured {
			switch {
			case m.Err == nil:
				ok++
			case strings.Contains(m.Err.Error(), "within the time limit of the request"):
				late++
			}
		}
		if ok != 2 || late != 2 {
			t.Errorf("of 4 buckets of 8 s each, %d were counted and %d late, instead of 2 and 2: %v", ok, late, reasons(measured))
		}
	})
}

func TestStoreIsNotCountedMoreOftenAtOnceThanItAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := cluster{"home/busy": {count: seconds(1), concurrency: 3}}
		m := newMeasurer(stores, 8)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { m.Measure(t.Context(), bucketsIn("home/busy", 10)) })
		}
		wg.Wait()
		if got := stores["home/busy"].most; got != 3 {
			t.Errorf("%d buckets were counted at the same time instead of 3", got)
		}
		if len(m.gates.named) != 0 {
			t.Errorf("%d stores are still in the map, although no request uses them", len(m.gates.named))
		}
	})
}

func TestRequestCountsNoMoreBucketsAtOnceThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &scripted{count: seconds(1), concurrency: 100}
		start := time.Now()
		newMeasurer(cluster{"home/one": one}, 5).Measure(t.Context(), bucketsIn("home/one", 50))
		if one.most != 5 {
			t.Errorf("%d buckets were counted at the same time instead of 5", one.most)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("50 buckets of 1 s, 5 at a time, took %s", took)
		}
	})
}

func TestNothingIsToldOfStoreThatIsNotAllowed(t *testing.T) {
	broken := &scripted{allowed: []string{"friend"}, connectErr: &s3store.Error{Reason: s3store.ReasonCredentialsNotFound, Message: `no Secret "alpha"`}}
	buckets := []storagev1.StorageBucket{
		bucketIn("other/there", "a"), bucketIn("other/there", "b"), bucketIn("other/absent", "c"),
	}
	buckets[0].Namespace = "friend"
	buckets[1].Namespace, buckets[2].Namespace = "stranger", "stranger"
	measured := newMeasurer(cluster{"other/there": broken}, 1).Measure(t.Context(), buckets)
	wantReasons(t, measured, "CredentialsNotFound", "StoreNotAllowed", "StoreNotAllowed")
	there, absent := measured[1].Err.Error(), measured[2].Err.Error()
	if strings.ReplaceAll(there, "other/there", "other/absent") != absent {
		t.Errorf("a stranger can distinguish a store that exists from a store that does not exist:\n%s\n%s", there, absent)
	}
}

func TestBucketsInTheSameInlineStoreShareIt(t *testing.T) {
	inlineBucket := func(namespace, endpoint string) *storagev1.StorageBucket {
		return &storagev1.StorageBucket{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
			Spec: storagev1.StorageBucketSpec{Store: &storagev1.InlineStore{
				Endpoint: endpoint, CredentialsSecretRef: storagev1.SecretReference{Name: "s"},
			}},
		}
	}
	one := storeKey(inlineBucket("a", "http://x"))
	if other := storeKey(inlineBucket("a", "http://x")); one != other {
		t.Errorf("%s and %s", one, other)
	}
	for _, other := range []*storagev1.StorageBucket{inlineBucket("b", "http://x"), inlineBucket("a", "http://y")} {
		if one == storeKey(other) {
			t.Errorf("%s is also the key of another namespace or endpoint", one)
		}
	}
}

func TestABucketIsCountedOnceInTheMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &scripted{count: seconds(1)}
		m := newMeasurer(cluster{"home/store": store}, 8)
		m.MaxAge = 5 * time.Minute
		bucket := bucketsIn("home/store", 1)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { m.Measure(t.Context(), bucket) })
		}
		wg.Wait()
		first := m.Measure(t.Context(), bucket)[0]
		if store.asked != 2 { // the touch, and the listing
			t.Errorf("21 requests asked the store %d times, want 2", store.asked)
		}
		<-time.After(m.MaxAge) // the bubble has a clock of its own
		second := m.Measure(t.Context(), bucket)[0]
		if store.asked != 4 {
			t.Errorf("asked %d times after the max age, want 4", store.asked)
		}
		if !second.At.After(first.At) {
			t.Errorf("counted at %v, and then at %v", first.At, second.At)
		}
	})
}

func TestFailuresAndForbiddenStoresAreNotAnsweredFromMemory(t *testing.T) {
	store := &scripted{allowed: []string{"guest"}}
	m := newMeasurer(cluster{"home/store": store}, 8)
	m.MaxAge = time.Hour
	bucket := bucketsIn("home/store", 1)
	bucket[0].Namespace = "guest"
	store.count = func(context.Context, string, int64) (s3store.Usage, error) {
		return s3store.Usage{}, &s3store.Error{Reason: s3store.ReasonAccessDenied, Message: "denied"}
	}
	if got := m.Measure(t.Context(), bucket)[0]; s3store.ReasonOf(got.Err) != s3store.ReasonAccessDenied {
		t.Fatalf("error %v", got.Err)
	}
	store.count = nil
	if got := m.Measure(t.Context(), bucket)[0]; got.Err != nil || got.Usage.Objects != 1 {
		t.Errorf("after the failure: %+v", got)
	}
	store.allowed = nil
	if got := m.Measure(t.Context(), bucket)[0]; s3store.ReasonOf(got.Err) != ReasonStoreNotAllowed {
		t.Errorf("of a store that is not allowed any more: error %v", got.Err)
	}
}
