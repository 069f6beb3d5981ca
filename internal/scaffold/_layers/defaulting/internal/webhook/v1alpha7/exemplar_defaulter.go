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
	"context"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// +kubebuilder:webhook:path=/mutate-gallery-koboshi-example-v1alpha7-exemplar,mutating=true,failurePolicy=fail,sideEffects=None,groups=gallery.koboshi.example,resources=exemplars,verbs=create;update,versions=v1alpha7,name=mexemplar-v1alpha7.kb.io,admissionReviewVersions=v1

// ExemplarDefaulter sets fields that the user has not set.
//
// +kubebuilder:object:generate=false
type ExemplarDefaulter struct{}

// Default changes an object before it is validated and stored. The API server may call it
// several times for the same object, so it must change nothing the second time.
func (d *ExemplarDefaulter) Default(_ context.Context, obj *galleryv1alpha7.Exemplar) error {
	if !obj.DeletionTimestamp.IsZero() {
		return nil // only its finalizers matter now
	}
	// Set defaults here that depend on other fields, for example:
	//
	//	if obj.Spec.Title == "" {
	//		obj.Spec.Title = obj.Name
	//	}
	//
	// If a default is a constant, use the marker +kubebuilder:default in the API type. It
	// needs no webhook.
	return nil
}
