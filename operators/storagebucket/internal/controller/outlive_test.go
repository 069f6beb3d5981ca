package controller

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// storeReason returns the reason of the store's condition Healthy.
func (w *world) storeReason(ctx context.Context) string {
	GinkgoHelper()
	return condition(current(ctx, w.newStore()).Status.Conditions, healthy)
}

var _ = Describe("A bucket whose Secret is gone", func() {
	It("is deleted with the last good connection, so that its namespace can be deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		// The namespace controller deletes objects in any order.
		Expect(api.Delete(ctx, newSecret(w.namespace))).To(Succeed())
		Eventually(func() string { return w.storeReason(ctx) }).Should(Equal("False CredentialsNotFound"))
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("can be retained after a restart, and is deleted by the object that takes it over", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		r := w.run()
		got := eventually(ctx, b, ready, "True Available")
		r.stop()
		Expect(api.Delete(ctx, newSecret(w.namespace))).To(Succeed())
		Expect(api.Delete(ctx, b)).To(Succeed())
		w.run()
		stuck := eventually(ctx, b, synced, "False CredentialsNotFound")
		Expect(message(stuck.Status.Conditions, synced)).To(ContainSubstring("another StorageBucket can take it over"))
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.DeletionPolicy = storagev1.Retain })
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeTrue())

		create(ctx, newSecret(w.namespace))
		heir := w.newBucket("heir", managedBucket, deletedBucket)
		heir.Spec.BucketName = b.BucketName()
		heir.Annotations = map[string]string{
			storagev1.AnnotationAdopt: b.BucketName(), storagev1.AnnotationAdoptFrom: cluster + "/" + string(got.UID),
		}
		create(ctx, heir)
		eventually(ctx, heir, ready, "True Available")
		w.owned(ctx, heir, originCreated)
		Expect(api.Delete(ctx, heir)).To(Succeed())
		eventuallyGone(ctx, heir)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})
})

var _ = Describe("A bucket of another cluster", func() {
	It("is taken over from the owner that is named, and keeps its origin", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		r := w.run(func(o *Options) { o.Cluster = "old-cluster" })
		old := eventually(ctx, b, ready, "True Available")
		r.stop()
		discard(ctx, b) // a restored object has another UID and is in another cluster

		w.run()
		restored := w.newBucket("photos", managedBucket)
		create(ctx, restored)
		got := eventually(ctx, restored, synced, "False OwnershipConflict")
		from := "old-cluster/" + string(old.UID)
		Expect(message(got.Status.Conditions, synced)).To(And(
			ContainSubstring(storagev1.AnnotationAdopt+"="+b.BucketName()),
			ContainSubstring(storagev1.AnnotationAdoptFrom+"="+from),
			Not(ContainSubstring("tags"))))

		update(ctx, restored, func(b *storagev1.StorageBucket) {
			b.Annotations = map[string]string{storagev1.AnnotationAdopt: b.BucketName(), storagev1.AnnotationAdoptFrom: "old-cluster/another"}
		})
		Consistently(func() string { return w.tags(ctx, b.BucketName())[tagCluster] }).Should(Equal("old-cluster"))
		update(ctx, restored, func(b *storagev1.StorageBucket) { b.Annotations[storagev1.AnnotationAdoptFrom] = from })
		got = eventually(ctx, restored, ready, "True Available")
		Expect(got.Status.External.State).To(Equal(storagev1.ExternalCreated))
		w.owned(ctx, restored, originCreated)
	})
})

var _ = Describe("A Secret that may not be read", func() {
	It("is reported by the store and by its buckets, and is used as soon as reading it is allowed", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.BucketName())
		create(ctx, b)
		user := "manager-of-" + w.namespace
		allowAll(ctx, w.namespace, user)
		runAs(&rest.ImpersonationConfig{UserName: user}, []string{w.namespace})
		eventually(ctx, b, healthy, "False CredentialsForbidden")
		Eventually(func() string { return w.storeReason(ctx) }).Should(Equal("False CredentialsForbidden"))
		Expect(message(current(ctx, b).Status.Conditions, healthy)).To(And(
			ContainSubstring(`may not read Secret "credentials"`), ContainSubstring("get, list and watch")))
		// A user who may list and watch, but not get, is refused as well.
		allow(ctx, w.namespace, user, "see", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"},
		})
		Consistently(func() string { return w.storeReason(ctx) }).Should(Equal("False CredentialsForbidden"))
		allow(ctx, w.namespace, user, "read", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
		})
		Eventually(func() string { return condition(current(ctx, b).Status.Conditions, ready) }).
			WithTimeout(patience).Should(Equal("True Available"))
	})
})

// allowAll grants a user the rights that the manager needs in a namespace, except rights to
// Secrets.
func allowAll(ctx context.Context, namespace, user string) {
	GinkgoHelper()
	every := []string{"*"}
	allow(ctx, namespace, user, "most", rbacv1.PolicyRule{
		APIGroups: []string{storagev1.GroupVersion.Group}, Resources: every, Verbs: every,
	}, rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: every, Verbs: every})
}

func allow(ctx context.Context, namespace, user, name string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		create(ctx, o)
		DeferCleanup(func(ctx context.Context) { _ = api.Delete(ctx, o) })
	}
}
