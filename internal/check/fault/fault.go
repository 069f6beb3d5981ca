// Package fault describes what can be done to a controller, and where, as data.
// Each kind is one that a real cluster could show to that client; docs/design says
// why.
package fault

// Kind names what is done. The table in kinds.go describes each.
type Kind string

// The kinds, by what they are applied to.
const (
	// At a write, of the cluster or of an endpoint.
	KillBefore   Kind = "kill-before"   // killed; the write does not happen
	KillLost     Kind = "kill-lost"     // the write happens; killed before it has the answer
	KillAfter    Kind = "kill-after"    // the write happens; killed once it has the answer
	LoseResponse Kind = "lose-response" // the write happens; the connection breaks instead of an answer
	Conflict     Kind = "conflict"      // another client writes the object just before

	// At any request.
	Error500   Kind = "error-500"   // an answer of 500 once
	Error503   Kind = "error-503"   // an answer of 503 once, with Retry-After
	TooMany429 Kind = "error-429"   // an answer of 429 once, with Retry-After
	Timeout504 Kind = "error-504"   // an answer of 504 once; the write did not happen
	ErrorBurst Kind = "error-burst" // 500 to three requests of this signature in a row

	// At a write or at the beginning of a step: the watches of a type are late.
	DelayWatch Kind = "delay-watch" // all further events and bookmarks of the type wait, in order
	LoseStates Kind = "lose-states" // as above, then the watch ends with 410 and the client re-lists

	// At rest.
	Restart      Kind = "restart"       // killed and started
	StaleRestart Kind = "stale-restart" // killed and started; lists with resourceVersion=0 show an earlier state
	DownDuring   Kind = "down-during"   // the step is performed while it is down
	DeleteChild  Kind = "delete-child"  // another client deletes an object that it made
	EditChild    Kind = "edit-child"    // another client changes a field that it owns
	AddFinalizer Kind = "add-finalizer" // another client adds a finalizer to an object, and removes it later
	LoseLease    Kind = "lose-lease"    // it cannot renew its Lease, and a second instance takes over
)

// Point is the place of a fault. It identifies a request by its meaning and not
// by its number, so that a run that differs slightly has the same points.
//
//	Verb set                      a request; Matcher recognises it on arrival
//	Verb empty, Resource set      the beginning of Step, for the watches of Resource
//	Verb and Resource empty       the moment when Step has come to rest
//
// DownDuring lasts for all of Step. StaleRestart happens at rest, with Resource
// naming the type whose lists are old. AddFinalizer adds the finalizer at rest after
// Step, and removes it at rest after the next step.
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
	// Occurrence counts, from 1, the requests in the step that match everything
	// above.
	Occurrence int `json:"occurrence,omitempty"`
}

// Fault is one thing done at one point.
type Fault struct {
	Kind  Kind  `json:"kind"`
	Point Point `json:"point"`
	// Until is the step at whose rest LoseStates ends the watches. They are held
	// from the beginning of Point.Step until then, so the states at rest in between
	// prove nothing about the controller, and what those steps wait for and expect
	// is not checked.
	Until string `json:"until,omitempty"`
	// Revision is the state that StaleRestart shows: the one after the change of the
	// type with this number, counted from 0 at the start of the run.
	Revision int `json:"revision,omitempty"`
	// Behind is by how many changes that state was outdated in the reference run. It
	// is for people; Revision decides.
	Behind int `json:"behind,omitempty"`
	// Target is the object of DeleteChild, EditChild and AddFinalizer:
	// "Kind.group/namespace/name", canonical.
	Target string `json:"target,omitempty"`
	// Field is the path that EditChild changes: "spec.replicas", or "data" if the
	// object has no spec. In a map, one value is changed.
	Field string `json:"field,omitempty"`
}
