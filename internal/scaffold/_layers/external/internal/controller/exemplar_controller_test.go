/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"context"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
	"koboshi.example/project/internal/controller/exemplarserver"
)

var _ = Describe("Exemplar controller", Ordered, ContinueOnFailure, func() {
	var server *exemplarserver.Server

	BeforeAll(func() {
		server = exemplarserver.New()
		listening := httptest.NewServer(server)
		DeferCleanup(listening.Close)
		runManager(func(mgr ctrl.Manager) error {
			return (&ExemplarReconciler{
				Client: mgr.GetClient(), Scheme: mgr.GetScheme(),
				Store: &ExemplarStore{URL: listening.URL}, CheckInterval: 200 * time.Millisecond,
			}).SetupWithManager(mgr)
		})
	})

	// get reads an object, and its text in the store.
	get := func(ctx context.Context, obj *galleryv1alpha7.Exemplar) func() (string, error) {
		return func() (string, error) {
			err := k8sClient.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			return server.Text(string(obj.UID)), err
		}
	}

	// ready returns a function that reads the reason of the condition Ready, or "" if the
	// status is out of date.
	ready := func(ctx context.Context, obj *galleryv1alpha7.Exemplar) func() (string, error) {
		return func() (string, error) {
			err := k8sClient.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			condition := meta.FindStatusCondition(obj.Status.Conditions, "Ready")
			if condition == nil || obj.Status.ObservedGeneration != obj.Generation {
				return "", err
			}
			return condition.Reason, err
		}
	}

	// gone returns a function that reports whether the object no longer exists.
	gone := func(ctx context.Context, obj *galleryv1alpha7.Exemplar) func() bool {
		return func() bool {
			return apierrors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(obj), obj))
		}
	}

	// create creates an object, waits until its text is in the store, and deletes the object
	// after the spec.
	create := func(ctx context.Context, name, text string) *galleryv1alpha7.Exemplar {
		GinkgoHelper()
		obj := &galleryv1alpha7.Exemplar{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, GenerateName: "test-"},
			Spec:       galleryv1alpha7.ExemplarSpec{Text: text},
		}
		Expect(k8sClient.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			server.SetDown(false)
			Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, obj))).To(Succeed())
			Eventually(gone(ctx, obj)).Should(BeTrue())
		})
		Eventually(ready(ctx, obj)).Should(Equal("Stored"))
		return obj
	}

	It("stores the text, and records that it exists", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		Expect(get(ctx, obj)()).To(Equal("first"))
		Expect(obj.Status.External).To(Equal(&galleryv1alpha7.ExemplarExternal{Name: string(obj.UID), State: exemplarCreated}))
	})

	It("stores a changed text", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		before := obj.DeepCopy()
		obj.Spec.Text = "second"
		Expect(k8sClient.Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
		Eventually(get(ctx, obj)).Should(Equal("second"))
		Eventually(ready(ctx, obj)).Should(Equal("Stored"))
	})

	It("repairs a text that another client has changed in the store", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		server.SetText(string(obj.UID), "unwanted")
		Eventually(get(ctx, obj)).Should(Equal("wanted"))
	})

	It("stores a text again that another client has deleted in the store", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		server.SetText(string(obj.UID), "")
		Eventually(get(ctx, obj)).Should(Equal("wanted"))
	})

	It("deletes the text before the object disappears", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Expect(k8sClient.Delete(ctx, obj)).To(Succeed())
		Eventually(gone(ctx, obj)).Should(BeTrue())
		Expect(server.Text(string(obj.UID))).To(BeEmpty())
		Consistently(func() string { return server.Text(string(obj.UID)) }).Should(BeEmpty())
	})

	It("keeps an object while the store cannot delete its text", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		server.SetDown(true)
		Expect(k8sClient.Delete(ctx, obj)).To(Succeed())
		Eventually(ready(ctx, obj)).Should(Equal("StoreFailed"))
		Expect(server.Text(string(obj.UID))).To(Equal("wanted"))
		server.SetDown(false)
		Eventually(gone(ctx, obj)).Should(BeTrue())
		Expect(server.Text(string(obj.UID))).To(BeEmpty())
	})

	It("makes an object due once in each interval, at the same time after a restart", func() {
		now := time.Now()
		wait := untilDue(types.UID("a"), time.Minute, now)
		Expect(wait).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
		Expect(untilDue(types.UID("a"), time.Minute, now.Add(wait))).To(Equal(time.Minute))
		Expect(untilDue(types.UID("a"), time.Minute, now.Add(wait/2))).To(Equal(wait - wait/2))
	})
})
