package e2e

import (
	"context"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const (
	leaseName = "storagebucket.storage.koboshi.dev"

	// leaseExpiry is longer than the time after which the lease of a dead
	// leader is taken over.
	leaseExpiry = time.Minute
)

// slotOf returns the number of a bucket's probe slot at a time. Each bucket has one slot
// per interval, at its own offset.
func slotOf(at time.Time, uid types.UID, interval time.Duration) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	offset := int64(h.Sum64() % uint64(interval))
	return (at.UnixNano() - offset) / int64(interval)
}

func (m *managerProcess) leads() bool {
	return strings.Contains(m.log(), "Successfully acquired lease")
}
func (m *managerProcess) stands() bool {
	return strings.Contains(m.log(), "Attempting to acquire leader lease")
}

var _ = Describe("Of several managers", func() {
	It("one is active, and another takes over when the active one ends or is killed", func(ctx context.Context) {
		const interval = 3 * time.Second
		namespace := newNamespace(ctx)
		s := startStore()
		Expect(s.MakeBucket(ctx, "photos")).To(Succeed())
		f := newFront(s)
		f.Start()
		token := grantManager(ctx, namespace)
		start := func() *managerProcess {
			GinkgoHelper()
			m := startManager(token, []string{namespace}, "--leader-elect", "--leader-election-namespace="+namespace)
			Eventually(m.stands).Should(BeTrue())
			return m
		}
		holder := func() string {
			GinkgoHelper()
			var lease coordinationv1.Lease
			Expect(api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: leaseName}, &lease)).To(Succeed())
			if lease.Spec.HolderIdentity == nil {
				return ""
			}
			return *lease.Spec.HolderIdentity
		}
		probesAfter := func(since time.Time) func() int {
			return func() int { return len(f.seen("/photos", since)) }
		}

		first := start()
		Eventually(first.leads).Should(BeTrue())
		second := start()
		b := newBucket(namespace, "photos", interval)
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, newObjectStore(namespace, f.URL))).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(ready(ctx, b)).Should(Equal("True Available"))
		begin := time.Now()
		Eventually(probesAfter(begin)).Should(BeNumerically(">=", 2))
		Expect(second.leads()).To(BeFalse())

		By("passing on a request that only the active manager can handle")
		before := probesAfter(begin)()
		Expect(second.post(ctx, notifyToken, "/v1/buckets/"+namespace+"/photos/poke", "")).To(Equal(http.StatusAccepted))
		Eventually(func() string {
			var got storagev1.StorageBucket
			if err := api.Get(ctx, keyOf(b), &got); err != nil {
				return err.Error()
			}
			return got.Status.LastHandledReconcileAt
		}).ShouldNot(BeEmpty())
		Expect(probesAfter(begin)()).To(BeNumerically(">", before))
		begin = time.Now()

		By("stopping the leader gracefully, so that it releases the lease")
		old := holder()
		Eventually(first.Terminate()).Should(gexec.Exit(0))
		Expect(holder()).NotTo(Equal(old), "the lease was not released")
		ended := time.Now()
		Eventually(second.leads).Should(BeTrue())
		AddReportEntry("time from the end of the leader to the next leader", time.Since(ended))
		Eventually(probesAfter(time.Now())).Should(BeNumerically(">=", 2))

		By("killing the leader, whose lease has to expire")
		third := start()
		Eventually(second.Kill()).Should(gexec.Exit())
		killed := time.Now()
		Expect(third.leads()).To(BeFalse())
		Eventually(third.leads).WithTimeout(leaseExpiry).Should(BeTrue())
		AddReportEntry("time from the kill of the leader to the next leader", time.Since(killed))
		Eventually(probesAfter(time.Now())).Should(BeNumerically(">=", 2))

		slots := map[int64]int{}
		for _, r := range f.seen("/photos", begin) {
			slots[slotOf(r.at, b.UID, interval)]++
		}
		Expect(slots).To(HaveEach(1), "a slot was probed more than once")
		Eventually(third.Terminate()).Should(gexec.Exit(0))
		for _, m := range []*managerProcess{first, second, third} {
			expectDiscretion(m.log())
			expectCalm(m.log())
		}
	})
})
