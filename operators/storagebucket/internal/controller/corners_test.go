package controller

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// reconciles returns the number of reconciliations of StorageBuckets in this
// process.
func reconciles() float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == "storagebucket" {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

var _ = Describe("In an unusual case,", func() {
	It("a bucket that existed before is not claimed, even if the store reports that it was created", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket, emptiedBucket)
		w.makeBucket(ctx, b.BucketName())
		w.putObject(ctx, b.BucketName(), "theirs")
		// At this point, the operator knows nothing about the store. The store reports that there
		// is no such bucket, and then answers the request to create the bucket with success.
		w.server.Script(
			faultserver.Rule{Path: "/" + b.BucketName(), Times: 2, Fault: faultserver.S3Error(404, "NoSuchBucket")},
			faultserver.Rule{Method: "PUT", Path: "/" + b.BucketName(), Times: 1, Fault: faultserver.Status(200)},
		)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "False OwnershipConflict")
		Expect(current(ctx, w.newStore()).Status.TagsOnCreate).To(BeNil())
		Expect(api.Delete(ctx, b)).To(Succeed())
		eventuallyGone(ctx, b)
		Expect(w.objects(ctx, b.BucketName())).To(Equal([]string{"theirs"}))
		Expect(w.tags(ctx, b.BucketName())).To(BeEmpty())
	})

	It("a bucket is not adopted while its owner may exist in a namespace that the manager does not watch", func(ctx SpecContext) {
		theirs, ours := newWorld(ctx), newWorld(ctx)
		b := theirs.newBucket("photos", managedBucket)
		create(ctx, b)
		theirs.run()
		eventually(ctx, b, ready, "True Available")
		taker := ours.newBucket("taken", managedBucket, func(s *storagev1.StorageBucketSpec) { s.BucketName = b.Spec.BucketName })
		taker.Annotations = map[string]string{storagev1.AnnotationAdopt: b.Spec.BucketName}
		create(ctx, taker)
		ours.run()
		eventually(ctx, taker, ready, "False OwnershipConflict")
		theirs.owned(ctx, b, originCreated)
	})

	It("what the manager observed about a store is dropped when the spec of the store changes", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.run()
		w.storeReady(ctx)
		b := w.newBucket("photos", managedBucket)
		create(ctx, b)
		eventually(ctx, b, ready, "True Available")
		Eventually(func() *bool { return current(ctx, w.newStore()).Status.TagsOnCreate }).Should(HaveValue(BeTrue()))
		w.updateStore(ctx, func(s *storagev1.ObjectStore) { s.Spec.HealthInterval.Duration = time.Minute })
		Eventually(func() *bool { return current(ctx, w.newStore()).Status.TagsOnCreate }).Should(BeNil())
	})

	It("a notification for a bucket does not cause reconciliations in a loop while its store is checked", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.BucketName())
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		w.server.Script(
			faultserver.Rule{Query: "max-buckets", Fault: faultserver.Hang()},
			faultserver.Rule{Path: "/" + b.BucketName(), Fault: faultserver.Reset()})
		asked := w.server.Count()
		r.poke(b)
		Eventually(w.server.Count).Should(BeNumerically(">=", asked+2))
		before := reconciles()
		r.poke(b)
		Consistently(func() float64 { return reconciles() - before }).WithTimeout(2 * time.Second).Should(BeNumerically("<", 30))
	})

	It("a bucket in a paused store is probed whatever the health of the store", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.BucketName())
		create(ctx, b)
		r := w.run()
		eventually(ctx, b, ready, "True Available")
		w.updateStore(ctx, func(s *storagev1.ObjectStore) {
			s.Annotations = map[string]string{storagev1.AnnotationPaused: "true"}
		})
		w.server.Down()
		Eventually(func() string {
			r.poke(b)
			return condition(current(ctx, b).Status.Conditions, healthy)
		}).WithPolling(time.Second).Should(Equal("False EndpointUnreachable"))
	})

	It("a store is checked at once when its pause ends", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.run()
		w.storeReady(ctx)
		pause := func(annotations map[string]string) {
			w.updateStore(ctx, func(s *storagev1.ObjectStore) { s.Annotations = annotations })
		}
		state := func(kind string) string { return condition(current(ctx, w.newStore()).Status.Conditions, kind) }
		pause(map[string]string{storagev1.AnnotationPaused: "true"})
		Eventually(state).WithArguments(synced).Should(Equal("False Suspended"))
		w.server.Script(faultserver.Rule{Fault: faultserver.S3Error(403, "InvalidAccessKeyId")})
		asked := w.server.Count()
		Consistently(w.server.Count).WithTimeout(500 * time.Millisecond).Should(Equal(asked))
		pause(nil)
		Eventually(state).WithArguments(ready).Should(Equal("False InvalidCredentials"))
	})

	It("a store in a namespace that is not watched is named as the reason", func(ctx SpecContext) {
		ours, theirs := newWorld(ctx), newWorld(ctx)
		b := ours.newBucket("photos", func(s *storagev1.StorageBucketSpec) { s.StoreRef.Namespace = theirs.namespace })
		create(ctx, b)
		ours.run()
		got := eventually(ctx, b, ready, "False StoreNotFound")
		Expect(message(got.Status.Conditions, ready)).To(ContainSubstring("--namespaces"))
	})

	It("a deletion that takes effect late is checked again, and not repeated without pause", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, deletedBucket)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		w.server.Script(faultserver.Rule{Method: "DELETE", Fault: faultserver.Status(204)})
		Expect(api.Delete(ctx, b)).To(Succeed())
		deletes := func() int {
			n := 0
			for _, line := range w.writes() {
				if strings.HasPrefix(line, "DELETE") {
					n++
				}
			}
			return n
		}
		Eventually(deletes).Should(BeNumerically(">", 0))
		Consistently(deletes).WithTimeout(2 * time.Second).Should(BeNumerically("<", 5))
		Expect(current(ctx, b).Finalizers).NotTo(BeEmpty())
		w.server.Heal()
		eventuallyGone(ctx, b)
		Expect(w.exists(ctx, b.BucketName())).To(BeFalse())
	})

	It("Ready does not refer to a spec that has not been carried out yet", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, configured)
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
		w.server.Script(faultserver.Rule{Method: "PUT", Query: "tagging", Fault: faultserver.Hang()})
		writes := len(w.writes())
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Spec.Tags["team"] = "films" })
		Eventually(func() int { return len(w.writes()) }).Should(BeNumerically(">", writes))
		got := current(ctx, b)
		Expect(got.Status.ObservedGeneration).To(BeNumerically("<", got.Generation))
		for _, c := range got.Status.Conditions {
			if c.Type == ready {
				Expect(c.ObservedGeneration).To(BeNumerically("<", got.Generation))
			}
		}
	})

	It("an edit that was made during a pause takes effect when the pause ends, however long the probe interval is", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos")
		create(ctx, b)
		w.run()
		eventually(ctx, b, healthy, "False BucketNotFound")
		update(ctx, b, func(b *storagev1.StorageBucket) {
			b.Annotations = map[string]string{storagev1.AnnotationPaused: "true"}
			b.Spec.Management = storagev1.Manage
		})
		eventually(ctx, b, synced, "False Suspended")
		Expect(w.writes()).To(BeEmpty())
		update(ctx, b, func(b *storagev1.StorageBucket) { b.Annotations = nil })
		eventually(ctx, b, ready, "True Available")
		Expect(w.exists(ctx, b.BucketName())).To(BeTrue())
	})

	It("a managed bucket reports that its store asks for fewer requests", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket)
		w.server.Script(faultserver.Rule{Path: "/" + b.BucketName(), Query: "tagging", Fault: faultserver.Throttle("120")})
		create(ctx, b)
		w.run()
		eventually(ctx, b, synced, "False Throttled")
		eventually(ctx, b, ready, "False Throttled")
	})

	It("a store that asks for fewer requests does not make its buckets unhealthy", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.server.Script(faultserver.Rule{Query: "max-buckets", Fault: faultserver.Throttle("1")})
		b := w.newBucket("photos")
		w.makeBucket(ctx, b.BucketName())
		create(ctx, b)
		w.run()
		eventually(ctx, b, ready, "True Available")
	})

	It("a setting that the store silently drops is not applied again at every comparison", func(ctx SpecContext) {
		w := newWorld(ctx)
		b := w.newBucket("photos", managedBucket, everySecond, func(s *storagev1.StorageBucketSpec) {
			s.CORS = []storagev1.CORSRule{{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"GET"}}}
		})
		w.server.Script(faultserver.Rule{Method: "PUT", Query: "cors", Fault: faultserver.Status(200)})
		create(ctx, b)
		step := newSteppedClock()
		w.run(func(o *Options) { o.Clock = step })
		got := eventually(ctx, b, ready, "False Unsupported")
		Expect(got.Status.Unsupported).To(Equal([]string{"cors"}))
		version, writes, asked := got.ResourceVersion, len(w.writes()), w.requestsFor(b.BucketName())
		Eventually(func() int { return w.requestsFor(b.BucketName()) }).Should(BeNumerically(">=", asked+3))
		Expect(w.writes()).To(HaveLen(writes))
		Expect(current(ctx, b).ResourceVersion).To(Equal(version))
		// A comparison sends the setting again, because the store may support it now.
		step.forward(11 * time.Minute)
		Eventually(w.writes).Should(HaveLen(writes + 1))
		asked = w.requestsFor(b.BucketName())
		Eventually(func() int { return w.requestsFor(b.BucketName()) }).Should(BeNumerically(">=", asked+8))
		Expect(w.writes()).To(HaveLen(writes + 1))
		_, err := w.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String(b.BucketName())})
		Expect(err).NotTo(HaveOccurred())
	})
})
