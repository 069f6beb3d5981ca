// Package p3 has a correct controller that pauses for three seconds before it does its work,
// like the twin of P1, and that can elect a leader.
//
// A checker that mistakes the pause for the end of the work expects the state that the controller
// has during the pause. If the leader changes, the check lasts longer than the pause, so the
// controller reaches the real final state, and such a checker wrongly reports this state as a bug.
package p3

import (
	ctrl "sigs.k8s.io/controller-runtime"

	p1 "github.com/koboshi-dev/koboshi/bugs/p1-after-a-pause"
)

// Setup adds the controller to a manager. The controller has no bug, so there is nothing to
// repair.
func Setup(mgr ctrl.Manager, _ bool) error { return p1.Setup(mgr, true) }
