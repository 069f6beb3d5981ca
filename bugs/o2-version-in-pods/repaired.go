package o2

import appsv1 "k8s.io/api/apps/v1"

// beside writes the version into the Deployment itself.
//
// RIGHT: a change outside of the template restarts no Pod.
func beside(app *App, d *appsv1.Deployment) {
	old(app, d)
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[version] = current
}
