package crash

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

const (
	// settleLimit limits the time until there are no more writes.
	settleLimit = 30 * time.Second

	// quiet is the time without a write after which no more writes are expected.
	quiet = 200 * time.Millisecond

	pollEvery = 20 * time.Millisecond

	// mostWrites stops a sweep if the writes never end.
	mostWrites = 150
)

// scenario describes actions on a StorageBucket during which the operator is killed.
type scenario struct {
	habit storeHabit
	// prepare establishes the state in which the scenario starts.
	prepare func(context.Context, *world) error
	// act performs the action of the scenario.
	act func(context.Context, *world) error
	// meddle changes the bucket as another client would while the operator is dead.
	meddle func(context.Context, *world) error
	// want returns the differences from the state that must finally be reached.
	want func(context.Context, *world) error
	// then performs a second action and checks its result.
	then func(context.Context, *world) error
	// writes are the writes that the sweep must include.
	writes []string
	// skip leaves out some of the kills if there are many of the same kind.
	skip func(at int) bool
	// limit replaces settleLimit if the operator has to wait longer.
	limit time.Duration
}

// series is one operator with its own namespace. It is used for many runs of one scenario.
type series struct {
	blade     *blade
	operator  *operator
	namespace string
	// shop is the proxy in front of the store, at endpoint.
	shop     *front
	endpoint string
}

func newSeries(t *testing.T, habit storeHabit) *series {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "crash-"}}
	if err := api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &series{namespace: ns.Name, blade: &blade{}}
	s.operator = newOperator(t, s.namespace, kubeFront(t, s.blade))
	s.blade.kill = s.operator.kill
	s.shop, s.endpoint = storeFront(t, s.blade, habit)
	t.Cleanup(func() { s.clearAway(t, ns) })
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "credentials"},
		StringData: map[string]string{storagev1.AccessKeyIDKey: rig.AccessKey, storagev1.SecretAccessKeyKey: rig.SecretKey},
	}
	if err := api.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.operator.start(t)
	return s
}

// clearAway removes everything that could affect later tests, even after a failure.
func (s *series) clearAway(t *testing.T, ns *corev1.Namespace) {
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	s.operator.kill()
	var buckets storagev1.StorageBucketList
	var stores storagev1.ObjectStoreList
	g := NewWithT(t)
	g.Expect(api.List(ctx, &buckets, client.InNamespace(s.namespace))).To(Succeed())
	g.Expect(api.List(ctx, &stores, client.InNamespace(s.namespace))).To(Succeed())
	var left []client.Object
	for i := range buckets.Items {
		left = append(left, &buckets.Items[i])
	}
	for i := range stores.Items {
		left = append(left, &stores.Items[i])
	}
	for _, o := range left {
		o.SetFinalizers(nil)
		g.Expect(api.Update(ctx, o)).To(Succeed())
		g.Expect(client.IgnoreNotFound(api.Delete(ctx, o))).To(Succeed())
	}
	names, err := bucketNames(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range names {
		if strings.HasPrefix(name, s.namespace) {
			g.Expect(purge(ctx, name)).To(Succeed())
		}
	}
	g.Expect(api.Delete(ctx, ns)).To(Succeed())
}

// sweep repeats a scenario and kills the operator at its first write, then at
// its second, and so on, until the operator survives.
func sweep(t *testing.T, sc scenario) {
	t.Helper()
	t.Parallel()
	for _, s := range bothSides {
		t.Run(strings.ReplaceAll(string(s), " ", "-"), func(t *testing.T) {
			t.Parallel()
			sweepSide(t, sc, s)
		})
	}
}

func sweepSide(t *testing.T, sc scenario, killed side) {
	s := newSeries(t, sc.habit)
	var seen []string
	for at := 1; ; at++ {
		if at > mostWrites {
			t.Fatalf("the operator is still writing after %d writes", mostWrites)
		}
		if sc.skip != nil && sc.skip(at) {
			continue
		}
		alive, ran := false, false
		ok := t.Run(fmt.Sprintf("%02d", at), func(t *testing.T) {
			ran = true
			alive, seen = s.run(t, sc, at, killed)
		})
		if !ok {
			return
		}
		if alive {
			break
		}
		if !ran && at == mostWrites {
			// No kill was run, because the command line selects another test by its name.
			return
		}
	}
	t.Logf("killed %s each of: %s", killed, strings.Join(seen, ", "))
	for _, write := range sc.writes {
		if !slices.Contains(seen, write) {
			t.Errorf("%s was not among the writes, so the sweep does not test what it is meant to test", write)
		}
	}
}

// run runs the scenario once, with one kill. alive reports whether the operator survived
// because its writes ended before the kill.
func (s *series) run(t *testing.T, sc scenario, at int, killed side) (alive bool, seen []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*settleLimit+sc.limit)
	defer cancel()
	w := &world{series: s, name: fmt.Sprintf("%s-%02d", s.namespace, at)}
	defer func() {
		if t.Failed() {
			t.Logf("writes: %s\n%s\n%s", strings.Join(s.blade.seen(), ", "), w.describe(context.Background()), s.operator.logs())
		}
	}()
	g := NewWithT(t)
	s.operator.start(t)
	g.Expect(w.begin(ctx)).To(Succeed())
	s.await(ctx, t, sc.limit, "the store to be ready", func() error { return w.storeReady(ctx) })
	if sc.prepare != nil {
		g.Expect(sc.prepare(ctx, w)).To(Succeed())
		s.atRest(ctx, t)
	}

	struck := s.blade.arm(nth(at), killed)
	g.Expect(sc.act(ctx, w)).To(Succeed())
	alive = s.untilStruck(ctx, t, struck, func() error { return sc.want(ctx, w) })
	seen = s.blade.seen()
	s.blade.disarm()
	if !alive {
		if sc.meddle != nil {
			g.Expect(sc.meddle(ctx, w)).To(Succeed())
		}
		s.operator.start(t)
		s.await(ctx, t, sc.limit, "the expected state after the restart", func() error { return sc.want(ctx, w) })
		s.atRest(ctx, t)
		g.Expect(sc.want(ctx, w)).To(Succeed(), "the expected state was reached, but did not last")
	}
	g.Expect(w.accounted(ctx)).To(Succeed())
	if sc.then != nil {
		g.Expect(sc.then(ctx, w)).To(Succeed())
		g.Expect(w.accounted(ctx)).To(Succeed())
	}
	g.Expect(w.end(ctx)).To(Succeed())
	return alive, seen
}

// untilStruck waits until the operator is dead, or the goal is reached and there are no
// more writes.
func (s *series) untilStruck(ctx context.Context, t *testing.T, struck <-chan struct{}, want func() error) (alive bool) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-struck:
			return false
		case <-ctx.Done():
			t.Fatalf("the operator was not killed, but did not reach the expected state: %v", want())
		case <-tick.C:
		}
		if s.blade.quietFor() > quiet && want() == nil {
			return !s.blade.disarm()
		}
	}
}

// atRest waits until there are no more writes.
func (s *series) atRest(ctx context.Context, t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(ctx, s.blade.quietFor).WithPolling(pollEvery).WithTimeout(settleLimit).Should(BeNumerically(">", quiet))
}

func (s *series) await(ctx context.Context, t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	NewWithT(t).Eventually(ctx, func() error {
		if !s.operator.running() {
			return StopTrying("the operator ended by itself")
		}
		return f()
	}).WithPolling(pollEvery).WithTimeout(max(settleLimit, limit)).Should(Succeed(), "waiting for "+what)
}

// wholeSet skips the current test, unless all scenarios should run.
func wholeSet(t *testing.T) {
	t.Helper()
	if os.Getenv("CRASH") != "all" {
		t.Skip("set CRASH=all to run this test")
	}
}
