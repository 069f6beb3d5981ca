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

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// ExemplarReconciler reconciles objects of the kind Exemplar.
type ExemplarReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=gallery.koboshi.example,resources=exemplars,verbs=get;list;watch

// Reconcile runs after each change of an object, after a failure, and after a restart. It
// must therefore compare the complete state, and not rely on the knowledge of what has
// changed.
func (r *ExemplarReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj galleryv1alpha7.Exemplar
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Compare the object with the state of the cluster here, and change what differs. For
	// each permission that this needs, add an rbac marker above, and run make manifests.
	return ctrl.Result{}, nil
}

// SetupWithManager adds the controller to a manager.
func (r *ExemplarReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&galleryv1alpha7.Exemplar{}).
		Named("gallery-exemplar").
		Complete(r)
}
