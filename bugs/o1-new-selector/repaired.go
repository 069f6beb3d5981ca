package o1

import appsv1 "k8s.io/api/apps/v1"

// keeping renders a Deployment with the labels that Kubernetes recommends, unless it exists.
//
// RIGHT: the selector of an existing Deployment, and the labels of its Pods, stay as they are, as in
// ogx-ai/ogx-k8s-operator#131.
func keeping(app *App, d *appsv1.Deployment) {
	if d.Spec.Selector == nil {
		pods(d, recommended(app))
	}
}
