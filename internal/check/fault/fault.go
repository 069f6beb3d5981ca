// Package fault is what can be done to a controller, as data: where, and what.
// Each kind is one that a real cluster could show to that client; docs/design
// says for each why.
package fault

// Kind is what is done.
type Kind string

// The kinds, by what they are applied to.
const (
	// At a write, of the cluster or of an endpoint.
	KillBefore   Kind = "kill-before"   // killed; the write does not happen
	KillLost     Kind = "kill-lost"     // the write happens; killed before it has the answer
	KillAfter    Kind = "kill-after"    // the write happens; killed once it has the answer
	LoseResponse Kind = "lose-response" // the write happens; the connection breaks instead of an answer
	Conflict     Kind = "conflict"      // somebody else writes the object just before

	// At any request.
	Error500   Kind = "error-500"   // an answer of 500 once
	Error503   Kind = "error-503"   // an answer of 503 once, with Retry-After
	TooMany429 Kind = "error-429"   // an answer of 429 once, with Retry-After
	Timeout504 Kind = "error-504"   // an answer of 504 once; the write did not happen
	ErrorBurst Kind = "error-burst" // 500 to three requests of this signature in a row

	// At a write: what the watches of its type show is late.
	DelayWatch Kind = "delay-watch" // all events and bookmarks of the type wait from here on, in order
	LoseStates Kind = "lose-states" // as above, then the watch ends with 410 and the client re-lists

	// At a moment of rest.
	Restart      Kind = "restart"       // killed and started
	StaleRestart Kind = "stale-restart" // killed and started; lists with resourceVersion=0 are of an earlier moment
	DownDuring   Kind = "down-during"   // the step is done while it is down
	DeleteChild  Kind = "delete-child"  // somebody deletes an object that it made
	EditChild    Kind = "edit-child"    // somebody changes a field that it owns
	AddFinalizer Kind = "add-finalizer" // somebody adds a finalizer to an object, and takes it off later
	LoseLease    Kind = "lose-lease"    // it cannot renew its Lease, and a second instance takes over
)

// Point is where: a request by what it means and not by its number, so that it is
// found again in a run that is not quite the same.
//
//	Verb set                      a request; Matcher knows it when it comes
//	Verb empty, Resource set      the beginning of Step, about the watches of Resource
//	Verb and Resource empty       the moment when Step has come to rest
//
// DownDuring is about all of Step. StaleRestart names at rest the Resource whose
// lists are old. AddFinalizer is put on at the rest after Step, and taken off at the
// rest after the next one.
type Point struct {
	// Step is the name of the scenario's step in which it happens.
	Step string `json:"step"`
	// Verb is as in trace.Call.
	Verb string `json:"verb,omitempty"`
	// Resource is "deployments.apps" or "deployments.apps/status", or
	// "endpoint:NAME".
	Resource string `json:"resource,omitempty"`
	// Object is the canonical NAMESPACE/NAME, or the path at an endpoint.
	Object string `json:"object,omitempty"`
	// Change is a hash of the masked body of a write; empty matches any.
	Change string `json:"change,omitempty"`
	// Occurrence counts from 1 the requests in the step to which all of the above
	// applies.
	Occurrence int `json:"occurrence,omitempty"`
}

// Fault is one thing done at one point.
type Fault struct {
	Kind  Kind  `json:"kind"`
	Point Point `json:"point"`
	// Until is the step at whose rest LoseStates ends the watches; they are held
	// from the beginning of Point.Step until then. The states at the rests between
	// are those of a controller that was told nothing, and say nothing of it; what
	// those steps wait for and expect is not to be asked either.
	Until string `json:"until,omitempty"`
	// Revision is the state that StaleRestart shows: that after the change of the
	// type with this number, counted from 0 at the start of the run.
	Revision int `json:"revision,omitempty"`
	// Behind is by how many changes that was too old in the reference run. It is
	// for people; Revision decides.
	Behind int `json:"behind,omitempty"`
	// Target is the object that DeleteChild, EditChild and AddFinalizer are
	// about: "Kind.group/namespace/name", canonical.
	Target string `json:"target,omitempty"`
	// Field is the path that EditChild changes: "spec.replicas", or "data" of what
	// has no spec. Of a map one value is changed.
	Field string `json:"field,omitempty"`
}
