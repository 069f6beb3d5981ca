package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

const (
	healthy = storagev1.ConditionHealthy
	synced  = storagev1.ConditionSynced
	ready   = storagev1.ConditionReady
)

var _ = Describe("A bucket that is observed", func() {
	It("is reported ready, and nothing in the store is changed", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b)
		w.run()
		got := eventually(ctx, b, ready, "True Available")
		Expect(condition(got.Status.Conditions, healthy)).To(Equal("True ProbeSucceeded"))
		Expect(condition(got.Status.Conditions, synced)).To(Equal("True Observed"))
		Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
		Expect(got.Status.Probe.LatencyMilliseconds).To(HaveValue(BeNumerically(">", 0)))
		Expect(got.Finalizers).To(BeEmpty())
		Expect(w.writes()).To(BeEmpty())
	})

	It("is not created, whatever is declared", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("films", deletedBucket, emptiedBucket, func(s *storagev1.StorageBucketSpec) {
			s.Versioning = storagev1.VersioningEnabled
			s.Tags = map[string]storagev1.TagValue{"a": "b"}
		})
		create(ctx, b)
		w.run()
		eventually(ctx, b, healthy, "False BucketNotFound")
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.writes()).To(BeEmpty())
	})

	It("is probed again after its Secret was corrected", func(ctx SpecContext) {
		w := newWorld(ctx)
		secret := newSecret(w.namespace)
		secret.Name = "other"
		secret.StringData[storagev1.SecretAccessKeyKey] = "wrong"
		store := w.newStore(func(s *storagev1.ObjectStore) {
			s.Name = "other"
			s.Spec.Credentials.SecretRef.Name = "other"
		})
		b := w.newBucket("photos", func(s *storagev1.StorageBucketSpec) { s.StoreRef.Name = "other" })
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, secret, store, b)
		w.run()
		eventually(ctx, b, healthy, "Unknown StoreUnavailable")
		Eventually(func() string { return condition(current(ctx, store).Status.Conditions, ready) }).
			Should(Equal("False InvalidCredentials"))
		secret.StringData = map[string]string{storagev1.SecretAccessKeyKey: secretKey}
		Expect(api.Update(ctx, secret)).To(Succeed())
		eventually(ctx, b, ready, "True Available")
	})

	It("waits for a Secret that does not exist yet", func(ctx SpecContext) {
		w := newWorld(ctx)
		store := w.newStore(func(s *storagev1.ObjectStore) {
			s.Name = "later"
			s.Spec.Credentials.SecretRef.Name = "later"
		})
		b := w.newBucket("photos", func(s *storagev1.StorageBucketSpec) { s.StoreRef.Name = "later" })
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, store, b)
		w.run()
		got := eventually(ctx, b, ready, "False CredentialsNotFound")
		Expect(message(got.Status.Conditions, ready)).To(ContainSubstring(`no Secret "later"`))
		secret := newSecret(w.namespace)
		secret.Name = "later"
		create(ctx, secret)
		eventually(ctx, b, ready, "True Available")
	})

	It("waits until its ObjectStore exists and allows its namespace", func(ctx SpecContext) {
		w, other := newWorld(ctx), newWorld(ctx)
		b := w.newBucket("photos", func(s *storagev1.StorageBucketSpec) { s.StoreRef.Name = "none" })
		foreign := w.newBucket("films", func(s *storagev1.StorageBucketSpec) { s.StoreRef.Namespace = other.namespace })
		w.makeBucket(ctx, b.Spec.BucketName)
		w.makeBucket(ctx, foreign.Spec.BucketName)
		create(ctx, b, foreign)
		run([]string{w.namespace, other.namespace})
		eventually(ctx, b, ready, "False StoreNotFound")
		eventually(ctx, foreign, ready, "False StoreNotAllowed")
		create(ctx, w.newStore(func(s *storagev1.ObjectStore) { s.Name = "none" }))
		eventually(ctx, b, ready, "True Available")
		other.updateStore(ctx, func(s *storagev1.ObjectStore) { s.Spec.AllowedNamespaces = []string{w.namespace} })
		eventually(ctx, foreign, ready, "True Available")
	})

	It("can declare its store inline", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", func(s *storagev1.StorageBucketSpec) {
			s.StoreRef = nil
			s.Store = &storagev1.InlineStore{Endpoint: w.server.URL, CredentialsSecretRef: storagev1.SecretReference{Name: "inline"}}
		})
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, healthy, "False CredentialsNotFound")
		secret := newSecret(w.namespace)
		secret.Name = "inline"
		create(ctx, secret)
		eventually(ctx, b, ready, "True Available")
		w.server.Down()
		r.poke(b)
		eventually(ctx, b, healthy, "False EndpointUnreachable")
	})

	It("is not probed while it is suspended, and is then not Stalled", func(ctx SpecContext) {
		w := newWorld(ctx)
		missing := w.newBucket("missing", everySecond)
		b := w.newBucket("photos", everySecond)
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b, missing)
		w.run()
		eventually(ctx, b, ready, "True Available")
		got := eventually(ctx, missing, ready, "False BucketNotFound")
		Expect(condition(got.Status.Conditions, storagev1.ConditionStalled)).To(Equal("True BucketNotFound"))
		for _, o := range []*storagev1.StorageBucket{b, missing} {
			update(ctx, o, func(o *storagev1.StorageBucket) { o.Spec.Suspend = true })
			got := eventually(ctx, o, synced, "False Suspended")
			Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
			Expect(condition(got.Status.Conditions, storagev1.ConditionStalled)).To(BeEmpty())
			Expect(condition(got.Status.Conditions, ready)).To(BeElementOf("", "True Available"))
		}
		asked := w.requestsFor(b.Spec.BucketName)
		Consistently(func() int { return w.requestsFor(b.Spec.BucketName) }).WithTimeout(1500 * time.Millisecond).Should(Equal(asked))
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.Suspend = false })
		Expect(condition(eventually(ctx, b, synced, "True Observed").Status.Conditions, ready)).To(Equal("True Available"))
	})

	It("has a store that reports when it is suspended", func(ctx SpecContext) {
		w := newWorld(ctx, func(s *storagev1.ObjectStore) { s.Spec.Suspend = true })
		w.run()
		conditions := func() []metav1.Condition { return current(ctx, w.newStore()).Status.Conditions }
		Eventually(func() string { return condition(conditions(), synced) }).Should(Equal("False Suspended"))
		Expect(condition(conditions(), ready)).To(BeEmpty())
		store := current(ctx, w.newStore())
		store.Spec.Suspend = false
		Expect(api.Update(ctx, store)).To(Succeed())
		Eventually(func() string { return condition(conditions(), ready) }).Should(Equal("True Available"))
		Expect(condition(conditions(), synced)).To(BeEmpty())
	})

	It("is not probed while the deprecated annotation pauses it", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", everySecond)
		b.Annotations = map[string]string{storagev1.AnnotationPaused: "true"}
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b)
		w.run()
		eventually(ctx, b, synced, "False Suspended")
		Expect(message(current(ctx, b).Status.Conditions, synced)).To(ContainSubstring("use spec.suspend instead"))
		Consistently(func() int { return w.requestsFor(b.Spec.BucketName) }).WithTimeout(1500 * time.Millisecond).Should(BeZero())
		update(ctx, b, func(b *storagev1.StorageBucket) { delete(b.Annotations, storagev1.AnnotationPaused) })
		eventually(ctx, b, ready, "True Available")
	})

	DescribeTable("is probed at once when a user requests it", func(ctx SpecContext, annotation string) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		before := w.requestsFor(b.Spec.BucketName)
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Annotations = map[string]string{annotation: "now"} })
		Eventually(func() string { return current(ctx, b).Status.LastHandledReconcileAt }).Should(Equal("now"))
		Expect(w.requestsFor(b.Spec.BucketName)).To(Equal(before + 1))
	},
		Entry("by the annotation", storagev1.AnnotationReconcileRequestedAt),
		Entry("by Flux's annotation", fluxRequestedAt),
	)

	It("is probed at once when the store sends a notification", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		before := w.requestsFor(b.Spec.BucketName)
		r.poke(b)
		Eventually(func() int { return w.requestsFor(b.Spec.BucketName) }).Should(Equal(before + 1))
	})

	It("becomes unhealthy only when the failure threshold is reached", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", everySecond, func(s *storagev1.StorageBucketSpec) { s.Probe.FailureThreshold = 3 })
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		before := w.requestsFor(b.Spec.BucketName)
		w.server.Script(faultserver.Rule{Path: "/" + b.Spec.BucketName, Fault: faultserver.S3Error(403, "AccessDenied")})
		got := eventually(ctx, b, healthy, "False AccessDenied")
		Expect(got.Status.Probe.ConsecutiveFailures).To(BeEquivalentTo(3))
		// Each failed probe consists of a HEAD request and a request that finds out the
		// reason.
		Expect(w.requestsFor(b.Spec.BucketName) - before).To(BeNumerically(">=", 6))
	})
})

var _ = Describe("Every class of error", func() {
	DescribeTable("is reported in the conditions",
		func(ctx SpecContext, rule faultserver.Rule, want string) {
			w := newWorld(ctx)
			b := w.newBucket("photos")
			if want == "False Timeout" {
				b.Spec.Probe.Timeout.Duration = 300 * time.Millisecond
			}
			w.makeBucket(ctx, b.Spec.BucketName)
			rule.Path = "/" + b.Spec.BucketName
			w.server.Script(rule)
			create(ctx, b)
			w.run()
			eventually(ctx, b, healthy, want)
			eventually(ctx, b, ready, want)
		},
		Entry("not found", faultserver.Rule{Fault: faultserver.S3Error(404, "NoSuchBucket")}, "False BucketNotFound"),
		Entry("404 without a body", faultserver.Rule{Fault: faultserver.Status(404)}, "False UnexpectedResponse"),
		Entry("denied", faultserver.Rule{Fault: faultserver.S3Error(403, "AccessDenied")}, "False AccessDenied"),
		Entry("403 without a body", faultserver.Rule{Fault: faultserver.Status(403)}, "False AccessDenied"),
		Entry("bad credentials", faultserver.Rule{Fault: faultserver.S3Error(403, "SignatureDoesNotMatch")}, "False InvalidCredentials"),
		Entry("wrong region", faultserver.Rule{Fault: faultserver.Status(301, "X-Amz-Bucket-Region", "eu-west-1")}, "False WrongRegion"),
		Entry("a connection that breaks", faultserver.Rule{Fault: faultserver.Reset()}, "False EndpointUnreachable"),
		Entry("an answer that does not come", faultserver.Rule{Fault: faultserver.Hang()}, "False Timeout"),
		Entry("throttled", faultserver.Rule{Fault: faultserver.Throttle("1")}, "False Throttled"),
		Entry("failed", faultserver.Rule{Fault: faultserver.S3Error(500, "InternalError")}, "False ServerError"),
		Entry("unsupported", faultserver.Rule{Fault: faultserver.S3Error(501, "NotImplemented")}, "False Unsupported"),
		Entry("something else", faultserver.Rule{Fault: faultserver.Garbage(418)}, "False UnexpectedResponse"),
	)

	It("that only a person can fix causes one attempt per interval and not more", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		w.server.Script(faultserver.Rule{Path: "/" + b.Spec.BucketName, Fault: faultserver.S3Error(403, "AccessDenied")})
		create(ctx, b)
		w.run()
		eventually(ctx, b, synced, "False AccessDenied")
		before := w.requestsFor(b.Spec.BucketName)
		Consistently(func() int { return w.requestsFor(b.Spec.BucketName) }).WithTimeout(2 * time.Second).Should(Equal(before))
	})
})

var _ = Describe("A store", func() {
	It("with an endpoint that is not allowed is never dialled", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		create(ctx, b)
		w.run(func(o *Options) { o.Stores.Guard = nil })
		got := eventually(ctx, b, ready, "False EndpointForbidden")
		Expect(message(got.Status.Conditions, ready)).To(ContainSubstring("--allowed-endpoints"))
		Expect(w.server.Connections()).To(BeZero())
	})

	It("may use the operator's own identity only where that is allowed", func(ctx SpecContext) {
		w := newWorld(ctx)
		store := w.newStore(func(s *storagev1.ObjectStore) {
			s.Name = "ambient"
			s.Spec.Credentials = storagev1.Credentials{Source: storagev1.CredentialsFromEnvironment}
		})
		create(ctx, store)
		w.run()
		Eventually(func() string { return message(current(ctx, store).Status.Conditions, ready) }).
			Should(ContainSubstring("--environment-credentials-namespaces"))
	})

	It("uses the operator's own identity as soon as that identity can be loaded", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		GinkgoT().Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
		GinkgoT().Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
		GinkgoT().Setenv("AWS_PROFILE", "operator")
		w := newWorld(ctx)
		store := w.newStore(func(s *storagev1.ObjectStore) {
			s.Name = "ambient"
			s.Spec.Credentials = storagev1.Credentials{Source: storagev1.CredentialsFromEnvironment}
		})
		create(ctx, store)
		w.run(func(o *Options) { o.Stores.EnvironmentNamespaces = []string{w.namespace} })
		is := func() string { return condition(current(ctx, store).Status.Conditions, ready) }
		Eventually(is).Should(Equal("False CredentialsNotFound"))
		profile := fmt.Sprintf("[profile operator]\naws_access_key_id = %s\naws_secret_access_key = %s\n", keyID, secretKey)
		Expect(os.WriteFile(filepath.Join(dir, "config"), []byte(profile), 0o600)).To(Succeed())
		Eventually(is).WithTimeout(patience).Should(Equal("True Available"))
	})

	It("is trusted through its CA bundle, as soon as the bundle is correct", func(ctx SpecContext) {
		w := newWorld(ctx)
		tls := faultserver.Start(GinkgoT(), faultserver.Before(realStore), faultserver.TLS(faultserver.Good))
		ca, err := tls.CAPEM()
		Expect(err).NotTo(HaveOccurred())
		bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "ca"}}
		store := w.newStore(func(s *storagev1.ObjectStore) {
			s.Name, s.Spec.Endpoint = "tls", tls.URL
			s.Spec.CABundle = &storagev1.CABundleReference{Name: "ca"}
		})
		b := w.newBucket("photos", func(s *storagev1.StorageBucketSpec) { s.StoreRef.Name = "tls" })
		w.makeBucket(ctx, b.Spec.BucketName)
		create(ctx, bundle, store, b)
		w.run()
		eventually(ctx, b, ready, "False InvalidCABundle")
		bundle.Data = map[string]string{"ca.crt": string(ca)}
		Expect(api.Update(ctx, bundle)).To(Succeed())
		eventually(ctx, b, ready, "True Available")
	})

	It("is kept while a bucket in it is managed", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		store := w.newStore()
		Eventually(func() []string { return current(ctx, store).Finalizers }).Should(ContainElement(storagev1.Finalizer))
		Expect(api.Delete(ctx, store)).To(Succeed())
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(store), store) }).
			Should(MatchError(ContainSubstring("not found")))
	})
})

var _ = Describe("A secret", func() {
	It("appears in no log, status or Event, whatever goes wrong (GHSA-wj3p-5h3x-c74q, CloudStack#10339)", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, everySecond)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		for _, code := range []string{"SignatureDoesNotMatch", "InvalidAccessKeyId", "InternalError", "AccessDenied"} {
			w.server.Script(faultserver.Rule{Fault: faultserver.S3Error(403, code)})
			r.poke(b)
			Eventually(func() string { return condition(current(ctx, b).Status.Conditions, healthy) }).ShouldNot(HavePrefix("True"))
			w.server.Heal()
			eventually(ctx, b, healthy, "True ProbeSucceeded")
		}
		r.stop()
		Expect(r.logs.String()).To(ContainSubstring("probed"), "nothing was logged")
		for _, planted := range []string{secretKey, keyID} {
			Expect(strings.Contains(r.logs.String(), planted)).To(BeFalse(), "the log holds "+planted)
			for _, list := range []client.ObjectList{&storagev1.StorageBucketList{}, &storagev1.ObjectStoreList{}, &corev1.EventList{}} {
				Expect(api.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
				Expect(fmt.Sprintf("%+v", list)).NotTo(ContainSubstring(planted))
			}
		}
	})
})
