package crash

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// lateCreate kills the operator while its request to create the bucket is in
// progress. The request is delivered after the restarted operator has found
// that there is no bucket.
func lateCreate(t *testing.T, habit storeHabit, meanwhile, want func(context.Context, *world) error) (status int) {
	t.Helper()
	t.Parallel()
	s := newSeries(t, habit)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	g := NewWithT(t)
	w := &world{series: s, name: s.namespace + "-late"}
	defer func() {
		if t.Failed() {
			t.Logf("%s\n%s", w.describe(context.Background()), s.operator.logs())
		}
	}()
	g.Expect(w.begin(ctx)).To(Succeed())
	s.await(ctx, t, 0, "the store to be ready", func() error { return w.storeReady(ctx) })

	struck := s.blade.arm(first("PUT bucket"), underWay)
	g.Expect(w.declare(ctx, w.managed(storagev1.Delete, true))).To(Succeed())
	g.Eventually(ctx, struck).WithTimeout(settleLimit).Should(BeClosed())
	g.Expect(meanwhile(ctx, w)).To(Succeed())
	before := s.shop.reads.Load()
	s.operator.start(t)
	s.await(ctx, t, 0, "another request to the store", func() error {
		// The operator sends a HEAD request, and then a request whose response contains the
		// reason.
		if s.shop.reads.Load() < before+2 {
			return errors.New("the store got no request")
		}
		return nil
	})
	status = s.blade.deliver()
	s.await(ctx, t, 100*time.Second, "the expected state", func() error { return want(ctx, w) })
	s.atRest(ctx, t)
	g.Expect(want(ctx, w)).To(Succeed(), "the expected state was reached, but did not last")
	g.Expect(w.accounted(ctx)).To(Succeed())
	g.Expect(w.end(ctx)).To(Succeed())
	return status
}

func nothing(context.Context, *world) error { return nil }

func TestBucketMadeByALateRequestIsTheOperatorsOwn(t *testing.T) {
	wholeSet(t)
	lateCreate(t, wellBehaved, nothing, wantCreated)
}

func TestBucketMadeByALateRequestIsTheOperatorsOwnThoughTheStoreDropsTags(t *testing.T) {
	wholeSet(t)
	lateCreate(t, dropsTags, nothing, wantCreated)
}

func TestBucketMadeByALateRequestForAnObjectDeletedMeanwhileIsNotOrphaned(t *testing.T) {
	wholeSet(t)
	if status := lateCreate(t, wellBehaved, removeObject, wantGone); status != http.StatusOK {
		t.Errorf("the late request was answered with %d, so it created no bucket, and the test proves nothing", status)
	}
}
