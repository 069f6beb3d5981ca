package controller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// configured declares everything that versitygw supports.
func configured(s *storagev1.StorageBucketSpec) {
	s.Versioning = storagev1.VersioningEnabled
	s.Tags = map[string]storagev1.TagValue{"team": "pictures", "stage": "live"}
	s.Policy = policyFor(s.BucketName)
	s.CORS = []storagev1.CORSRule{{AllowedOrigins: []string{"https://example.com"}, AllowedMethods: []string{"GET"}}}
}

func policyFor(bucket string) *apiextensionsv1.JSON {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::" + bucket + "/public/*",
		}},
	})
	Expect(err).NotTo(HaveOccurred())
	return &apiextensionsv1.JSON{Raw: raw}
}

func (w *world) owned(ctx context.Context, b *storagev1.StorageBucket, origin string) {
	GinkgoHelper()
	Expect(w.tags(ctx, b.BucketName())).To(And(
		HaveKeyWithValue(tagCluster, cluster),
		HaveKeyWithValue(tagUID, string(b.UID)),
		HaveKeyWithValue(tagOrigin, origin)))
}

var _ = Describe("A bucket that is managed", func() {
	It("is created, tagged with its owner, and configured", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, configured)
		create(ctx, b)
		w.run()
		got := eventually(ctx, b, ready, "True Available")
		Expect(condition(got.Status.Conditions, synced)).To(Equal("True InSync"))
		Expect(got.Status.External.State).To(Equal(storagev1.ExternalCreated))
		w.owned(ctx, got, originCreated)
		Expect(w.tags(ctx, b.BucketName())).To(HaveKeyWithValue("team", "pictures"))
		versioning, err := w.s3.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())
		Expect(versioning.Status).To(BeEquivalentTo("Enabled"))
		names := []string{}
		for _, a := range got.Status.Applied {
			names = append(names, a.Name)
		}
		Expect(names).To(Equal([]string{"cors", "policy", "tags", "versioning"}))
	})

	It("is restored after another client changed it, when the store sends a notification", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, configured)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		_, err := w.s3.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())
		r.poke(b)
		Eventually(func() error {
			_, err := w.s3.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: aws.String(b.BucketName())})
			return err
		}).Should(Succeed())
	})

	It("is created again after another client deleted it", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		_, err := w.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())
		r.poke(b)
		Eventually(func() bool { return w.exists(ctx, b.BucketName()) }).Should(BeTrue())
		eventually(ctx, b, ready, "True Available")
	})

	It("reports the settings that the store does not support, and has the others", func(ctx SpecContext) {
		w := newWorld(ctx)
		days := int32(3)
		b := w.newBucket("photos", managedBucket, configured, func(s *storagev1.StorageBucketSpec) {
			s.Lifecycle = []storagev1.LifecycleRule{{ID: "old", ExpirationDays: &days}}
			s.Encryption = &storagev1.Encryption{Algorithm: "AES256"}
		})
		create(ctx, b)
		w.run()
		got := eventually(ctx, b, ready, "False Unsupported")
		Expect(got.Status.Unsupported).To(Equal([]string{"encryption", "lifecycle"}))
		Expect(message(got.Status.Conditions, ready)).To(ContainSubstring("spec.encryption, spec.lifecycle"))
		Expect(condition(got.Status.Conditions, healthy)).To(Equal("True ProbeSucceeded"))
		Expect(w.tags(ctx, b.BucketName())).To(HaveKeyWithValue("team", "pictures"))
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.Lifecycle, b.Spec.Encryption = nil, nil })
		got = eventually(ctx, b, ready, "True Available")
		Expect(got.Status.Unsupported).To(BeEmpty())
	})

	It("is probed by writing if the probe method is Canary", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, func(s *storagev1.StorageBucketSpec) { s.Probe.Method = storagev1.ProbeCanary })
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		Expect(w.writes()).To(ContainElement(ContainSubstring(".koboshi-canary/")))
		Expect(w.objects(ctx, b.BucketName())).To(BeEmpty())
		w.server.Script(faultserver.Rule{Method: "PUT", Path: "/" + b.BucketName() + "/", Fault: faultserver.S3Error(403, "AccessDenied")})
		r.poke(b)
		eventually(ctx, b, healthy, "False AccessDenied")
	})

	It("is kept unchanged when management becomes Observe", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.Management = storagev1.Observe })
		eventually(ctx, b, synced, "True Observed")
		Eventually(func() []string { return current(ctx, b).Finalizers }).Should(BeEmpty())
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeTrue())
	})

	It("is refused to the younger of two objects that declare the same bucket", func(ctx SpecContext) {
		w := newWorld(ctx)
		older := w.newBucket("photos", managedBucket)
		create(ctx, older)
		w.run()
		eventually(ctx, older, ready, "True Available")
		younger := w.newBucket("copies", managedBucket, deletedBucket, emptiedBucket, func(s *storagev1.StorageBucketSpec) {
			s.BucketName = older.Spec.BucketName
		})
		create(ctx, younger)
		eventually(ctx, younger, ready, "False OwnershipConflict")
		w.putObject(ctx, older.BucketName(), "a")
		Expect(api.Delete(ctx, younger)).To(Succeed())
		eventuallyGone(ctx, younger)
		Expect(w.objects(ctx, older.BucketName())).To(Equal([]string{"a"}))
	})
})

var _ = Describe("A managed bucket that is deleted", func() {
	It("is kept unchanged with deletionPolicy Retain", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		before := len(w.writes())
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeTrue())
		Expect(w.writes()).To(HaveLen(before))
	})

	It("is deleted with deletionPolicy Delete if it is empty", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("is emptied first with forceEmpty, including old versions and unfinished uploads", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket, func(s *storagev1.StorageBucketSpec) {
			s.Versioning = storagev1.VersioningEnabled
		})
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		for range 2 {
			for _, key := range []string{"a", "b/c"} {
				w.putObject(ctx, b.BucketName(), key)
			}
		}
		_, err := w.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(b.BucketName()), Key: aws.String("a")})
		Expect(err).NotTo(HaveOccurred())
		_, err = w.s3.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(b.BucketName()), Key: aws.String("big")})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("keeps its object until its store answers, or deletionPolicy becomes Retain", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		w.server.Down()
		r.poke(b)
		eventually(ctx, b, healthy, "Unknown StoreUnavailable")
		Expect(api.Delete(ctx, b)).To(Succeed())
		got := eventually(ctx, b, synced, "False StoreUnavailable")
		Expect(message(got.Status.Conditions, synced)).To(ContainSubstring("set deletionPolicy to Retain"))
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.DeletionPolicy = storagev1.Retain })
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeTrue())
	})
})

var _ = Describe("A store that is down", func() {
	It("is checked itself, while its buckets are not probed, and its buckets recover when it does (provider-ceph)", func(ctx SpecContext) {
		w := newWorld(ctx, func(s *storagev1.ObjectStore) { s.Spec.HealthInterval.Duration = time.Second })
		var buckets []*storagev1.StorageBucket
		for _, name := range []string{"aaa", "bbb", "ccc", "ddd", "eee"} {
			b := w.newBucket(name, everySecond)
			w.makeBucket(ctx, b.BucketName())
			buckets = append(buckets, b)
			create(ctx, b)
		}
		w.run()
		for _, b := range buckets {
			eventually(ctx, b, ready, "True Available")
		}
		w.server.Script(faultserver.Rule{Fault: faultserver.Reset()})
		for _, b := range buckets {
			got := eventually(ctx, b, healthy, "Unknown StoreUnavailable")
			Expect(condition(got.Status.Conditions, ready)).To(Equal("Unknown StoreUnavailable"))
		}
		w.server.Forget()
		Eventually(w.server.Count).Should(BeNumerically(">=", 3))
		for _, b := range buckets {
			Expect(w.requestsFor(b.BucketName())).To(BeZero(), "a bucket was probed in a store that is down")
		}
		w.server.Heal()
		for _, b := range buckets {
			eventually(ctx, b, ready, "True Available")
		}
	})

	It("is distinguished from a bucket whose own requests fail", func(ctx SpecContext) {
		w := newWorld(ctx)
		b, other := w.newBucket("photos"), w.newBucket("films", everySecond)
		w.makeBucket(ctx, b.BucketName())
		w.makeBucket(ctx, other.BucketName())
		create(ctx, b, other)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		eventually(ctx, other, ready, "True Available")
		w.server.Script(faultserver.Rule{Path: "/" + b.BucketName(), Fault: faultserver.Reset()})
		r.poke(b)
		eventually(ctx, b, healthy, "False EndpointUnreachable")
		Expect(condition(current(ctx, other).Status.Conditions, healthy)).To(Equal("True ProbeSucceeded"))
	})
})
