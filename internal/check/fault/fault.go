// Package fault describes faults as data: what is done to a controller, and where. A controller
// could encounter each kind of fault in a real cluster, too; docs/design gives the reasons.
package fault

// Kind names a kind of fault. The table in kinds.go describes each kind.
type Kind string

// These are the kinds of fault, grouped by the point at which they are applied.
const (
	// These kinds apply at a write to the cluster or to an endpoint.
	KillBefore   Kind = "kill-before"   // the controller is killed; the write does not happen
	KillLost     Kind = "kill-lost"     // the write happens; the controller is killed before it gets the answer
	KillAfter    Kind = "kill-after"    // the write happens; the controller is killed after it gets the answer
	KillAgain    Kind = "kill-again"    // as with kill-lost, and again after a write with which the next instance recovers
	Terminate    Kind = "terminate"     // the write happens; the controller is asked to exit when the write arrives, and is killed after its grace period
	LoseResponse Kind = "lose-response" // the write happens; the connection breaks before the answer
	Conflict     Kind = "conflict"      // another client writes the object just before
	Hang         Kind = "hang"          // the write does not happen; there is no answer until everything else is at rest
	Forbid       Kind = "forbid"        // a quota refuses the creation, and others of the type, until the step is at rest
	Revoke       Kind = "revoke"        // the permission for the write is missing until the step is at rest
	WebhookDown  Kind = "webhook-down"  // the controller's webhooks cannot be reached from this write on, until the step is at rest

	// These kinds apply at any request.
	Error500   Kind = "error-500"   // it is answered with 500 once
	Error503   Kind = "error-503"   // it is answered with 503 and Retry-After once
	TooMany429 Kind = "error-429"   // it is answered with 429 and Retry-After once
	Timeout504 Kind = "error-504"   // it is answered with 504 once; a write does not happen
	ErrorBurst Kind = "error-burst" // three matching requests in a row are answered with 500

	// These kinds delay the watches of a type, from a write or from the beginning of a
	// step.
	DelayWatch Kind = "delay-watch" // all further events and bookmarks of the type wait, in order
	LoseStates Kind = "lose-states" // as with delay-watch, but then the watch ends with 410 and the client lists again

	// These kinds apply when the cluster is at rest.
	Restart      Kind = "restart"       // the controller is killed and started again
	StaleRestart Kind = "stale-restart" // as with restart, but lists with resourceVersion=0 show an earlier state
	OfflineStart Kind = "offline-start" // as with restart, but the API server cannot be reached when the controller starts
	FailingStart Kind = "failing-start" // as with restart, but the store of the API server fails when the controller starts
	Outage       Kind = "outage"        // the controller cannot reach the API server for the first seconds of the step
	DownDuring   Kind = "down-during"   // the step is performed while the controller is down
	DeleteChild  Kind = "delete-child"  // another client deletes an object that the controller made
	EditChild    Kind = "edit-child"    // another client changes a field that the controller owns
	AddFinalizer Kind = "add-finalizer" // another client adds a finalizer to an object, and removes it later
	LoseLease    Kind = "lose-lease"    // the leader cannot renew its Lease, and a second instance takes over
)

// OtherClient is the field manager of the simulated other client. The fault Conflict adds an entry
// for this manager to metadata.managedFields of an object, and removes the entry at rest.
const OtherClient = "somebody"

// Point is the place of a fault. It identifies a request by its meaning rather than by
// its number, so that runs that differ slightly have the same points.
//
//	Verb set                      a request; Matcher recognizes it when it arrives
//	Verb empty, Resource set      the beginning of Step, for the watches of Resource
//	Verb and Resource empty       the moment when Step has come to rest
//
// DownDuring lasts for the complete Step, and Outage begins together with Step. StaleRestart
// happens when Step has come to rest, and Resource names the type whose lists are old.
// AddFinalizer adds the finalizer when Step has come to rest, and removes it when the next
// step has come to rest.
type Point struct {
	// Step is the name of a step of the scenario.
	Step string `json:"step"`
	// Verb has the same values as trace.Call.Verb.
	Verb string `json:"verb,omitempty"`
	// Resource is "deployments.apps" or "deployments.apps/status", or
	// "endpoint:NAME".
	Resource string `json:"resource,omitempty"`
	// Object is the canonical NAMESPACE/NAME, or the path at an endpoint.
	Object string `json:"object,omitempty"`
	// Change is a hash of the masked body of a write. If it is empty, any body matches.
	Change string `json:"change,omitempty"`
	// Occurrence is the number of the request, counted from 1, among the requests in the
	// step that match the fields above.
	Occurrence int `json:"occurrence,omitempty"`
}

// Fault is one fault at one point.
type Fault struct {
	Kind  Kind  `json:"kind"`
	Point Point `json:"point"`
	// Until names the step after which LoseStates ends the watches. The watches are held
	// back from the beginning of Point.Step until the step Until is at rest. Steps that end
	// while the watches are held back prove nothing about the controller, so the conditions
	// and expectations of such steps are not checked.
	Until string `json:"until,omitempty"`
	// Revision selects the state that StaleRestart shows, by the number of changes to
	// objects of the type since the start of the run.
	Revision int `json:"revision,omitempty"`
	// Behind counts the changes in the reference run that the state selected by Revision
	// did not contain yet. It is only for human readers; the fault depends on Revision
	// alone.
	Behind int `json:"behind,omitempty"`
	// Again is the write of the next instance after which KillAgain kills the controller once more.
	// Its Occurrence is counted from the first kill. It has no Change, because what is compared is
	// known only for writes that runs without a fault make.
	Again Point `json:"again,omitzero"`
	// Target is the canonical name of the object of DeleteChild, EditChild or
	// AddFinalizer: "Kind.group/namespace/name".
	Target string `json:"target,omitempty"`
	// Field is the path of the field that EditChild changes, such as "spec.replicas", or
	// "data" if the object has no spec. If the field is a map, one of its values is
	// changed. The field may also be Labels, or Owners, which are removed.
	Field string `json:"field,omitempty"`
}

// These are the fields of the metadata that EditChild changes.
const (
	Labels = "metadata.labels"
	Owners = "metadata.ownerReferences"
)

// EditsMetadata reports whether the fault changes the metadata by which the controller, or Kubernetes,
// recognizes an object.
func (f Fault) EditsMetadata() bool {
	return f.Kind == EditChild && (f.Field == Labels || f.Field == Owners)
}

// SecondKill is a kill during the recovery from an earlier kill. It is known only once a run with the
// earlier kill has shown the recovery.
type SecondKill struct {
	Fault Fault `json:"fault"`
	// State identifies the state in which the second kill leaves the objects that the controller
	// writes. Kills that lead to the same state show the same.
	State string `json:"state"`
}

// Same reports whether a and b are equal, apart from fields for human readers.
func Same(a, b Fault) bool {
	a.Behind, b.Behind = 0, 0
	return a == b
}
