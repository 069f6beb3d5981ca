package o1

import appsv1 "k8s.io/api/apps/v1"

// relabelled renders a Deployment with the labels that Kubernetes recommends.
//
// WRONG: the selector of an existing Deployment is immutable, so the API server refuses each update. In
// opendatahub-io/opendatahub-operator#746, an upgrade was stuck in this way, and only a deletion of the
// Deployments by hand helped.
func relabelled(app *App, d *appsv1.Deployment) { pods(d, recommended(app)) }

// recommended returns the labels of the new version.
func recommended(app *App) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "app", "app.kubernetes.io/instance": app.Name}
}
