package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// These are defects of other bucket operators, with the issues that report them. The name of each
// spec states the behavior of this operator.
var _ = Describe("Known from other operators", func() {
	It("provider-aws#847, #1397, #2029: N buckets cause N requests per interval, and edits and restarts cause none", func(ctx SpecContext) {
		w := newWorld(ctx)
		var buckets []*storagev1.StorageBucket
		for _, name := range []string{"aaa", "bbb", "ccc"} {
			b := w.newBucket(name)
			w.makeBucket(ctx, b.BucketName())
			create(ctx, b)
			buckets = append(buckets, b)
		}
		r := w.run()
		for _, b := range buckets {
			eventually(ctx, b, ready, "True Available")
			update(ctx, b, func(b *storagev1.StorageBucket) { b.Labels = map[string]string{"edited": "yes"} })
		}
		w.storeReady(ctx)
		r.stop()
		w.run()
		probe := w.newBucket("last")
		w.makeBucket(ctx, probe.BucketName())
		create(ctx, probe)
		eventually(ctx, probe, ready, "True Available")
		for _, b := range buckets {
			Expect(w.requestsFor(b.BucketName())).To(Equal(1))
		}
	})

	It("KCC#470: a missing bucket is probed once per interval, and does not use up the request quota", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		create(ctx, b)
		w.run()
		eventually(ctx, b, healthy, "False BucketNotFound")
		Consistently(func() int { return w.requestsFor(b.BucketName()) }).WithTimeout(1500 * time.Millisecond).Should(Equal(2))
	})

	It("provider-aws#1592, upjet-aws#1441: the interval in the spec is the time between two probes", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", everySecond)
		w.makeBucket(ctx, b.BucketName())
		create(ctx, b)
		w.run()
		Eventually(func() int { return w.requestsFor(b.BucketName()) }).Should(BeNumerically(">=", 7))
		var at []time.Time
		for _, r := range w.server.Requests() {
			if strings.HasPrefix(r.Path, "/"+b.BucketName()) {
				at = append(at, r.At)
			}
		}
		// The first probe is immediate; the later probes come at the bucket's own time
		// slots. On a busy machine, a single probe may be late.
		var pauses []time.Duration
		for i := 2; i < len(at); i++ {
			pauses = append(pauses, at[i].Sub(at[i-1]))
		}
		slices.Sort(pauses)
		Expect(pauses[len(pauses)/2]).To(BeNumerically("~", time.Second, 300*time.Millisecond))
	})

	It("ACK#1288: drift is repaired while the operator runs, without an edit of the object", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, everySecond, configured)
		create(ctx, b)
		step := newSteppedClock()
		w.run(func(o *Options) { o.Clock = step })
		eventually(ctx, b, ready, "True Available")
		_, err := w.s3.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())
		step.forward(11 * time.Minute)
		Eventually(func() error {
			_, err := w.s3.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: aws.String(b.BucketName())})
			return err
		}).Should(Succeed())
	})

	It("ACK#2730: a bucket whose policy is refused has an owner from its creation", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, configured)
		w.server.Script(faultserver.Rule{Method: "PUT", Query: "policy", Fault: faultserver.S3Error(400, "MalformedPolicy")})
		create(ctx, b)
		w.run()
		Eventually(func() string { return condition(current(ctx, b).Status.Conditions, synced) }).Should(HavePrefix("False"))
		w.owned(ctx, b, originCreated)
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("Snapp, Rook#16432: the finalizer and the Pending marker are written before the bucket is created", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		w.server.Script(faultserver.Rule{Method: "PUT", Path: "/" + b.BucketName(), Fault: faultserver.Hang()})
		create(ctx, b)
		w.run()
		Eventually(w.writes).ShouldNot(BeEmpty())
		got := current(ctx, b)
		Expect(got.Finalizers).To(ContainElement(storagev1.Finalizer))
		Expect(got.Status.External.State).To(Equal(storagev1.ExternalPending))
		w.server.Heal()
	})

	It("lib-bucket-provisioner#71, #146, #188: if a write to Kubernetes fails, no bucket is deleted or created", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		w.putObject(ctx, b.BucketName(), "a")
		w.refuseStatusWrites(ctx, b)
		later := w.newBucket("later", managedBucket)
		create(ctx, later)
		w.server.Script(faultserver.Rule{Path: "/" + b.BucketName(), Fault: faultserver.S3Error(403, "AccessDenied")})
		r.poke(b)
		Eventually(r.logs.String).Should(ContainSubstring("no status today"))
		w.server.Heal()
		Expect(api.Delete(ctx, b)).To(Succeed())
		Consistently(func() []string { return w.objects(ctx, b.BucketName()) }).WithTimeout(2 * time.Second).Should(Equal([]string{"a"}))
		Expect(w.exists(ctx, later.BucketName())).To(BeFalse())
	})

	It("K8s-S3-Operator#18: a bucket of another owner is neither changed nor deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket, configured)
		w.makeBucket(ctx, b.BucketName())
		w.putObject(ctx, b.BucketName(), "theirs")
		w.setTags(ctx, b.BucketName(), map[string]string{"team": "theirs"})
		create(ctx, b)
		w.run()
		got := eventually(ctx, b, ready, "False OwnershipConflict")
		Expect(message(got.Status.Conditions, ready)).To(ContainSubstring(storagev1.AnnotationAdopt + "=" + b.BucketName()))
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.writes()).To(BeEmpty())
		Expect(w.objects(ctx, b.BucketName())).To(Equal([]string{"theirs"}))
		Expect(w.tags(ctx, b.BucketName())).To(Equal(map[string]string{"team": "theirs"}))
	})

	It("crossplane#2095, #4990, provider-aws#507: adoption removes nothing from the bucket", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket, func(s *storagev1.StorageBucketSpec) {
			s.Tags = map[string]storagev1.TagValue{"stage": "live"}
		})
		b.Annotations = map[string]string{storagev1.AnnotationAdopt: b.BucketName()}
		w.makeBucket(ctx, b.BucketName())
		w.putObject(ctx, b.BucketName(), "theirs")
		w.setTags(ctx, b.BucketName(), map[string]string{"team": "theirs"})
		_, err := w.s3.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{
			Bucket: aws.String(b.BucketName()), Policy: aws.String(string(policyFor(b.BucketName()).Raw)),
		})
		Expect(err).NotTo(HaveOccurred())
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		w.owned(ctx, b, originAdopted)
		Expect(w.tags(ctx, b.BucketName())).To(And(HaveKeyWithValue("team", "theirs"), HaveKeyWithValue("stage", "live")))
		_, err = w.s3.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())

		By("deleting the object, which does not delete an adopted bucket")
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.objects(ctx, b.BucketName())).To(Equal([]string{"theirs"}))
	})

	It("provider-aws#874: nothing is written to a bucket that is as declared", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, configured)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		before := w.writes()
		for range 3 {
			asked := w.requestsFor(b.BucketName())
			r.poke(b)
			Eventually(func() int { return w.requestsFor(b.BucketName()) }).Should(BeNumerically(">", asked+5))
		}
		Expect(w.writes()).To(Equal(before))
	})

	It("KCC#710: configuration that is no longer declared is removed, and tags of others stay", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, configured)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		tags := w.tags(ctx, b.BucketName())
		tags["foreign"] = "theirs"
		w.setTags(ctx, b.BucketName(), tags)
		update(ctx, b, func(b *storagev1.StorageBucket) {
			b.Spec.Policy, b.Spec.CORS = nil, nil
			delete(b.Spec.Tags, "stage")
		})
		Eventually(func() []storagev1.AppliedConfiguration { return current(ctx, b).Status.Applied }).Should(HaveLen(2))
		_, err := w.s3.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: aws.String(b.BucketName())})
		Expect(codeOf(err)).To(Equal("NoSuchBucketPolicy"))
		_, err = w.s3.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: aws.String(b.BucketName())})
		Expect(codeOf(err)).To(Equal("NoSuchCORSConfiguration"))
		got := w.tags(ctx, b.BucketName())
		Expect(got).To(And(HaveKeyWithValue("foreign", "theirs"), HaveKeyWithValue("team", "pictures"), Not(HaveKey("stage"))))
		w.owned(ctx, b, originCreated)
	})

	It("ACK#1158, #1393, KCC#22: the message for a bucket that is not empty names the remedy", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		w.putObject(ctx, b.BucketName(), "a")
		Expect(api.Delete(ctx, b)).To(Succeed())
		got := eventually(ctx, b, synced, "False NotEmpty")
		Expect(message(got.Status.Conditions, synced)).To(ContainSubstring("set forceEmpty"))
		Expect(w.objects(ctx, b.BucketName())).To(Equal([]string{"a"}))
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.ForceEmpty = true })
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("KCC#12929: a client that writes while the bucket is emptied delays the deletion, but does not prevent it", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		w.server.Script(faultserver.Rule{
			Method: "DELETE", Path: "/" + b.BucketName(), Times: 2, Fault: faultserver.S3Error(409, "BucketNotEmpty"),
		})
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("a deletion that failed once is tried again soon, however long the probe interval is", func(ctx SpecContext) {
		w := newWorld(ctx)
		internal := faultserver.S3Error(500, "InternalError")
		for name, faults := range map[string][]faultserver.Rule{
			"refused": {{Method: "DELETE", Fault: internal}},
			// The check after the deletion consists of two requests.
			"unsure": {{Method: "HEAD", Skip: 1, Fault: internal}, {Method: "GET", Query: "list-type", Fault: internal}},
		} {
			b := w.newBucket(name, managedBucket, deletedBucket)
			create(ctx, b)
			r := w.run()
			eventually(ctx, b, ready, "True Available")
			for i := range faults {
				faults[i].Path, faults[i].Times = "/"+b.BucketName(), 1
			}
			w.server.Script(faults...)
			Expect(api.Delete(ctx, b)).To(Succeed())
			eventuallyGone(ctx, b)
			Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
			r.stop()
		}
	})

	It("Rook#6300: a bucket that no longer exists does not block the deletion of its object", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		_, err := w.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
	})

	It("Rook#5373: a store that is down delays only objects whose bucket must be deleted", func(ctx SpecContext) {
		w := newWorld(ctx, func(s *storagev1.ObjectStore) { s.Spec.HealthInterval.Duration = time.Second })
		// After a single slow response from the store, the buckets try again within a second.
		kept, deleted := w.newBucket("kept", managedBucket, everySecond), w.newBucket("deleted", managedBucket, deletedBucket, everySecond)
		create(ctx, kept, deleted)
		w.run()
		eventually(ctx, kept, ready, "True Available")
		eventually(ctx, deleted, ready, "True Available")
		w.server.Down()
		eventually(ctx, kept, healthy, "Unknown StoreUnavailable")
		Expect(api.Delete(ctx, kept)).To(Succeed())
		Expect(api.Delete(ctx, deleted)).To(Succeed())
		eventuallyGone(ctx, kept)
		eventually(ctx, deleted, synced, "False StoreUnavailable")
		w.server.Up()
		eventuallyGone(ctx, deleted)
		Expect(w.exists(ctx, deleted.BucketName())).To(BeFalse())
		Expect(w.exists(ctx, kept.BucketName())).To(BeTrue())
	})

	It("provider-aws#102: a bucket that now belongs to another owner does not block the deletion of the object", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket)
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		w.setTags(ctx, b.BucketName(), map[string]string{tagCluster: "another", tagUID: "another", tagOrigin: originCreated})
		w.putObject(ctx, b.BucketName(), "theirs")
		r.poke(b)
		eventually(ctx, b, ready, "False OwnershipConflict")
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.objects(ctx, b.BucketName())).To(Equal([]string{"theirs"}))
	})

	It("provider-ceph errNoRequestID, harbor-operator#1067, keycloak-operator#122: a status with nothing new in it is not written", func(ctx SpecContext) {
		w := newWorld(ctx)
		good, bad := w.newBucket("good", everySecond), w.newBucket("bad", everySecond)
		w.makeBucket(ctx, good.BucketName())
		create(ctx, good, bad)
		w.run()
		eventually(ctx, good, ready, "True Available")
		eventually(ctx, bad, ready, "False BucketNotFound")
		versions := func() []string {
			return []string{current(ctx, good).ResourceVersion, current(ctx, bad).ResourceVersion}
		}
		before, asked := versions(), w.requestsFor(good.BucketName())
		Eventually(func() int { return w.requestsFor(good.BucketName()) }).Should(BeNumerically(">=", asked+3))
		Expect(versions()).To(Equal(before))
	})

	It("provider-ceph#70: a canary probe succeeds even if another client deletes the object, and needs no separate bucket", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, everySecond, func(s *storagev1.StorageBucketSpec) { s.Probe.Method = storagev1.ProbeCanary })
		// Another client deletes the object before the operator does.
		w.server.Script(faultserver.Rule{Method: "DELETE", Path: "/" + b.BucketName() + "/.koboshi-canary", Times: 2, Fault: faultserver.S3Error(404, "NoSuchKey")})
		create(ctx, b)
		w.run()
		state := func() string { return condition(current(ctx, b).Status.Conditions, healthy) }
		Eventually(state).ShouldNot(BeEmpty())
		Expect(state()).To(Equal("True ProbeSucceeded"), "after the first probe")
		before := w.requestsFor(b.BucketName())
		Eventually(func() int { return w.requestsFor(b.BucketName()) }).Should(BeNumerically(">", before+8))
		Expect(state()).To(Equal("True ProbeSucceeded"))
	})

	It("provider-ceph: a store that answers but does not know the keys is not healthy", func(ctx SpecContext) {
		w := newWorld(ctx)
		secret := newSecret(w.namespace)
		secret.Name, secret.StringData[storagev1.AccessKeyIDKey] = "unknown", "NOBODYSKEY"
		store := w.newStore(func(s *storagev1.ObjectStore) { s.Name, s.Spec.Credentials.SecretRef.Name = "unknown", "unknown" })
		create(ctx, secret, store)
		w.run()
		Eventually(func() string { return condition(current(ctx, store).Status.Conditions, healthy) }).Should(Equal("False InvalidCredentials"))
	})

	It("minio-go BucketExists, versitygw: a 404 without an error code does not cause a bucket to be created", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		w.server.Script(faultserver.Rule{Path: "/" + b.BucketName(), Fault: faultserver.Status(404)})
		create(ctx, b)
		w.run()
		eventually(ctx, b, synced, "False UnexpectedResponse")
		Expect(w.writes()).To(BeEmpty())
	})

	It("S3 in us-east-1: a success response does not prove that this operator created the bucket", func(ctx SpecContext) {
		w := newWorld(ctx)
		r := w.run()
		w.storeReady(ctx)
		first := w.newBucket("first", managedBucket)
		create(ctx, first)
		eventually(ctx, first, ready, "True Available")
		// The spec reads the controller's cache, to wait until the controller knows that the store
		// keeps the tags.
		Eventually(func() *bool {
			store := w.newStore()
			Expect(r.controllers.client.Get(ctx, client.ObjectKeyFromObject(store), store)).To(Succeed())
			return store.Status.TagsOnCreate
		}).Should(HaveValue(BeTrue()))
		// Another client creates the bucket between our check and our request, and the store
		// answers our request with success.
		b := w.newBucket("photos", managedBucket)
		w.makeBucket(ctx, b.BucketName())
		w.server.Script(
			faultserver.Rule{Path: "/" + b.BucketName(), Times: 2, Fault: faultserver.S3Error(404, "NoSuchBucket")},
			faultserver.Rule{Method: "PUT", Path: "/" + b.BucketName(), Times: 1, Fault: faultserver.Status(200)},
		)
		create(ctx, b)
		eventually(ctx, b, ready, "False OwnershipConflict")
		Expect(w.tags(ctx, b.BucketName())).To(BeEmpty())
	})

	It("Config Connector: the kinds have the same name, but different short names", func(ctx SpecContext) {
		mapping, err := api.RESTMapper().RESTMapping(storagev1.GroupVersion.WithKind("StorageBucket").GroupKind())
		Expect(err).NotTo(HaveOccurred())
		Expect(mapping.Resource.Resource).To(Equal("storagebuckets"))
		Expect(shortNames(ctx)).To(ContainElement("stb"))
	})
})

var _ = Describe("An object that a crash left behind", func() {
	It("claims the bucket that it was creating, if the store does not keep the tags of the create request", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		pending(ctx, b, w.server.URL)
		w.makeBucket(ctx, b.BucketName()) // the request took effect, the answer was lost
		w.run()
		eventually(ctx, b, ready, "True Available")
		w.owned(ctx, b, originCreated)
		Eventually(func() *bool { return current(ctx, w.newStore()).Status.TagsOnCreate }).Should(HaveValue(BeFalse()))
	})

	It("koboshi check: concludes from its bucket that the store keeps the tags of a create request, if that was not recorded before the crash", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		pending(ctx, b, w.server.URL)
		w.makeBucket(ctx, b.BucketName())
		me := owner{cluster: cluster, uid: b.UID, origin: originCreated} // the tags came with the request
		w.setTags(ctx, b.BucketName(), me.tagged(nil))
		w.run()
		eventually(ctx, b, ready, "True Available")
		Eventually(func() *bool { return current(ctx, w.newStore()).Status.TagsOnCreate }).Should(HaveValue(BeTrue()))
	})

	It("does not claim a bucket that has objects, or that existed before", func(ctx SpecContext) {
		w := newWorld(ctx)
		full, old := w.newBucket("full", managedBucket), w.newBucket("old", managedBucket)
		w.makeBucket(ctx, old.BucketName())
		Eventually(func() time.Duration { return time.Since(w.madeAt(ctx, old.BucketName())) }).Should(BeNumerically(">", 3*time.Second))
		create(ctx, full, old)
		pending(ctx, full, w.server.URL)
		pending(ctx, old, w.server.URL)
		w.makeBucket(ctx, full.BucketName())
		w.putObject(ctx, full.BucketName(), "theirs")
		w.run()
		eventually(ctx, full, ready, "False OwnershipConflict")
		eventually(ctx, old, ready, "False OwnershipConflict")
		Expect(w.writes()).To(BeEmpty())
	})
})

// refuseStatusWrites makes the API server refuse status writes in the world's namespace, and waits
// until a dry-run write is refused.
func (w *world) refuseStatusWrites(ctx context.Context, b *storagev1.StorageBucket) {
	GinkgoHelper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{storagev1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"storagebuckets/status"},
					},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "no status today"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	create(ctx, policy, binding)
	DeferCleanup(func(ctx context.Context) {
		Expect(api.Delete(ctx, binding)).To(Succeed())
		Expect(api.Delete(ctx, policy)).To(Succeed())
	})
	Eventually(func() error { return api.Status().Update(ctx, current(ctx, b), client.DryRunAll) }).
		Should(MatchError(ContainSubstring("no status today")))
}

// pending sets the state Pending, as if a process had died between setting and clearing
// this state.
func pending(ctx context.Context, b *storagev1.StorageBucket, endpoint string) {
	GinkgoHelper()
	got := current(ctx, b)
	got.Status.External = &storagev1.ExternalBucket{
		State: storagev1.ExternalPending, BucketName: b.BucketName(), Endpoint: endpoint, Since: metav1.Now(),
	}
	Expect(api.Status().Update(ctx, got)).To(Succeed())
}

func (w *world) madeAt(ctx context.Context, bucket string) time.Time {
	GinkgoHelper()
	out, err := w.s3.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: &bucket})
	Expect(err).NotTo(HaveOccurred())
	for _, b := range out.Buckets {
		if aws.ToString(b.Name) == bucket {
			return aws.ToTime(b.CreationDate)
		}
	}
	Fail("the store does not list " + bucket)
	return time.Time{}
}
