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

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

var _ = Describe("Exemplar defaulter", func() {
	It("changes nothing the second time", func(ctx SpecContext) {
		var d ExemplarDefaulter
		var first galleryv1alpha7.Exemplar
		Expect(d.Default(ctx, &first)).To(Succeed())
		second := first.DeepCopy()
		Expect(d.Default(ctx, second)).To(Succeed())
		Expect(second).To(Equal(&first))
	})
})
