package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

func portOf(endpoint string) string {
	GinkgoHelper()
	u, err := url.Parse(endpoint)
	Expect(err).NotTo(HaveOccurred())
	return u.Port()
}

func bucketNames(ctx context.Context, s *rig.Store) []string {
	GinkgoHelper()
	out, err := s.Client().ListBuckets(ctx, &s3.ListBucketsInput{})
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, b := range out.Buckets {
		names = append(names, aws.ToString(b.Name))
	}
	return names
}

// tagsOf returns the tags of a bucket, or nil if they cannot be read.
func tagsOf(ctx context.Context, s *rig.Store, bucket string) map[string]string {
	out, err := s.Client().GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &bucket})
	if err != nil {
		return nil
	}
	tags := map[string]string{}
	for _, tag := range out.TagSet {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}

var _ = Describe("A bucket that is managed", func() {
	var (
		namespace string
		s         *rig.Store
		manager   *managerProcess
		b         *storagev1.StorageBucket
	)
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		s = startStore()
		manager = startManager(grantManager(ctx, namespace), []string{namespace})
		Expect(api.Create(ctx, goodSecret(namespace))).To(Succeed())
		Expect(api.Create(ctx, newObjectStore(namespace, s.Endpoint))).To(Succeed())
		b = newBucket(namespace, "album", time.Hour)
		b.Spec.Management = storagev1.Manage
		b.Spec.DeletionPolicy, b.Spec.ForceEmpty = storagev1.Delete, true
		b.Spec.DriftInterval = metav1.Duration{Duration: 168 * time.Hour}
		b.Spec.Versioning = storagev1.VersioningEnabled
		b.Spec.CORS = []storagev1.CORSRule{{AllowedOrigins: []string{"https://example.com"}, AllowedMethods: []string{"GET"}}}
		b.Spec.Tags = map[string]storagev1.TagValue{"team": "photos"}
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(ready(ctx, b)).Should(Equal("True Available"))
	})
	AfterEach(func(ctx context.Context) {
		metrics := manager.metrics(ctx)
		Eventually(manager.Terminate()).Should(gexec.Exit(0))
		expectDiscretion(manager.log(), metrics, written(ctx, namespace))
		expectCalm(manager.log())
	})

	It("is created, tagged as this cluster's, and deleted with its content", func(ctx context.Context) {
		var system corev1.Namespace
		Expect(api.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system)).To(Succeed())
		Expect(tagsOf(ctx, s, "album")).To(Equal(map[string]string{
			"team":                        "photos",
			"storage.koboshi.dev/cluster": string(system.UID),
			"storage.koboshi.dev/uid":     string(b.UID),
			"storage.koboshi.dev/origin":  "created",
		}))
		Eventually(eventReasons(ctx, b)).Should(ContainElements("Created", "Configured"))
		for range 2 {
			_, err := s.Client().PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("album"), Key: aws.String("cat")})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(api.Delete(ctx, b)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(api.Get(ctx, keyOf(b), b)) }).Should(BeTrue())
		Expect(bucketNames(ctx, s)).To(BeEmpty())
		Eventually(eventReasons(ctx, b)).Should(ContainElement("Deleted"))
	})

	DescribeTable("is repaired after a notification from outside the cluster",
		func(ctx context.Context, token func(context.Context, string) string, path, body string) {
			drift := func() {
				GinkgoHelper()
				_, err := s.Client().DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: aws.String("album")})
				Expect(err).NotTo(HaveOccurred())
			}
			hasCORS := func() bool {
				_, err := s.Client().GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: aws.String("album")})
				return err == nil
			}
			Expect(hasCORS()).To(BeTrue())
			drift()
			Consistently(hasCORS).WithTimeout(time.Second).Should(BeFalse(), "the operator compared the bucket without a notification")

			bearer := token(ctx, namespace)
			begin := time.Now()
			Expect(manager.post(ctx, bearer, fmt.Sprintf(path, namespace), body)).To(Equal(http.StatusAccepted))
			Eventually(hasCORS).WithPolling(5 * time.Millisecond).Should(BeTrue())
			AddReportEntry("time from the notification to the repair", time.Since(begin))

			Eventually(eventReasons(ctx, b)).Should(ContainElement("DriftRepaired"))
			Expect(manager.metrics(ctx)).To(And(
				ContainSubstring(`storagebucket_drift_repaired_total{setting="cors"} 1`),
				ContainSubstring(`storagebucket_notifications_total{outcome="accepted"} 1`),
			))
		},
		Entry("that a store sends", func(context.Context, string) string { return notifyToken },
			"/v1/stores/%s/shop/events", `{"Records":[{"eventName":"s3:ObjectCreated:Put","s3":{"bucket":{"name":"album"},"object":{"key":"cat"}}}]}`),
		Entry("that an authorized client sends", grantNotifier,
			"/v1/buckets/%s/album/poke", ``),
	)

	It("is not considered deleted if its store seems to have moved", func(ctx context.Context) {
		elsewhere := startStore()
		store := newObjectStore(namespace, "")
		move := func(to *rig.Store) {
			GinkgoHelper()
			change(ctx, store, func(o *storagev1.ObjectStore) { o.Spec.Endpoint = to.Endpoint })
			Eventually(func(g Gomega) {
				var got storagev1.ObjectStore
				g.Expect(api.Get(ctx, keyOf(store), &got)).To(Succeed())
				g.Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
				g.Expect(ready(ctx, store)()).To(Equal("True Available"))
			}).Should(Succeed())
		}
		move(elsewhere)
		Expect(api.Delete(ctx, b)).To(Succeed())
		Eventually(condition(ctx, b, storagev1.ConditionSynced)).Should(Equal("False BucketNotFound"))
		Expect(bucketNames(ctx, elsewhere)).To(BeEmpty())
		Expect(bucketNames(ctx, s)).To(ConsistOf("album"))

		move(s)
		Eventually(func() bool { return apierrors.IsNotFound(api.Get(ctx, keyOf(b), b)) }).Should(BeTrue())
		Expect(bucketNames(ctx, s)).To(BeEmpty())
	})

	It("is not probed for clients without the right to request a probe", func(ctx context.Context) {
		path := fmt.Sprintf("/v1/buckets/%s/album/poke", namespace)
		Expect(manager.post(ctx, "somebody-elses-token", path, "")).To(Equal(http.StatusUnauthorized))
		nobody := tokenFor(ctx, newAccount(ctx, namespace, "nobody"))
		Expect(manager.post(ctx, nobody, path, "")).To(Equal(http.StatusForbidden))
	})
})
