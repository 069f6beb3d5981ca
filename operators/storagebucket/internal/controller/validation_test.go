package controller

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

// raw is a StorageBucket with one field of its spec set to any value, or
// removed when that is nil.
func raw(namespace, field string, value any) *unstructured.Unstructured {
	GinkgoHelper()
	spec := map[string]any{
		"endpoint":             "https://s3.example.com",
		"bucket":               "photos",
		"credentialsSecretRef": map[string]any{"name": "credentials"},
	}
	if value == nil {
		delete(spec, field)
	} else {
		spec[field] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(storagev1alpha1.GroupVersion.WithKind("StorageBucket"))
	u.SetNamespace(namespace)
	u.SetGenerateName("validation-")
	return u
}

var _ = Describe("Validation by the CRD", Ordered, func() {
	var namespace string
	BeforeAll(func(ctx context.Context) { namespace = newNamespace(ctx) })

	DescribeTable("refuses, naming the field,",
		func(ctx context.Context, field string, value any, message string) {
			err := api.Create(ctx, raw(namespace, field, value), client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring("spec." + field)))
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("no endpoint", "endpoint", nil, "Required"),
		Entry("an empty endpoint", "endpoint", "", "at least 1"),
		Entry("an endpoint without scheme", "endpoint", "s3.example.com", "must be an http or https URL"),
		Entry("an endpoint with a port but no scheme", "endpoint", "s3.example.com:9000", "must be an http or https URL"),
		Entry("another scheme", "endpoint", "ftp://s3.example.com", "must be an http or https URL"),
		Entry("an endpoint without host", "endpoint", "https:///photos", "must name a host"),
		Entry("a user in the endpoint", "endpoint", "https://me@s3.example.com", "credentialsSecretRef"),
		Entry("a password in the endpoint", "endpoint", "https://me:pw@s3.example.com", "credentialsSecretRef"),
		Entry("a query in the endpoint", "endpoint", "https://s3.example.com?x=1", "query"),
		Entry("a fragment in the endpoint", "endpoint", "https://s3.example.com#x", "fragment"),
		Entry("an endpoint too long", "endpoint", "https://"+strings.Repeat("x", 1024), "1024"),
		Entry("a region in capitals", "region", "US-EAST-1", "should match"),
		Entry("no bucket", "bucket", nil, "Required"),
		Entry("a bucket too short", "bucket", "ab", "at least 3"),
		Entry("a bucket too long", "bucket", strings.Repeat("a", 64), "63"),
		Entry("a bucket in capitals", "bucket", "Photos", "should match"),
		Entry("a bucket with an underscore", "bucket", "my_photos", "should match"),
		Entry("a bucket that ends with a hyphen", "bucket", "photos-", "should match"),
		Entry("a bucket with a slash", "bucket", "photos/2026", "should match"),
		Entry("a bucket with two dots in a row", "bucket", "my..photos", "two dots"),
		Entry("a bucket like an address", "bucket", "192.168.5.4", "IPv4"),
		Entry("no credentials", "credentialsSecretRef", nil, "Required"),
		Entry("credentials without a name", "credentialsSecretRef", map[string]any{}, "spec.credentialsSecretRef.name"),
		Entry("credentials with an empty name", "credentialsSecretRef", map[string]any{"name": ""}, "spec.credentialsSecretRef.name"),
		Entry("an interval that is no duration", "probeInterval", "often", "should match"),
		Entry("a negative interval", "probeInterval", "-5s", "should match"),
		Entry("an interval in days", "probeInterval", "1d", "should match"),
		Entry("an interval below one second", "probeInterval", "999ms", "must be at least 1s"),
		Entry("an interval no duration can hold", "probeInterval", "99999999999999999999h", "probeInterval"),
		Entry("an interval that is a number", "probeInterval", int64(30), "string"),
	)

	DescribeTable("accepts",
		func(ctx context.Context, field string, value any) {
			Expect(api.Create(ctx, raw(namespace, field, value), client.DryRunAll)).To(Succeed())
		},
		Entry("a loopback endpoint", "endpoint", "http://127.0.0.1:9000"),
		Entry("an IPv6 endpoint", "endpoint", "http://[::1]:9000"),
		Entry("an endpoint with a path", "endpoint", "https://x.example.com/storage/v1/s3"),
		Entry("a bucket with dots", "bucket", "photos.example.com"),
		Entry("a bucket of digits", "bucket", "123"),
		Entry("an interval of several units", "probeInterval", "1m30s"),
		Entry("an interval with a fraction", "probeInterval", "1.5s"),
		Entry("the least interval", "probeInterval", "1s"),
	)

	It("fills in the region and the interval", func(ctx context.Context) {
		u := raw(namespace, "bucket", "photos")
		Expect(api.Create(ctx, u)).To(Succeed())
		var got storagev1alpha1.StorageBucket
		Expect(api.Get(ctx, client.ObjectKeyFromObject(u), &got)).To(Succeed())
		Expect(got.Spec.Region).To(Equal("us-east-1"))
		Expect(got.Spec.ProbeInterval).To(Equal(metav1.Duration{Duration: 30 * time.Second}))
	})

	It("lets a Go client leave the interval out", func(ctx context.Context) {
		b := newBucket(namespace, "defaults", func(s *storagev1alpha1.StorageBucketSpec) { s.ProbeInterval = metav1.Duration{} })
		create(ctx, b)
		Expect(b.Spec.ProbeInterval.Duration).To(Equal(30 * time.Second))
	})

	It("keeps the bucket as it was, and lets the rest change", func(ctx context.Context) {
		b := newBucket(namespace, "immutable")
		create(ctx, b)
		b.Spec.Endpoint = "https://elsewhere.example.com"
		Expect(api.Update(ctx, b)).To(Succeed())
		b.Spec.Bucket = "films"
		err := api.Update(ctx, b)
		Expect(err).To(MatchError(ContainSubstring("spec.bucket")))
		Expect(err).To(MatchError(ContainSubstring("immutable")))
	})

	It("keeps status and spec apart", func(ctx context.Context) {
		b := newBucket(namespace, "subresource")
		b.Status.ObservedGeneration = 7
		create(ctx, b)
		Expect(current(ctx, b).Status).To(Equal(storagev1alpha1.StorageBucketStatus{}))
	})
})
