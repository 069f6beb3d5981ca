package apitest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

// read gets an object in the requested version.
func read[T any, P interface {
	*T
	client.Object
}](ctx context.Context, of client.Object) P {
	GinkgoHelper()
	got := P(new(T))
	Expect(api.Get(ctx, client.ObjectKeyFromObject(of), got)).To(Succeed())
	return got
}

func inV1(ctx context.Context, of client.Object) *storagev1.StorageBucket {
	GinkgoHelper()
	return read[storagev1.StorageBucket](ctx, of)
}

func inAlpha(ctx context.Context, of client.Object) *storagev1alpha1.StorageBucket {
	GinkgoHelper()
	return read[storagev1alpha1.StorageBucket](ctx, of)
}

// everything returns a bucket with many fields, all of which v1alpha1 must preserve.
func everything(namespace string) *storagev1.StorageBucket {
	return &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "photos"},
		Spec: storagev1.StorageBucketSpec{
			StoreRef:       &storagev1.ObjectStoreReference{Name: "minio", Namespace: "infra"},
			Management:     storagev1.Manage,
			DeletionPolicy: storagev1.Delete,
			ForceEmpty:     true,
			Probe: storagev1.ProbeSpec{
				Method:           storagev1.ProbeCanary,
				Interval:         metav1.Duration{Duration: 90 * time.Second},
				Timeout:          metav1.Duration{Duration: 2 * time.Second},
				FailureThreshold: 3,
			},
			Versioning: storagev1.VersioningEnabled,
			Tags:       map[string]storagev1.TagValue{"team": "shop", "empty": ""},
			Lifecycle:  []storagev1.LifecycleRule{{ID: "old", NoncurrentVersionExpirationDays: new(int32(30))}},
			CORS:       []storagev1.CORSRule{{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"GET"}, MaxAgeSeconds: new(int32(0))}},
			ObjectLock: &storagev1.ObjectLock{},
		},
	}
}

// probed returns a status with the fields that the operator sets after a probe.
func probed() storagev1.StorageBucketStatus {
	at := metav1.NewTime(time.Unix(1795000000, 0))
	return storagev1.StorageBucketStatus{
		Conditions: []metav1.Condition{
			{Type: storagev1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: at},
			{Type: "SomebodyElses", Status: metav1.ConditionUnknown, Reason: "Unheard", Message: "of", LastTransitionTime: at},
		},
		ObservedGeneration: 1,
		Probe: &storagev1.ProbeStatus{
			Reason: "ProbeSucceeded", LastProbeTime: new(metav1.NewMicroTime(time.Unix(1795000001, 123456000))),
			LatencyMilliseconds: new(int64(7)), ConsecutiveSuccesses: 1,
		},
		External: &storagev1.ExternalBucket{State: storagev1.ExternalCreated, BucketName: "photos", Endpoint: "https://s3.example.com", Since: at},
		Applied:  []storagev1.AppliedConfiguration{{Name: "tags", Hash: "x", Keys: []string{"team"}}},
	}
}

// create creates the object from everything, with the status from probed.
func create(ctx context.Context, namespace string) *storagev1.StorageBucket {
	GinkgoHelper()
	b := everything(namespace)
	Expect(api.Create(ctx, b)).To(Succeed())
	b.Status = probed()
	Expect(api.Status().Update(ctx, b)).To(Succeed())
	return inV1(ctx, b)
}

var _ = Describe("A StorageBucket in two versions", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("means the same in v1 as in v1alpha1, including the defaults", func(ctx context.Context) {
		b := object(bucketV1alpha1, namespace, "photos", firstSlice)
		Expect(api.Create(ctx, b)).To(Succeed())
		Expect(inV1(ctx, b).Spec).To(Equal(storagev1.StorageBucketSpec{
			BucketName: "photos",
			Store: &storagev1.InlineStore{
				Endpoint: "https://s3.example.com", Region: "us-east-1",
				CredentialsSecretRef: storagev1.SecretReference{Name: "credentials"},
			},
			Management: storagev1.Observe, DeletionPolicy: storagev1.Retain,
			Probe: storagev1.ProbeSpec{
				Method: storagev1.ProbeHead, Interval: metav1.Duration{Duration: 30 * time.Second},
				FailureThreshold: 1, SuccessThreshold: 1,
			},
			DriftInterval: metav1.Duration{Duration: 10 * time.Minute},
		}))
		got := inAlpha(ctx, b)
		Expect(got.Spec).To(Equal(storagev1alpha1.StorageBucketSpec{
			Endpoint: "https://s3.example.com", Region: "us-east-1", Bucket: "photos",
			CredentialsSecretRef: storagev1alpha1.SecretReference{Name: "credentials"},
			ProbeInterval:        metav1.Duration{Duration: 30 * time.Second},
			Management:           storagev1.Observe, DeletionPolicy: storagev1.Retain,
			Probe:         storagev1alpha1.ProbeSpec{Method: storagev1.ProbeHead, FailureThreshold: 1, SuccessThreshold: 1},
			DriftInterval: metav1.Duration{Duration: 10 * time.Minute},
		}))
		Expect(got.Annotations).To(BeEmpty())
	})

	It("lets a Go client leave the interval out", func(ctx context.Context) {
		b := &storagev1alpha1.StorageBucket{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "photos"},
			Spec: storagev1alpha1.StorageBucketSpec{
				Endpoint: "https://s3.example.com", Bucket: "photos",
				CredentialsSecretRef: storagev1alpha1.SecretReference{Name: "credentials"},
			},
		}
		Expect(api.Create(ctx, b)).To(Succeed())
		Expect(b.Spec.ProbeInterval.Duration).To(Equal(30 * time.Second))
		Expect(b.Spec.Region).To(Equal("us-east-1"))
	})

	It("has the same defaults in both versions, except for the interval", func(ctx context.Context) {
		young := object(bucketV1, namespace, "young", inStore)
		Expect(api.Create(ctx, young)).To(Succeed())
		old := object(bucketV1alpha1, namespace, "old", fields{"storeRef.name": "minio", "bucket": "photos"})
		Expect(api.Create(ctx, old)).To(Succeed())
		fromYoung, fromOld := inV1(ctx, young).Spec, inV1(ctx, old).Spec
		Expect(fromYoung.Probe.Interval.Duration).To(Equal(time.Minute))
		Expect(fromOld.Probe.Interval.Duration).To(Equal(30 * time.Second))
		fromOld.Probe.Interval = fromYoung.Probe.Interval
		Expect(fromOld).To(Equal(fromYoung))
	})

	It("keeps every field of v1 when it is updated through v1alpha1", func(ctx context.Context) {
		before := create(ctx, namespace)
		Expect(before.Spec.BucketName).To(BeEmpty())
		b := inAlpha(ctx, before)
		Expect(b.Spec.Bucket).To(Equal("photos"))
		b.Spec.ProbeInterval.Duration = 20 * time.Second
		b.Labels = map[string]string{"team": "shop"}
		Expect(api.Update(ctx, b)).To(Succeed())
		after := inV1(ctx, b)
		want := before.DeepCopy()
		want.Spec.Probe.Interval.Duration = 20 * time.Second
		Expect(after.Spec).To(Equal(want.Spec))
		Expect(after.Status).To(Equal(want.Status))
		Expect(after.Generation).To(Equal(before.Generation + 1))
		Expect(after.Annotations).To(BeEmpty())
	})

	It("keeps its generation after an update through v1alpha1 that does not change the spec", func(ctx context.Context) {
		before := create(ctx, namespace)
		b := inAlpha(ctx, before)
		b.Labels = map[string]string{"team": "shop"}
		Expect(api.Update(ctx, b)).To(Succeed())
		after := inV1(ctx, b)
		Expect(after.Generation).To(Equal(before.Generation))
		Expect(after.Spec).To(Equal(before.Spec))
	})

	It("is shown by a watch of either version when it is changed through the other", func(ctx context.Context) {
		inOne, err := api.Watch(ctx, &storagev1.StorageBucketList{}, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		defer inOne.Stop()
		inOther, err := api.Watch(ctx, &storagev1alpha1.StorageBucketList{}, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		defer inOther.Stop()

		b := create(ctx, namespace)
		Eventually(inOther.ResultChan()).Should(Receive(WithTransform(func(e watch.Event) string {
			return e.Object.(*storagev1alpha1.StorageBucket).Spec.Bucket
		}, Equal("photos"))))
		alpha := inAlpha(ctx, b)
		alpha.Spec.ProbeInterval.Duration = 5 * time.Second
		Expect(api.Update(ctx, alpha)).To(Succeed())
		Eventually(inOne.ResultChan()).Should(Receive(WithTransform(func(e watch.Event) storagev1.StorageBucketSpec {
			return e.Object.(*storagev1.StorageBucket).Spec
		}, And(HaveField("Probe.Interval.Duration", 5*time.Second), HaveField("Management", storagev1.Manage)))))
	})

	It("keeps the status fields of v1 when the status is written through v1alpha1", func(ctx context.Context) {
		before := create(ctx, namespace)
		b := inAlpha(ctx, before)
		Expect(b.Status.LatencyMilliseconds).To(HaveValue(Equal(int64(7))))
		Expect(b.Status.External).To(Equal(before.Status.External))
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "ProbeSucceeded"})
		b.Status.LatencyMilliseconds = new(int64(8))
		b.Annotations = nil // an update of the status does not change annotations
		Expect(api.Status().Update(ctx, b)).To(Succeed())
		after := inV1(ctx, b)
		Expect(meta.FindStatusCondition(after.Status.Conditions, "Healthy")).NotTo(BeNil())
		Expect(after.Status.Probe.LatencyMilliseconds).To(HaveValue(Equal(int64(8))))
		after.Status.Conditions, after.Status.Probe = before.Status.Conditions, before.Status.Probe
		Expect(after.Status).To(Equal(before.Status))
		Expect(after.Spec).To(Equal(before.Spec))
	})

	It("does not let v1alpha1's main resource write the status", func(ctx context.Context) {
		before := create(ctx, namespace)
		b := inAlpha(ctx, before)
		b.Status.External = &storagev1.ExternalBucket{State: storagev1.ExternalAdopted, BucketName: "films", Endpoint: "x", Since: metav1.Now()}
		b.Labels = map[string]string{"team": "shop"}
		Expect(api.Update(ctx, b)).To(Succeed())
		Expect(inV1(ctx, b).Status).To(Equal(before.Status))
	})

	It("keeps its bucket when a replace through v1alpha1 drops the annotation", func(ctx context.Context) {
		before := create(ctx, namespace)
		b := inAlpha(ctx, before)
		Expect(b.Annotations).To(Equal(map[string]string{storagev1alpha1.AnnotationBucketFromName: "true"}))
		b.Annotations = nil
		Expect(api.Update(ctx, b)).To(Succeed())
		after := inV1(ctx, b)
		want := before.Spec.DeepCopy()
		want.BucketName = "photos" // the effective name before the update
		Expect(after.Spec).To(Equal(*want))
		Expect(after.Status).To(Equal(before.Status))
	})

	It("is only observed, and keeps its status, after a replace by a client that knows only the fields of the operator's first version", func(ctx context.Context) {
		b := everything(namespace)
		b.Spec.ObjectLock = nil
		Expect(api.Create(ctx, b)).To(Succeed())
		b.Status = probed()
		Expect(api.Status().Update(ctx, b)).To(Succeed())
		old := object(bucketV1alpha1, namespace, "photos", fields{"bucket": "photos", "storeRef": obj{"name": "minio", "namespace": "infra"}})
		old.SetResourceVersion(inV1(ctx, b).ResourceVersion)
		Expect(api.Update(ctx, old)).To(Succeed())
		after := inV1(ctx, b)
		Expect(after.Managed()).To(BeFalse())
		Expect(after.Spec.DeletionPolicy).To(Equal(storagev1.Retain))
		Expect(after.Spec.ForceEmpty).To(BeFalse())
		Expect(after.Status.External).To(Equal(probed().External))
	})

	It("can be deleted through v1alpha1", func(ctx context.Context) {
		b := create(ctx, namespace)
		Expect(api.Delete(ctx, inAlpha(ctx, b), client.Preconditions{UID: &b.UID})).To(Succeed())
		Expect(client.IgnoreNotFound(api.Get(ctx, client.ObjectKeyFromObject(b), b))).To(Succeed())
	})
})
