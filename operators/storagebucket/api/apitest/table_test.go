package apitest

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// table requests the table that kubectl get prints.
func table(ctx context.Context, version, namespace, resource string) *metav1.Table {
	GinkgoHelper()
	config := rest.CopyConfig(cfg)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.UnversionedRESTClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	body, err := c.Get().AbsPath("apis/storage.koboshi.dev", version, "namespaces", namespace, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	var t metav1.Table
	Expect(json.Unmarshal(body, &t)).To(Succeed())
	return &t
}

// cells returns the cells of the only row, keyed by the name of the column. Columns
// that only -o wide shows are in brackets. Ages are left out, because they change while
// the test runs.
func cells(t *metav1.Table) map[string]any {
	GinkgoHelper()
	Expect(t.Rows).To(HaveLen(1))
	got := map[string]any{}
	for i, column := range t.ColumnDefinitions {
		name := column.Name
		switch {
		case column.Type == "date":
			continue
		case column.Priority > 0:
			name = "[" + name + "]"
		}
		got[name] = t.Rows[0].Cells[i]
	}
	return got
}

var _ = Describe("kubectl get", func() {
	It("shows a bucket of v1", func(ctx context.Context) {
		b := create(ctx, newNamespace(ctx))
		b.Status.BucketName = "photos"
		b.Status.Conditions = append(b.Status.Conditions,
			metav1.Condition{Type: storagev1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "ProbeSucceeded", LastTransitionTime: metav1.Now()},
			metav1.Condition{Type: storagev1.ConditionSynced, Status: metav1.ConditionFalse, Reason: "Drifted", LastTransitionTime: metav1.Now()})
		Expect(api.Status().Update(ctx, b)).To(Succeed())
		Expect(cells(table(ctx, "v1", b.Namespace, "storagebuckets"))).To(Equal(map[string]any{
			"Name": "photos", "Bucket": "photos", "Management": "Manage", "Ready": "True", "Healthy": "True", "Reason": "Available",
			"[Synced]": "False", "[Store]": "minio", "[Latency]": float64(7),
		}))
	})

	It("shows a bucket of v1alpha1 as the operator's first version did", func(ctx context.Context) {
		b := create(ctx, newNamespace(ctx))
		b.Status.Conditions = append(b.Status.Conditions,
			metav1.Condition{Type: storagev1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: "Timeout", LastTransitionTime: metav1.Now()})
		Expect(api.Status().Update(ctx, b)).To(Succeed())
		got := table(ctx, "v1alpha1", b.Namespace, "storagebuckets")
		Expect(cells(got)).To(Equal(map[string]any{
			"Name": "photos", "Bucket": "photos", "Healthy": "False", "Reason": "Timeout", "Latency": float64(7),
		}))
		Expect(got.ColumnDefinitions).To(ContainElement(HaveField("Name", "Last Probe")))
	})

	It("shows a bucket that has no status yet", func(ctx context.Context) {
		b := object(bucketV1, newNamespace(ctx), "photos", inStore)
		Expect(api.Create(ctx, b)).To(Succeed())
		Expect(cells(table(ctx, "v1", b.GetNamespace(), "storagebuckets"))).To(Equal(map[string]any{
			"Name": "photos", "Bucket": nil, "Management": "Observe", "Ready": nil, "Healthy": nil, "Reason": nil,
			"[Synced]": nil, "[Store]": "minio", "[Latency]": nil,
		}))
	})

	It("shows a store", func(ctx context.Context) {
		s := &storagev1.ObjectStore{
			ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "minio"},
			Spec: storagev1.ObjectStoreSpec{
				Endpoint:    "https://s3.example.com",
				Credentials: storagev1.Credentials{Source: storagev1.CredentialsFromEnvironment},
			},
		}
		Expect(api.Create(ctx, s)).To(Succeed())
		s.Status.Conditions = []metav1.Condition{{Type: storagev1.ConditionReady, Status: metav1.ConditionFalse, Reason: "TLSError", LastTransitionTime: metav1.Now()}}
		s.Status.Probe = &storagev1.ProbeStatus{Reason: "TLSError"}
		Expect(api.Status().Update(ctx, s)).To(Succeed())
		Expect(cells(table(ctx, "v1", s.Namespace, "objectstores"))).To(Equal(map[string]any{
			"Name": "minio", "Endpoint": "https://s3.example.com", "Ready": "False", "Reason": "TLSError",
			"[Latency]": nil, "[Region]": "us-east-1",
		}))
		Expect(s.Spec.PathStyle).To(HaveValue(BeTrue()))
		Expect(s.Spec.HealthInterval.Duration.String()).To(Equal("30s"))
	})
})
