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
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

var _ = Describe("Exemplar controller", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		runManager(func(mgr ctrl.Manager) error {
			return (&ExemplarReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
		})
	})

	// create creates an object, and deletes it after the spec. An empty name is replaced by a
	// unique one.
	create := func(ctx context.Context, name, text string) *galleryv1alpha7.Exemplar {
		GinkgoHelper()
		obj := &galleryv1alpha7.Exemplar{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, GenerateName: "test-"},
			Spec:       galleryv1alpha7.ExemplarSpec{Text: text},
		}
		Expect(k8sClient.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, obj))).To(Succeed())
		})
		return obj
	}

	// configMap reads the ConfigMap of an object.
	configMap := func(ctx context.Context, obj *galleryv1alpha7.Exemplar) (*corev1.ConfigMap, error) {
		var found corev1.ConfigMap
		err := k8sClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: "exemplar-" + obj.Name}, &found)
		return &found, err
	}

	// text returns a function that reads the text in the ConfigMap of an object.
	text := func(ctx context.Context, obj *galleryv1alpha7.Exemplar) func() (string, error) {
		return func() (string, error) {
			found, err := configMap(ctx, obj)
			return found.Data["text"], err
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

	It("stores the text in a ConfigMap that it owns", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		Eventually(ready(ctx, obj)).Should(Equal("Applied"))
		found, err := configMap(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Data).To(HaveKeyWithValue("text", "first"))
		Expect(metav1.IsControlledBy(found, obj)).To(BeTrue())
	})

	It("stores a changed text", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		Eventually(ready(ctx, obj)).Should(Equal("Applied"))
		before := obj.DeepCopy()
		obj.Spec.Text = "second"
		Expect(k8sClient.Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
		Eventually(text(ctx, obj)).Should(Equal("second"))
		Eventually(ready(ctx, obj)).Should(Equal("Applied"))
	})

	It("repairs a ConfigMap that another client has changed", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Eventually(text(ctx, obj)).Should(Equal("wanted"))
		found, err := configMap(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		found.Data["text"] = "unwanted"
		Expect(k8sClient.Update(ctx, found)).To(Succeed())
		Eventually(text(ctx, obj)).Should(Equal("wanted"))
	})

	It("creates a ConfigMap again that another client has deleted", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Eventually(text(ctx, obj)).Should(Equal("wanted"))
		found, err := configMap(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(k8sClient.Delete(ctx, found)).To(Succeed())
		Eventually(text(ctx, obj)).Should(Equal("wanted"))
	})

	It("creates no ConfigMap for an object that has been deleted", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Eventually(text(ctx, obj)).Should(Equal("wanted"))
		found, err := configMap(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(k8sClient.Delete(ctx, obj)).To(Succeed())
		// envtest has no garbage collector, which would delete the ConfigMap.
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, found))).To(Succeed())
		Consistently(func() bool {
			_, err := configMap(ctx, obj)
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
	})

	It("does not change a ConfigMap that belongs to another owner", func(ctx SpecContext) {
		foreign := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "exemplar-test-"},
			Data:       map[string]string{"text": "foreign"},
		}
		Expect(k8sClient.Create(ctx, foreign)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8sClient.Delete(ctx, foreign)).To(Succeed()) })

		obj := create(ctx, strings.TrimPrefix(foreign.Name, "exemplar-"), "wanted")
		Eventually(ready(ctx, obj)).Should(Equal("ApplyFailed"))
		Expect(meta.IsStatusConditionTrue(obj.Status.Conditions, "Reconciling")).To(BeTrue())
		Expect(text(ctx, obj)()).To(Equal("foreign"))
	})
})
