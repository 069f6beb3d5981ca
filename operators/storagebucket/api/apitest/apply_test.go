package apitest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

// apply sends the same request as kubectl apply --server-side.
func apply(ctx context.Context, manager string, u *unstructured.Unstructured) error {
	return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner(manager))
}

var _ = Describe("Server-side apply in two versions", func() {
	var namespace string
	var old, young *unstructured.Unstructured
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		old = object(bucketV1alpha1, namespace, "photos", fields{"bucket": "photos", "storeRef.name": "minio", "probeInterval": "30s"})
		young = object(bucketV1, namespace, "photos", inStore, fields{"management": "Manage", "tags": obj{"team": "shop"}})
	})

	It("keeps the fields applied through v1 when the object is applied again through v1alpha1", func(ctx context.Context) {
		Expect(apply(ctx, "old", old)).To(Succeed())
		Expect(apply(ctx, "young", young)).To(Succeed())
		set(old, fields{"probeInterval": "45s"})
		Expect(apply(ctx, "old", old)).To(Succeed())
		b := inV1(ctx, old)
		Expect(b.Spec.Management).To(Equal(storagev1.Manage))
		Expect(b.Spec.Tags).To(HaveKeyWithValue("team", storagev1.TagValue("shop")))
		Expect(b.Spec.Probe.Interval.Duration).To(Equal(45 * time.Second))
		Expect(apply(ctx, "young", young)).To(Succeed())
		Expect(apply(ctx, "old", old)).To(Succeed())
	})

	It("removes a field through v1, even after an apply through v1alpha1", func(ctx context.Context) {
		Expect(apply(ctx, "young", young)).To(Succeed())
		Expect(apply(ctx, "old", old)).To(Succeed())
		set(young, fields{"tags": nil})
		Expect(apply(ctx, "young", young)).To(Succeed())
		b := inV1(ctx, young)
		Expect(b.Spec.Tags).To(BeEmpty())
		Expect(b.Spec.Management).To(Equal(storagev1.Manage))
	})

	It("reports a conflict between field owners that use different versions", func(ctx context.Context) {
		set(young, fields{"probe.interval": "2m"})
		Expect(apply(ctx, "young", young)).To(Succeed())
		err := apply(ctx, "old", old)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(".spec.probe.interval")))
		Expect(inV1(ctx, young).Spec.Probe.Interval.Duration).To(Equal(2 * time.Minute))
	})

	It("applies a status field through v1alpha1 without changing other fields", func(ctx context.Context) {
		before := create(ctx, namespace)
		status := object(bucketV1alpha1, namespace, "photos")
		unstructured.RemoveNestedField(status.Object, "spec")
		Expect(unstructured.SetNestedField(status.Object, int64(9), "status", "latencyMilliseconds")).To(Succeed())
		Expect(api.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("old"), client.ForceOwnership)).To(Succeed())
		after := inV1(ctx, before)
		Expect(after.Status.Probe.LatencyMilliseconds).To(HaveValue(Equal(int64(9))))
		after.Status.Probe.LatencyMilliseconds = before.Status.Probe.LatencyMilliseconds
		Expect(after.Status).To(Equal(before.Status))
	})

	It("patches an object through v1alpha1 without losing the fields of v1", func(ctx context.Context) {
		before := create(ctx, namespace)
		b := &storagev1alpha1.StorageBucket{}
		b.Namespace, b.Name = namespace, "photos"
		Expect(api.Patch(ctx, b, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"probeInterval":"10s"}}`)))).To(Succeed())
		after := inV1(ctx, b)
		before.Spec.Probe.Interval.Duration = 10 * time.Second
		Expect(after.Spec).To(Equal(before.Spec))
	})
})
