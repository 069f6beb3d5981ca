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
)

var _ = Describe("Exemplar validator", func() {
	It("accepts the sample, a change of its labels, and its deletion", func(ctx SpecContext) {
		var obj galleryv1alpha7.Exemplar
		readSample("gallery_v1alpha7_exemplar.yaml", &obj)
		obj.Namespace = "default"
		obj.Name, obj.GenerateName = "", "test-"
		Expect(k8sClient.Create(ctx, &obj)).To(Succeed())

		before := obj.DeepCopy()
		obj.Labels = map[string]string{"changed": "true"}
		Expect(k8sClient.Patch(ctx, &obj, client.MergeFrom(before))).To(Succeed())
		Expect(k8sClient.Delete(ctx, &obj)).To(Succeed())
	})

	// Add a spec here for each check in problems:
	//
	//	Expect(k8sClient.Create(ctx, &obj)).To(MatchError(ContainSubstring("spec.image")))
})
