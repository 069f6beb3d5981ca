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
	ctrl "sigs.k8s.io/controller-runtime"

	galleryv1alpha7 "koboshi.example/project/api/v1alpha7"
)

// SetupExemplarWebhookWithManager adds the webhooks of the kind Exemplar to the webhook
// server of a manager.
func SetupExemplarWebhookWithManager(mgr ctrl.Manager) error {
	webhook := ctrl.NewWebhookManagedBy(mgr, &galleryv1alpha7.Exemplar{})
	webhook.WithDefaulter(&ExemplarDefaulter{})
	return webhook.Complete()
}
