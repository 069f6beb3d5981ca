package o2

import appsv1 "k8s.io/api/apps/v1"

// version names the annotation with the version of the controller, and current is its value.
const version, current = "bugs.koboshi.dev/version", "2.0.0"

// inside writes the version into the template of the Pods.
//
// WRONG: the template of every Deployment changes with every version, so each upgrade of the controller
// restarts all Pods of all users. In vertica/vertica-kubernetes#234, a label with the version had this
// effect, and in humio/humio-operator#246, the image of a helper.
func inside(app *App, d *appsv1.Deployment) {
	old(app, d)
	d.Spec.Template.Annotations = map[string]string{version: current}
}
