package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/probe"
)

var _ = Describe("A StorageBucket", func() {
	var (
		namespace string
		store     *scripted
	)
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		store = newScripted(succeeded)
	})

	It("whose store answers is Healthy and Ready", func(ctx context.Context) {
		b := newBucket(namespace, "photos")
		create(ctx, newSecret(namespace), b)
		startManager(namespace, store)

		got := eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		Expect(condition(got, storagev1alpha1.ConditionReady)).To(Equal("True Available"))
		Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
		for _, c := range got.Status.Conditions {
			Expect(c.ObservedGeneration).To(Equal(got.Generation))
			Expect(c.Message).NotTo(BeEmpty())
		}
		Expect(got.Status.LastProbeTime.Time).To(BeTemporally("~", time.Now(), time.Minute))
		Expect(got.Status.LatencyMilliseconds).To(HaveValue(Equal(int64(2))), "1.5 ms rounded up")
	})

	It("is asked for with its endpoint, region, bucket and keys", func(ctx context.Context) {
		create(ctx, newSecret(namespace), newBucket(namespace, "photos", func(s *storagev1alpha1.StorageBucketSpec) {
			s.Endpoint, s.Region = "http://127.0.0.1:9000/s3/", "eu-west-3"
		}))
		startManager(namespace, store)
		Eventually(store.probes).Should(Equal(1))
		target := store.targets()[0]
		Expect(target.Endpoint.String()).To(Equal("http://127.0.0.1:9000/s3"))
		Expect(target.Region).To(Equal("eu-west-3"))
		Expect(target.Bucket).To(Equal("photos"))
		Expect(target.Credentials == probe.Credentials{AccessKeyID: keyID, SecretAccessKey: secretKey}).To(BeTrue())
	})

	It("whose store does not answer is neither Healthy nor Ready, and has no latency", func(ctx context.Context) {
		store.answers(unreachable)
		b := newBucket(namespace, "photos")
		create(ctx, newSecret(namespace), b)
		startManager(namespace, store)
		got := eventuallyHealthy(ctx, b, "False EndpointUnreachable")
		Expect(condition(got, storagev1alpha1.ConditionReady)).To(Equal("False EndpointUnreachable"))
		Expect(got.Status.LatencyMilliseconds).To(BeNil())
		Expect(got.Status.LastProbeTime).NotTo(BeNil())
	})

	It("without its Secret says so, and is probed when the Secret comes, changes and goes", func(ctx context.Context) {
		b := newBucket(namespace, "photos")
		create(ctx, b)
		startManager(namespace, store)
		got := eventuallyHealthy(ctx, b, "False CredentialsNotFound")
		Expect(got.Status.LastProbeTime).To(BeNil())
		Expect(store.probes()).To(BeZero())

		secret := newSecret(namespace)
		create(ctx, secret)
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		Expect(store.probes()).To(Equal(1))

		secret.StringData = map[string]string{storagev1alpha1.SecretAccessKeyKey: "another"}
		Expect(api.Update(ctx, secret)).To(Succeed())
		Eventually(store.probes).Should(Equal(2))
		Expect(store.targets()[1].Credentials.SecretAccessKey == "another").To(BeTrue())

		Expect(api.Delete(ctx, secret)).To(Succeed())
		eventuallyHealthy(ctx, b, "False CredentialsNotFound")
		Expect(store.probes()).To(Equal(2))
	})

	It("with an endpoint only the CRD takes for a URL says so", func(ctx context.Context) {
		b := newBucket(namespace, "photos", func(s *storagev1alpha1.StorageBucketSpec) { s.Endpoint = "http://host:99999" })
		create(ctx, newSecret(namespace), b)
		startManager(namespace, store)
		eventuallyHealthy(ctx, b, "False InvalidEndpoint")
		Expect(store.probes()).To(BeZero())
	})

	It("is probed once for each change of its spec, and not for other events", func(ctx context.Context) {
		b := newBucket(namespace, "photos")
		secret := newSecret(namespace)
		create(ctx, secret, b)
		startManager(namespace, store)
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")

		for i := range 5 {
			got := current(ctx, b)
			metav1.SetMetaDataLabel(&got.ObjectMeta, "edited", fmt.Sprint(i))
			Expect(api.Update(ctx, got)).To(Succeed())
		}
		got := current(ctx, b)
		got.Spec.Region = "eu-west-3"
		Expect(api.Update(ctx, got)).To(Succeed())
		Eventually(func() int64 { return current(ctx, b).Status.ObservedGeneration }).Should(Equal(got.Generation))
		Expect(got.Generation).To(Equal(int64(2)))
		Consistently(store.probes, 500*time.Millisecond).Should(Equal(2))
	})

	It("is probed again every interval, and its transition times stay until its health changes", func(ctx context.Context) {
		b := newBucket(namespace, "photos", everySecond)
		create(ctx, newSecret(namespace), b)
		startManager(namespace, store)
		first := eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		since := meta.FindStatusCondition(first.Status.Conditions, storagev1alpha1.ConditionHealthy).LastTransitionTime

		var later *storagev1alpha1.StorageBucket
		Eventually(func() time.Duration {
			later = current(ctx, b)
			return later.Status.LastProbeTime.Sub(first.Status.LastProbeTime.Time)
		}).Should(BeNumerically(">=", 2*time.Second))
		for _, c := range later.Status.Conditions {
			Expect(c.LastTransitionTime.Equal(&since)).To(BeTrue(), c.Type)
		}

		store.answers(unreachable)
		down := eventuallyHealthy(ctx, b, "False EndpointUnreachable")
		for _, c := range down.Status.Conditions {
			Expect(c.LastTransitionTime.After(since.Time)).To(BeTrue(), c.Type)
		}
	})

	It("is not probed any more once it is deleted", func(ctx context.Context) {
		b := newBucket(namespace, "photos", everySecond)
		create(ctx, newSecret(namespace), b)
		startManager(namespace, store)
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		Expect(api.Delete(ctx, b)).To(Succeed())
		// A second bucket tells that time passes for the controller.
		other := newBucket(namespace, "other", everySecond, func(s *storagev1alpha1.StorageBucketSpec) { s.Bucket = "films" })
		create(ctx, other)
		count := func(bucket string) (n int) {
			for _, t := range store.targets() {
				if t.Bucket == bucket {
					n++
				}
			}
			return n
		}
		Eventually(count).WithArguments("films").Should(BeNumerically(">=", 1))
		before := count("photos")
		Eventually(count).WithArguments("films").Should(BeNumerically(">=", 3))
		Expect(count("photos")).To(Equal(before))
	})

	It("has an Event for each change of its health and none for other probes", func(ctx context.Context) {
		b := newBucket(namespace, "photos", everySecond)
		create(ctx, newSecret(namespace), b)
		m := startManager(namespace, store)
		moreProbes := func(n int) {
			GinkgoHelper()
			Eventually(store.probes).Should(BeNumerically(">=", store.probes()+n))
		}
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		moreProbes(2)
		store.answers(unreachable)
		eventuallyHealthy(ctx, b, "False EndpointUnreachable")
		store.answers(timedOut)
		eventuallyHealthy(ctx, b, "False Timeout")
		moreProbes(1)
		store.answers(succeeded)
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		moreProbes(1)
		Expect(m.events.recorded()).To(Equal([]string{
			"Normal ProbeSucceeded", "Warning EndpointUnreachable", "Normal ProbeSucceeded",
		}))
		Eventually(func() []string { return eventLines(ctx, namespace) }).Should(ConsistOf(
			"Normal ProbeSucceeded Probe: the store answered for the bucket",
			"Warning EndpointUnreachable Probe: the endpoint refused the connection",
			"Normal ProbeSucceeded Probe: the store answered for the bucket",
		))
	})

	It("is not held up by another whose endpoint hangs", func(ctx context.Context) {
		store.behaves(func(ctx context.Context, t probe.Target) probe.Result {
			if t.Bucket == "hangs" {
				<-ctx.Done()
				return timedOut
			}
			return succeeded
		})
		create(ctx, newSecret(namespace),
			newBucket(namespace, "hangs", func(s *storagev1alpha1.StorageBucketSpec) { s.Bucket = "hangs" }))
		startManager(namespace, store)
		Eventually(store.probes).Should(Equal(1))
		b := newBucket(namespace, "photos")
		start := time.Now()
		create(ctx, b)
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		Expect(time.Since(start)).To(BeNumerically("<", probeTimeout))
	})

	It("is not reported unhealthy because the controller stops during its probe", func(ctx context.Context) {
		store.behaves(func(ctx context.Context, _ probe.Target) probe.Result {
			<-ctx.Done()
			return timedOut
		})
		b := newBucket(namespace, "photos")
		create(ctx, newSecret(namespace), b)
		m := startManager(namespace, store)
		Eventually(store.probes).Should(Equal(1))
		m.stop()
		Expect(current(ctx, b).Status.Conditions).To(BeEmpty())
	})

	It("is not probed at once because the controller restarts", func(ctx context.Context) {
		b := newBucket(namespace, "photos")
		create(ctx, newSecret(namespace), b)
		m := startManager(namespace, store)
		eventuallyHealthy(ctx, b, "True ProbeSucceeded")
		m.stop()

		startManager(namespace, store)
		late := newBucket(namespace, "late", func(s *storagev1alpha1.StorageBucketSpec) { s.Bucket = "late" })
		create(ctx, late)
		eventuallyHealthy(ctx, late, "True ProbeSucceeded")
		Consistently(store.probes, 300*time.Millisecond).Should(Equal(2), "one each")
	})

	It("is probed by the leader only, and by the next leader after that", func(ctx context.Context) {
		create(ctx, newSecret(namespace))
		b := newBucket(namespace, "photos", everySecond)
		create(ctx, b)
		elect := func(o *ctrl.Options) {
			o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "stb-test", namespace
			o.LeaderElectionReleaseOnCancel = true
			o.RetryPeriod = new(200 * time.Millisecond)
		}
		leader := startManager(namespace, store, elect)
		Eventually(store.probes).Should(BeNumerically(">=", 1))
		standby := newScripted(succeeded)
		startManager(namespace, standby, elect)
		Eventually(store.probes).Should(BeNumerically(">=", 4))
		Expect(standby.probes()).To(BeZero())

		leader.stop()
		before := store.probes()
		Eventually(standby.probes).Should(BeNumerically(">=", 2))
		Expect(store.probes()).To(Equal(before))
	})

	It("never shows its keys in logs, status or Events", func(ctx context.Context) {
		server := httptest.NewServer(http.HandlerFunc(gossip))
		DeferCleanup(server.Close)
		b := newBucket(namespace, "photos", everySecond, func(s *storagev1alpha1.StorageBucketSpec) { s.Endpoint = server.URL })
		secret := newSecret(namespace)
		// What kubectl apply leaves behind.
		secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: keyID + secretKey}
		create(ctx, secret, b)
		m := startManager(namespace, probe.NewS3())
		first := eventuallyHealthy(ctx, b, "False InvalidCredentials")
		Eventually(func() bool {
			return current(ctx, b).Status.LastProbeTime.After(first.Status.LastProbeTime.Time)
		}).Should(BeTrue())
		Eventually(func() []string { return eventLines(ctx, namespace) }).ShouldNot(BeEmpty())
		m.stop()

		status, err := yaml.Marshal(current(ctx, b).Status)
		Expect(err).NotTo(HaveOccurred())
		Expect(m.logs.String()).To(ContainSubstring("probed"), "the logs were captured")
		for place, text := range map[string]string{
			"logs":   m.logs.String(),
			"status": string(status),
			"events": allEvents(ctx, namespace),
		} {
			for _, secret := range []string{secretKey, keyID, "REQUEST-ID"} {
				Expect(strings.Contains(text, secret)).To(BeFalse(), "%s in %s", secret, place)
			}
		}
	})
})

// gossip is a store that repeats all it knows in its answers.
func gossip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amz-Request-Id", "REQUEST-ID")
	w.WriteHeader(http.StatusForbidden)
	if r.Method != http.MethodHead {
		_, _ = fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%s %s</Message>"+
			"<AWSAccessKeyId>%s</AWSAccessKeyId><RequestId>REQUEST-ID</RequestId></Error>", keyID, secretKey, keyID)
	}
}

func eventsIn(ctx context.Context, namespace string) []eventsv1.Event {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(api.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

func eventLines(ctx context.Context, namespace string) (lines []string) {
	GinkgoHelper()
	for _, e := range eventsIn(ctx, namespace) {
		if e.Regarding.Kind == "StorageBucket" {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.Action, e.Note))
		}
	}
	return lines
}

func allEvents(ctx context.Context, namespace string) string {
	GinkgoHelper()
	out, err := yaml.Marshal(eventsIn(ctx, namespace))
	Expect(err).NotTo(HaveOccurred())
	return string(out)
}
