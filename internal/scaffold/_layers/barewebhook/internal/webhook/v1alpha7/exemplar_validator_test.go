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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

var _ = Describe("Exemplar validator", func() {
	It("accepts each change of an object that is being deleted", func(ctx SpecContext) {
		var v ExemplarValidator
		now := metav1.Now()
		obj := &galleryv1alpha7.Exemplar{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}
		warnings, err := v.ValidateUpdate(ctx, obj, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
	})
})
