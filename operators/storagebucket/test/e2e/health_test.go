package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

var _ = Describe("The manager with a real store", func() {
	var (
		namespace string
		s         *rig.Store
		manager   *managerProcess
	)
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		s = startStore()
		Expect(s.MakeBucket(ctx, "photos")).To(Succeed())
		manager = startManager(grantManager(ctx, namespace), []string{namespace})
	})
	AfterEach(func(ctx context.Context) {
		Expect(manager.ExitCode()).To(Equal(-1), "the manager ended by itself")
		metrics := manager.metrics(ctx)
		Eventually(manager.Terminate()).Should(gexec.Exit(0))
		Expect(manager.Err).To(gbytes.Say("Starting workers"))
		expectDiscretion(manager.log(), metrics, written(ctx, namespace))
		expectCalm(manager.log())
	})

	It("notices that the store is stopped, killed and restarted", func(ctx context.Context) {
		const buckets = 10
		f := newFront(s)
		f.Start()
		store := newObjectStore(namespace, f.URL)
		store.Spec.HealthInterval.Duration = time.Second
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, store)).To(Succeed())
		var all []*storagev1.StorageBucket
		for i := range buckets {
			b := newBucket(namespace, fmt.Sprintf("photos-%d", i), time.Second)
			b.Spec.BucketName = "photos"
			Expect(api.Create(ctx, b)).To(Succeed())
			all = append(all, b)
		}
		expectAll := func(want string) {
			GinkgoHelper()
			for _, b := range all {
				Eventually(healthy(ctx, b)).Should(Equal(want))
			}
		}
		expectAll("True ProbeSucceeded")
		for _, end := range []func(){s.Stop, s.Kill} {
			end()
			dead := time.Now()
			Eventually(healthy(ctx, store)).Should(Equal("False EndpointUnreachable"))
			expectAll("Unknown StoreUnavailable")

			By("checking only the store, and not its buckets")
			since := time.Now()
			Eventually(func() int { return len(f.seen("", since)) }).Should(BeNumerically(">=", 3))
			Expect(f.seen("/photos", since)).To(BeEmpty())
			elapsed := time.Since(since)
			Expect(float64(f.total(since))).To(BeNumerically("<=", 2*elapsed.Seconds()+1))
			AddReportEntry("while the store was down", fmt.Sprintf("%d requests in %s, %d until all buckets showed it",
				f.total(since), elapsed, f.total(dead)-f.total(since)))
			Expect(f.total(dead)-f.total(since)).To(BeNumerically("<=", 2*buckets), "each bucket sent its own requests")

			Expect(s.Restart()).To(Succeed())
			Eventually(healthy(ctx, store)).Should(Equal("True ProbeSucceeded"))
			expectAll("True ProbeSucceeded")
		}
		Eventually(eventReasons(ctx, store)).Should(ContainElements("EndpointUnreachable", "ProbeSucceeded"))
		Eventually(func() string { return manager.metrics(ctx) }).Should(And(
			ContainSubstring(`storagebucket_store_checks_total{reason="EndpointUnreachable",store="%s/shop"}`, namespace),
			ContainSubstring(`storagebucket_probes_total{reason="ProbeSucceeded",store="%s/shop"}`, namespace),
			ContainSubstring(`storagebucket_buckets{condition="Healthy",status="True"} %d`, buckets),
			ContainSubstring(`storagebucket_store_requests_total{code="200",operation="HeadBucket"}`),
			ContainSubstring(`storagebucket_store_requests_total{code="200",operation="ListBuckets"}`),
			ContainSubstring(`storagebucket_store_requests_total{code="<error>",operation="ListBuckets"}`),
			ContainSubstring(`storagebucket_build_info{`),
		))
	})

	It("notices that the inline store of a bucket is stopped, killed and restarted", func(ctx context.Context) {
		b := newInlineBucket(namespace, s.Endpoint, "photos", time.Second)
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		for _, end := range []func(){s.Stop, s.Kill} {
			Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
			end()
			Eventually(healthy(ctx, b)).Should(Equal("False EndpointUnreachable"))
			Expect(s.Restart()).To(Succeed())
		}
		Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
	})

	DescribeTable("reports wrong keys, and recovers when they are corrected",
		func(ctx context.Context, id, key string) {
			secret := newSecret(namespace, id, key)
			b := newInlineBucket(namespace, s.Endpoint, "photos", time.Hour)
			Expect(api.Create(ctx, secret)).To(Succeed())
			Expect(api.Create(ctx, b)).To(Succeed())
			Eventually(healthy(ctx, b)).Should(Equal("False InvalidCredentials"))
			rotate(ctx, secret, rig.AccessKey, rig.SecretKey)
			Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
		},
		Entry("with a wrong secret", rig.AccessKey, wrongSecret),
		Entry("with an unknown key", unknownKey, rig.SecretKey),
	)

	It("checks a store and its buckets again at once when the Secret is rotated", func(ctx context.Context) {
		secret, store, b := goodSecret(namespace), newObjectStore(namespace, s.Endpoint), newBucket(namespace, "photos", time.Hour)
		for _, o := range []func() error{
			func() error { return api.Create(ctx, secret) },
			func() error { return api.Create(ctx, store) },
			func() error { return api.Create(ctx, b) },
		} {
			Expect(o()).To(Succeed())
		}
		Eventually(ready(ctx, b)).Should(Equal("True Available"))
		rotate(ctx, secret, rig.AccessKey, wrongSecret)
		Eventually(healthy(ctx, store)).Should(Equal("False InvalidCredentials"))
		Eventually(healthy(ctx, b)).Should(Equal("Unknown StoreUnavailable"))
		rotate(ctx, secret, rig.AccessKey, rig.SecretKey)
		Eventually(ready(ctx, store)).Should(Equal("True Available"))
		Eventually(ready(ctx, b)).WithTimeout(time.Minute).Should(Equal("True Available"))
	})

	It("reports that a bucket is missing, and does not create it", func(ctx context.Context) {
		b := newInlineBucket(namespace, s.Endpoint, "no-such-bucket", time.Hour)
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(healthy(ctx, b)).Should(Equal("False BucketNotFound"))
		Expect(bucketNames(ctx, s)).To(ConsistOf("photos"))
	})

	It("trusts the certificates that a ConfigMap currently contains", func(ctx context.Context) {
		f := newFront(s)
		f.StartTLS()
		certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
		store, b := newObjectStore(namespace, f.URL), newBucket(namespace, "photos", time.Hour)
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, store)).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(healthy(ctx, store)).Should(Equal("False TLSError"))
		Eventually(healthy(ctx, b)).Should(Equal("Unknown StoreUnavailable"))

		change(ctx, store, func(s *storagev1.ObjectStore) { s.Spec.CABundle = &storagev1.CABundleReference{Name: "authorities"} })
		Eventually(ready(ctx, store)).Should(Equal("False InvalidCABundle"))
		bundle := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authorities"},
			Data:       map[string]string{"ca.crt": string(certificate)},
		}
		Expect(api.Create(ctx, bundle)).To(Succeed())
		Eventually(ready(ctx, store)).Should(Equal("True Available"))
		Eventually(ready(ctx, b)).WithTimeout(time.Minute).Should(Equal("True Available"))

		change(ctx, bundle, func(c *corev1.ConfigMap) { c.Data["ca.crt"] = "no certificate" })
		Eventually(ready(ctx, store)).Should(Equal("False InvalidCABundle"))
	})
})
