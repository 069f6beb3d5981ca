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

package v1alpha7

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/client"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
	galleryv1alpha8 "koboshi.example/project/api/v1alpha8"
)

var _ = Describe("Exemplar conversion from v1alpha8", func() {
	// The better the sample, the better this spec: set all fields.
	It("loses no field of the sample on the way to the hub version and back", func() {
		var before, after galleryv1alpha8.Exemplar
		readSample("gallery_v1alpha8_exemplar.yaml", &before)
		before.Namespace = "default"
		var hub galleryv1alpha7.Exemplar
		Expect(before.ConvertTo(&hub)).To(Succeed())
		Expect(after.ConvertFrom(&hub)).To(Succeed())
		Expect(after.ObjectMeta).To(Equal(before.ObjectMeta))
		Expect(after.Spec).To(Equal(before.Spec))
	})

	It("lets clients of both versions use the same object", func(ctx SpecContext) {
		var obj galleryv1alpha8.Exemplar
		readSample("gallery_v1alpha8_exemplar.yaml", &obj)
		obj.Namespace = "default"
		obj.Name, obj.GenerateName = "", "test-"
		Expect(k8sClient.Create(ctx, &obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8sClient.Delete(ctx, &obj)).To(Succeed()) })

		var hub galleryv1alpha7.Exemplar
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(&obj), &hub)).To(Succeed())
		hub.Labels = map[string]string{"changed": "true"}
		Expect(k8sClient.Update(ctx, &hub)).To(Succeed())

		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(&obj), &obj)).To(Succeed())
		Expect(obj.Labels).To(HaveKey("changed"))
	})
})
