// Package rest decides whether a controller and its world are at rest, which means that all work
// caused by the last action is done. The decision is a pure function of one Observation, so that
// every rule can be tested without a plane.
//
//	observation, settings ──Decide──▶ at rest, or how long to wait and why
package rest

import (
	"time"
)

// Observation describes the controller and its world at one moment.
type Observation struct {
	// Succession is the time for which the Lease of a holder that is gone may still last, or the time
	// until the controller tries again to take a free one. Succession is zero if the controller waits
	// for no Lease.
	Succession time.Duration
	// Ending is the time that an instance which was asked to exit may still take. Ending is zero if
	// there is no such instance.
	Ending time.Duration
	// Away is the time for which the API server cannot be used yet, and Back the time since it can be
	// used again. Both are zero if it could always be used.
	Away, Back time.Duration
	// Unheard counts the instances of the controller that have made no request yet.
	// Starting reports whether an instance is being started.
	// Discovering reports whether an instance has sent requests, but only for the APIs of the cluster.
	Unheard     int
	Starting    bool
	Discovering bool
	// InFlight counts the requests that have not been answered yet. Streams is the number
	// of open watches.
	InFlight, Streams int
	// Unfinished counts the objects for which IsUnfinished returns true. Pending and Behind do the
	// same for IsPending and IsBehind.
	Unfinished, Pending, Behind int
	// Still is the time since the last change of the world. The start of the controller and
	// the end of the last action count as changes.
	Still time.Duration
	// Up is the time since the controller started. Up is counted again from the first request,
	// because loading an interpreter does not count, and again when the controller becomes the
	// leader.
	Up time.Duration
	// Asked is the time since the last request.
	Asked time.Duration
	// Polls reports whether the controller opens no watches. Round reports whether such a
	// controller has sent the same requests again since the last change.
	Polls, Round bool
	// Wrote reports whether the controller has written anything in this step. WroteSinceUp
	// reports the same for the time since the controller was started.
	Wrote, WroteSinceUp bool
	// Down reports whether the controller is stopped on purpose.
	Down bool
	// Knocked reports whether a fault has been applied.
	Knocked bool
}

// Settings hold what earlier runs have shown about the controller.
type Settings struct {
	// Window is the time without a change after which the world is considered to be at rest.
	Window time.Duration
	// Streams is the number of watches that the controller has open at rest.
	Streams int
	// Timeout is the time that a step may take.
	Timeout time.Duration
	// Tail is the time for which a controller must have been up after a kill.
	Tail time.Duration
	// Learning reports whether no earlier run shows how long the controller pauses.
	Learning bool
}

// Verdict is a decision. The world is at rest if Left is zero.
type Verdict struct {
	// Left is the time after which the decision can change without any event.
	Left time.Duration
	// Why holds the reason to wait; it is empty if the world is at rest.
	Why Reason
	// Excused is the part of Left for which the controller is not responsible.
	Excused time.Duration
}

// AtRest reports whether the world is at rest.
func (v Verdict) AtRest() bool { return v.Left <= 0 }

// Decide decides whether the world is at rest. The reason to wait is the first condition among
// excuses and blockers that holds. If none of them holds, the reason is the condition among waits
// that lasts longest.
func Decide(o Observation, s Settings) Verdict {
	for _, c := range excuses {
		if left := c.left(&o, &s); left > 0 {
			return Verdict{Left: left, Why: c.why, Excused: left}
		}
	}
	for _, c := range blockers {
		if c.holds(&o, &s) {
			return Verdict{Left: s.Window, Why: c.why}
		}
	}
	var v Verdict
	for _, c := range waits {
		if left := c.left(&o, &s); left > v.Left {
			v.Left, v.Why = left, c.why
		}
	}
	return v
}
