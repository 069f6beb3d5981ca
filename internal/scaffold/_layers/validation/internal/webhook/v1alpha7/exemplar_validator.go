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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// To validate deletions too, add delete to the verbs.
//
// +kubebuilder:webhook:path=/validate-gallery-koboshi-example-v1alpha7-exemplar,mutating=false,failurePolicy=fail,sideEffects=None,groups=gallery.koboshi.example,resources=exemplars,verbs=create;update,versions=v1alpha7,name=vexemplar-v1alpha7.kb.io,admissionReviewVersions=v1

// ExemplarValidator refuses invalid objects.
//
// +kubebuilder:object:generate=false
type ExemplarValidator struct{}

// ValidateCreate validates a new object.
func (v *ExemplarValidator) ValidateCreate(_ context.Context, obj *galleryv1alpha7.Exemplar) (admission.Warnings, error) {
	return nil, v.invalid(obj, v.problems(obj))
}

// ValidateUpdate validates a changed object. It accepts every change of an object that is
// being deleted, so that finalizers can always be removed.
func (v *ExemplarValidator) ValidateUpdate(_ context.Context, _, obj *galleryv1alpha7.Exemplar) (admission.Warnings, error) {
	if !obj.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return nil, v.invalid(obj, v.problems(obj))
}

// ValidateDelete accepts every deletion.
func (v *ExemplarValidator) ValidateDelete(context.Context, *galleryv1alpha7.Exemplar) (admission.Warnings, error) {
	return nil, nil
}

// problems returns everything that is wrong with an object, so that the user can repair all
// of it at once.
func (v *ExemplarValidator) problems(_ *galleryv1alpha7.Exemplar) field.ErrorList {
	var problems field.ErrorList
	// Add checks here that the schema cannot express, for example:
	//
	//	if !strings.HasPrefix(obj.Spec.Image, v.registry) {
	//		problems = append(problems, field.Invalid(field.NewPath("spec", "image"), obj.Spec.Image,
	//			"must be an image from "+v.registry))
	//	}
	//
	// A rule that needs only the object itself needs no webhook: put the marker
	// kubebuilder:validation:XValidation into the API type.
	return problems
}

// invalid returns the error that a user sees, or nil if there are no problems.
func (v *ExemplarValidator) invalid(obj *galleryv1alpha7.Exemplar, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: "gallery.koboshi.example", Kind: "Exemplar"}
	return apierrors.NewInvalid(kind, obj.Name, problems)
}
