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
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

var _ = Describe("Exemplar controller", func() {
	// reconcile reconciles an object, in a cluster that contains only the given objects.
	reconcile := func(ctx SpecContext, obj client.Object, cluster ...client.Object) (ctrl.Result, error) {
		r := &ExemplarReconciler{
			Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cluster...).Build(),
			Scheme: scheme.Scheme,
		}
		return r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}

	obj := &galleryv1alpha7.Exemplar{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test"}}

	It("has nothing to do for an object that has been deleted", func(ctx SpecContext) {
		Expect(reconcile(ctx, obj)).To(Equal(ctrl.Result{}))
	})

	It("accepts an object that exists", func(ctx SpecContext) {
		Expect(reconcile(ctx, obj, obj)).To(Equal(ctrl.Result{}))
	})
})
