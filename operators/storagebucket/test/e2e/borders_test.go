package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

var _ = Describe("The borders between tenants", func() {
	var s *rig.Store
	BeforeEach(func(ctx context.Context) {
		s = startStore()
		Expect(s.MakeBucket(ctx, "photos")).To(Succeed())
	})

	It("restrict a store to the namespaces that it allows", func(ctx context.Context) {
		home, other := newNamespace(ctx), newNamespace(ctx)
		manager := startManager(grantManager(ctx, home, other), []string{home, other})
		f := newFront(s)
		f.Start()
		store := newObjectStore(home, f.URL)
		Expect(api.Create(ctx, goodSecret(home))).To(Succeed())
		Expect(api.Create(ctx, store)).To(Succeed())
		Eventually(ready(ctx, store)).Should(Equal("True Available"))
		b := newBucket(other, "photos", time.Hour)
		b.Spec.StoreRef.Namespace = home
		b.Spec.Management, b.Spec.BucketName = storagev1.Manage, "other-photos"
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(ready(ctx, b)).Should(Equal("False StoreNotAllowed"))
		Expect(f.seen("/other-photos", time.Time{})).To(BeEmpty())

		change(ctx, store, func(s *storagev1.ObjectStore) { s.Spec.AllowedNamespaces = []string{other} })
		Eventually(ready(ctx, b)).WithTimeout(time.Minute).Should(Equal("True Available"))
		Expect(bucketNames(ctx, s)).To(ConsistOf("photos", "other-photos"))

		change(ctx, store, func(s *storagev1.ObjectStore) { s.Spec.AllowedNamespaces = nil })
		Eventually(ready(ctx, b)).Should(Equal("False StoreNotAllowed"))
		Eventually(manager.Terminate()).Should(gexec.Exit(0))
		expectCalm(manager.log())
	})

	It("forbid stores on this machine if its address is not listed", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		manager := startManager(grantManager(ctx, namespace), []string{namespace}, "--allowed-endpoints=")
		f := newFront(s)
		f.Start()
		store := newObjectStore(namespace, f.URL)
		inline := newInlineBucket(namespace, f.URL, "photos", time.Second)
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, store)).To(Succeed())
		Expect(api.Create(ctx, inline)).To(Succeed())
		Eventually(ready(ctx, store)).Should(Equal("False EndpointForbidden"))
		Eventually(ready(ctx, inline)).Should(Equal("False EndpointForbidden"))

		By("refusing a host name that resolves to this machine as well")
		change(ctx, store, func(s *storagev1.ObjectStore) { s.Spec.Endpoint = "http://localhost:" + portOf(f.URL) })
		Eventually(func(g Gomega) {
			var got storagev1.ObjectStore
			g.Expect(api.Get(ctx, keyOf(store), &got)).To(Succeed())
			g.Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
			g.Expect(ready(ctx, store)()).To(Equal("False EndpointForbidden"))
		}).Should(Succeed())
		Expect(f.total(time.Time{})).To(BeZero())
		Eventually(manager.Terminate()).Should(gexec.Exit(0))
		expectCalm(manager.log())
	})
})
