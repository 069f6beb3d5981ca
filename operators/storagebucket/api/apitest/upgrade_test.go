package apitest

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// This spec shows how objects of the operator's first version, which had only v1alpha1,
// are upgraded to v1. The new CRD makes v1 the storage version. An object stored as
// v1alpha1 is converted each time it is read, and is stored as v1 at the next write,
// whatever the write changes. Until every object has been written, the CRD's
// status.storedVersions names both versions, and the API server refuses a CRD without
// v1alpha1. An update that changes nothing is enough to store an object as v1. After every
// object has been written, v1alpha1 may be removed from storedVersions, as this spec does.
// A later release may then remove v1alpha1 from the CRD. Storing all objects as v1 is not
// urgent, because the new CRD still has v1alpha1.
var _ = Describe("An upgrade from the operator's first version", Serial, func() {
	key := client.ObjectKey{Name: "storagebuckets.storage.koboshi.dev"}

	storedVersions := func(ctx context.Context) []string {
		var crd apiextensionsv1.CustomResourceDefinition
		Expect(api.Get(ctx, key, &crd)).To(Succeed())
		return crd.Status.StoredVersions
	}

	It("does not change the meaning of the objects", func(ctx context.Context) {
		By("installing the CRD of the operator's first version")
		DeferCleanup(func(ctx context.Context) { installNew(ctx) })
		Expect(api.Delete(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: key.Name}})).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(api.Get(ctx, key, &apiextensionsv1.CustomResourceDefinition{}))
		}).Should(BeTrue())
		_, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "first_slice_crd.yaml")}})
		Expect(err).NotTo(HaveOccurred())

		By("creating objects as users of that version did")
		namespace := newNamespace(ctx)
		b := object(bucketV1alpha1, namespace, "photos", firstSlice, fields{"bucket": "photos-2026", "region": "eu-west-1", "probeInterval": "1m30s"})
		Eventually(func() error { return apply(ctx, "kubectl", b) }).Should(Succeed())
		minimal := object(bucketV1alpha1, namespace, "minimal", firstSlice)
		Expect(api.Create(ctx, minimal)).To(Succeed())
		status := b.DeepCopy()
		Expect(api.Get(ctx, client.ObjectKeyFromObject(b), status)).To(Succeed())
		status.Object["status"] = obj{
			"observedGeneration": int64(1), "latencyMilliseconds": int64(3), "lastProbeTime": "2026-11-20T10:00:00.123456Z",
			"conditions": []any{obj{"type": "Healthy", "status": "True", "reason": "ProbeSucceeded", "message": "", "lastTransitionTime": "2026-11-20T09:00:00Z"}},
		}
		Expect(api.Status().Update(ctx, status)).To(Succeed())
		before := object(bucketV1alpha1, namespace, "photos")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(b), before)).To(Succeed())
		Expect(storedVersions(ctx)).To(Equal([]string{"v1alpha1"}))

		By("installing the current CRD")
		installNew(ctx)
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(b), &storagev1.StorageBucket{}) }).Should(Succeed())
		Expect(storedVersions(ctx)).To(Equal([]string{"v1alpha1", "v1"}))

		got := inV1(ctx, b)
		Expect(got.UID).To(Equal(before.GetUID()))
		Expect(got.Generation).To(Equal(before.GetGeneration()))
		Expect(got.Spec).To(Equal(storagev1.StorageBucketSpec{
			BucketName: "photos-2026",
			Store: &storagev1.InlineStore{
				Endpoint: "https://s3.example.com", Region: "eu-west-1",
				CredentialsSecretRef: storagev1.SecretReference{Name: "credentials"},
			},
			Management: storagev1.Observe, DeletionPolicy: storagev1.Retain,
			Probe: storagev1.ProbeSpec{
				Method: storagev1.ProbeHead, Interval: metav1.Duration{Duration: 90 * time.Second},
				FailureThreshold: 1, SuccessThreshold: 1,
			},
			DriftInterval: metav1.Duration{Duration: 10 * time.Minute},
		}))
		Expect(got.Status.Conditions).To(HaveLen(1))
		Expect(got.Status.Probe.LatencyMilliseconds).To(HaveValue(Equal(int64(3))))
		Expect(got.Status.Probe.LastProbeTime.UTC()).To(Equal(time.Date(2026, 11, 20, 10, 0, 0, 123456000, time.UTC)))
		Expect(inV1(ctx, minimal).Spec.Probe.Interval.Duration).To(Equal(30*time.Second), "v1alpha1's default")

		By("applying as before, and in v1 by another field owner")
		Expect(apply(ctx, "kubectl", b)).To(Succeed())
		Expect(inV1(ctx, b).Generation).To(Equal(before.GetGeneration()), "applying the same manifest changed the object")
		Expect(apply(ctx, "gitops", object(bucketV1, namespace, "photos", fields{"tags": obj{"team": "shop"}}))).To(Succeed())
		Expect(inV1(ctx, b).Spec.Tags).NotTo(BeEmpty())
		Expect(apply(ctx, "gitops", object(bucketV1, namespace, "photos"))).To(Succeed())
		Expect(inV1(ctx, b).Spec).To(Equal(got.Spec))

		By("storing them as v1")
		for _, name := range []string{"photos", "minimal"} {
			one := object(bucketV1, namespace, name)
			Expect(api.Get(ctx, client.ObjectKeyFromObject(one), one)).To(Succeed())
			version := one.GetResourceVersion()
			Expect(api.Update(ctx, one)).To(Succeed())
			if name == "minimal" { // photos was already written above
				Expect(one.GetResourceVersion()).NotTo(Equal(version), "an update that changes nothing was not stored")
			}
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
		Expect(api.Status().Patch(ctx, crd, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"storedVersions":["v1"]}}`)))).To(Succeed())
		Expect(storedVersions(ctx)).To(Equal([]string{"v1"}))
		Expect(inV1(ctx, b).Spec).To(Equal(got.Spec))
	})
})

// installNew replaces the CRDs with those in config/crd/bases, and sets their conversion
// webhook.
func installNew(ctx context.Context) {
	GinkgoHelper()
	_, err := envtest.InstallCRDs(cfg, install)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { return api.List(ctx, &storagev1.StorageBucketList{}) }).Should(Succeed())
}
