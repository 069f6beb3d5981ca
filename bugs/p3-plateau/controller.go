// Package p3 has a correct controller that pauses for three seconds before it does its work,
// like the twin of P1, and that can elect a leader.
//
// A checker that takes the pause for the end expects the state of the pause. If the leader
// changes, the check lasts longer than the pause, and the controller reaches the real final
// state, for which such a checker blames it.
package p3

import (
	ctrl "sigs.k8s.io/controller-runtime"

	p1 "github.com/koboshi-dev/koboshi/bugs/p1-after-a-pause"
)

// Setup adds the controller to a manager. The controller has no bug, so there is nothing to
// repair.
func Setup(mgr ctrl.Manager, _ bool) error { return p1.Setup(mgr, true) }
