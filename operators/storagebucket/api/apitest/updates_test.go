package apitest

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is an update that must be refused with the message want, or allowed if want is
// empty.
type change struct {
	name         string
	before, then fields
	want         string
}

func changes(gvk schema.GroupVersionKind, list []change) {
	for _, c := range list {
		verb := "lets "
		if c.want != "" {
			verb = "refuses "
		}
		It(verb+c.name, func(ctx context.Context) {
			u := object(gvk, newNamespace(ctx), "photos", c.before)
			Expect(api.Create(ctx, u)).To(Succeed())
			set(u, c.then)
			err := api.Update(ctx, u)
			if c.want == "" {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(refusals(err)).To(Equal(c.want))
		})
	}
}

const (
	sameBucket = "create another StorageBucket for another bucket"
	sameStore  = "storeRef is immutable: create another StorageBucket for a bucket in another store"
	keepsLock  = "objectLock cannot be removed: a store cannot turn it off again"
)

var _ = Describe("An update of a v1 StorageBucket", func() {
	unnamed := fields{"storeRef.name": "minio"}
	inlined := fields{"bucketName": "photos", "store": inline}
	locked := fields{"bucketName": "photos", "storeRef.name": "minio", "objectLock": obj{"defaultRetention": obj{"mode": "Governance", "days": int64(1)}}}
	changes(bucketV1, []change{
		{"another bucket", inStore, fields{"bucketName": "films"}, `spec.bucketName: Invalid value: is immutable: ` + sameBucket},
		{"another bucket than the object's name", unnamed, fields{"bucketName": "films"}, `spec.bucketName: Invalid value: is immutable: ` + sameBucket},
		{"the bucket's name be written out", unnamed, fields{"bucketName": "photos"}, ""},
		{"the bucket's name be left out when it is the object's", inStore, fields{"bucketName": nil}, ""},
		{"another store", inStore, fields{"storeRef.name": "other"}, `spec.storeRef: Invalid value: ` + sameStore},
		{"the store of another namespace", inStore, fields{"storeRef.namespace": "other"}, `spec.storeRef: Invalid value: ` + sameStore},
		{"an inline store instead of a reference", inStore, fields{"storeRef": nil, "store": inline}, `spec.storeRef: Invalid value: ` + sameStore},
		{"a reference instead of an inline store", inlined, fields{"storeRef.name": "minio", "store": nil}, `spec.storeRef: Invalid value: ` + sameStore},
		{"an inline store move", inlined, fields{"store.endpoint": "https://elsewhere.example.com"}, ""},
		{"the removal of object lock", locked, fields{"objectLock": nil}, `spec.objectLock: Invalid value: ` + keepsLock},
		{"the default retention go", locked, fields{"objectLock": obj{}}, ""},
		{"management change", inStore, fields{"management": "Manage", "deletionPolicy": "Delete", "forceEmpty": true}, ""},
	})
})

var _ = Describe("An update of a v1alpha1 StorageBucket", func() {
	inStore := fields{"bucket": "photos", "storeRef.name": "minio"}
	locked := fields{"bucket": "photos", "storeRef.name": "minio", "objectLock": obj{}}
	changes(bucketV1alpha1, []change{
		{"another bucket", firstSlice, fields{"bucket": "films"}, `spec.bucket: Invalid value: "films": is immutable: ` + sameBucket},
		{"the store move", firstSlice, fields{"endpoint": "https://elsewhere.example.com"}, ""},
		{"another store", inStore, fields{"storeRef.name": "other"}, `spec.storeRef: Invalid value: ` + sameStore},
		{"an inline store instead of a reference", inStore, fields{"storeRef": nil, "endpoint": "https://h", "credentialsSecretRef.name": "k"}, `spec.storeRef: Invalid value: ` + sameStore},
		{"a reference instead of an inline store", firstSlice, fields{"storeRef.name": "minio", "endpoint": nil, "region": nil, "credentialsSecretRef": nil}, `spec.storeRef: Invalid value: ` + sameStore},
		{"the removal of object lock", locked, fields{"objectLock": nil}, `spec.objectLock: Invalid value: ` + keepsLock},
	})

	It("refuses what v1 forbids of an object made in v1", func(ctx context.Context) {
		b := object(bucketV1, newNamespace(ctx), "photos", fields{"storeRef.name": "minio", "objectLock": obj{}})
		Expect(api.Create(ctx, b)).To(Succeed())
		for _, c := range []struct {
			then fields
			want string
		}{
			{fields{"bucket": "films"}, `spec.bucket: Invalid value: "films": is immutable: ` + sameBucket},
			{fields{"storeRef.name": "other"}, `spec.storeRef: Invalid value: ` + sameStore},
			{fields{"objectLock": nil}, `spec.objectLock: Invalid value: ` + keepsLock},
			{fields{"management": "Own"}, `spec.management: Unsupported value: "Own": supported values: "Observe", "Manage"`},
		} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(bucketV1alpha1)
			Expect(api.Get(ctx, client.ObjectKeyFromObject(b), u)).To(Succeed())
			set(u, c.then)
			Expect(refusals(api.Update(ctx, u))).To(Equal(c.want))
		}
	})
})

var _ = Describe("The name of a StorageBucket without bucketName", func() {
	const refused = `spec.bucketName: Invalid value: bucketName is required: metadata.name is not the name of a bucket (3 to 63 characters, no two dots in a row, not an IPv4 address)`
	for _, name := range []string{"abc", "photos.example.com", "192.168.5", long(63)} {
		It("may be "+name, func(ctx context.Context) {
			Expect(api.Create(ctx, object(bucketV1, newNamespace(ctx), name, fields{"storeRef.name": "minio"}), client.DryRunAll)).To(Succeed())
		})
	}
	for _, name := range []string{"ab", "192.168.5.4", long(64)} {
		It("may not be "+name, func(ctx context.Context) {
			namespace := newNamespace(ctx)
			err := api.Create(ctx, object(bucketV1, namespace, name, fields{"storeRef.name": "minio"}), client.DryRunAll)
			Expect(refusals(err)).To(Equal(refused))
			Expect(api.Create(ctx, object(bucketV1, namespace, name, inStore), client.DryRunAll)).To(Succeed())
		})
	}
})

// An object that was accepted under laxer rules can still be edited, as long as
// the edit does not concern the invalid part.
var _ = Describe("An object from before a rule", Ordered, func() {
	const crd = "storagebuckets.storage.koboshi.dev"

	// relax removes the rules on tags, and returns a function that restores them.
	relax := func(ctx context.Context) func(context.Context) {
		var was apiextensionsv1.CustomResourceDefinition
		Expect(api.Get(ctx, client.ObjectKey{Name: crd}, &was)).To(Succeed())
		lax := was.DeepCopy()
		for _, version := range lax.Spec.Versions {
			spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
			tags := spec.Properties["tags"]
			tags.XValidations, tags.MaxProperties = nil, nil
			spec.Properties["tags"] = tags
		}
		put := func(ctx context.Context, spec apiextensionsv1.CustomResourceDefinitionSpec) {
			text, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": spec.Versions}})
			Expect(err).NotTo(HaveOccurred())
			current := &apiextensionsv1.CustomResourceDefinition{}
			current.Name = crd
			Expect(api.Patch(ctx, current, client.RawPatch("application/merge-patch+json", text))).To(Succeed())
		}
		put(ctx, lax.Spec)
		return func(ctx context.Context) { put(ctx, was.Spec) }
	}

	for _, gvk := range []schema.GroupVersionKind{bucketV1, bucketV1alpha1} {
		It("can be edited in "+gvk.Version+" in a field that the rule does not concern", func(ctx context.Context) {
			namespace := newNamespace(ctx)
			reserved := fields{"tags": obj{"aws:x": "y"}}
			b := object(bucketV1, namespace, "photos", inStore, reserved)
			restore := relax(ctx)
			DeferCleanup(restore)
			Eventually(func() error { return api.Create(ctx, b.DeepCopy()) }).Should(Succeed())
			restore(ctx)
			Eventually(func() error {
				return api.Create(ctx, object(bucketV1, namespace, "another", inStore, reserved), client.DryRunAll)
			}).ShouldNot(Succeed())

			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			Expect(api.Get(ctx, client.ObjectKeyFromObject(b), u)).To(Succeed())
			set(u, fields{"driftInterval": "20m"})
			Expect(api.Update(ctx, u)).To(Succeed())
			set(u, fields{"tags": obj{"aws:x": "z"}})
			Expect(refusals(api.Update(ctx, u))).To(HavePrefix("spec.tags: Invalid value: keys must"))
		})
	}
})
