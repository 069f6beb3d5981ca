package trace

import "time"

// Reconcile is the start or the end of a reconcile, as reported by a manager that was built with an
// instrumented controller-runtime.
type Reconcile struct {
	// ID is the reconcileID that controller-runtime also adds to the log.
	ID string `json:"id"`
	// What holds "started" or "ended".
	What string `json:"what"`
	// Controller is the name of the controller, and Namespace and Name are those of the item that
	// it took from its queue. They are set at the start.
	Controller string `json:"controller,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Triggers are the reasons why the item was in the queue, in the order in which they were added.
	// Dropped counts the oldest ones, which are left out.
	Triggers []Trigger `json:"triggers,omitempty"`
	Dropped  int       `json:"dropped,omitempty"`
	// Waited is the time for which the queue could have handed out the item, in nanoseconds, or 0 if
	// it is not known. Waiting is the number of other items in the queue at the start. Failures
	// counts the errors in a row before this attempt. Priority is set if the queue has priorities.
	Waited   time.Duration `json:"waited,omitempty"`
	Waiting  int           `json:"waiting,omitempty"`
	Failures int           `json:"failures,omitempty"`
	Priority *int          `json:"priority,omitempty"`
	// RequeueAfter, Requeue and Error are what the reconciler returned. They are set at the end.
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
	Requeue      bool          `json:"requeue,omitempty"`
	Error        string        `json:"error,omitempty"`
}

// Trigger is a reason why an item was added to a queue.
type Trigger struct {
	// Event holds "created", "updated", "deleted" or "generic" for an event that a handler
	// received, "requeued" if the previous reconcile asked for another one, or "retried" after an
	// error.
	Event string `json:"event"`
	// Handler is the Go type of the handler.
	Handler string `json:"handler,omitempty"`
	// Kind, Namespace, Name, UID and ResourceVersion identify the object of the event. Kind
	// is the object's Go type, which nearly always has the name of the kind.
	Kind            string `json:"kind,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// At is the time since the start of the trace at which the item was added, and After the delay
	// with which it was added; both are in nanoseconds. The delay is negative if only the rate
	// limiter of the queue knows it.
	At    time.Duration `json:"at"`
	After time.Duration `json:"after,omitempty"`
	// Reconcile is the ID of the reconcile that requeued the item, or that failed.
	Reconcile string `json:"reconcile,omitempty"`
}
