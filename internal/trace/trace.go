// Package trace records everything that a controller saw, wrote and printed, in the order in which
// the recorder learned of it. Each entry is one line of JSON.
//
//	apiproxy ──Record──▶ Log ──WriteTo──▶ file ──Read──▶ judge, report, inspector
//
// Bodies are kept as they were on the wire, because decoding costs more than forwarding. A
// body is decoded and redacted when it leaves the process; see Redact.
package trace

import (
	"encoding/json"
	"time"
)

// Version is the version of the format. A reader refuses traces with a later version.
//
// Version 2 adds reviews, lines, commits and grants, and version 3 adds reconciles. A trace is
// written as the oldest version that has its entries, so that an older koboshi can read it.
const Version = 3

// Header is the first line of a trace.
type Header struct {
	Version int       `json:"version"`
	Started time.Time `json:"started"`
	// Subject is the command that was run, as a person would type it.
	Subject string `json:"subject,omitempty"`
}

// Entry is one line of a trace. Exactly one of the pointers is set.
type Entry struct {
	// Seq counts from 1 without gaps. If old entries were dropped, Seq begins with a higher number.
	Seq int64 `json:"seq"`
	// At is the time since the start of the trace, in nanoseconds.
	At time.Duration `json:"at"`
	// Instance is the process that acted: "controller-1" is the first instance,
	// "controller-2" is the instance after the first restart, or a second instance that
	// runs at the same time. Instance is empty for the checker itself.
	Instance string `json:"instance,omitempty"`

	Call    *Call    `json:"call,omitempty"`
	Watch   *Watch   `json:"watch,omitempty"`
	Process *Process `json:"process,omitempty"`
	Step    *Step    `json:"step,omitempty"`
	Fault   *Fault   `json:"fault,omitempty"`
	Review  *Review  `json:"review,omitempty"`
	Line    *Line    `json:"line,omitempty"`
	Commit  *Commit  `json:"commit,omitempty"`
	Grants  *Grants  `json:"grants,omitempty"`
	// Reconcile is recorded only if the manager was built for it; see koboshi dev --instrument.
	Reconcile *Reconcile `json:"reconcile,omitempty"`
}

// Target identifies the object or collection of a request. Resource is the plural, as in
// a URL.
type Target struct {
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Call is a request with its response. A Call is recorded when the response is complete or has
// failed; a watch is recorded when it is established.
type Call struct {
	// ID numbers the requests, from 1.
	ID int64 `json:"id"`
	// Verb is the RBAC verb: get, list, watch, create, update, patch, delete or
	// deletecollection. If there is no resource, Verb is the HTTP method in lower case.
	Verb string `json:"verb"`
	// Endpoint is the name of an endpoint outside the cluster. If Endpoint is set, Target
	// is empty and Verb is the method.
	Endpoint string `json:"endpoint,omitempty"`
	Target   Target `json:"target,omitzero"`
	Path     string `json:"path"` // with the query
	// ContentType is the type of the request's body. ContentType distinguishes the kinds of
	// patches.
	ContentType string `json:"contentType,omitempty"`
	UserAgent   string `json:"userAgent,omitempty"`
	// Reconcile is the ID of the reconcile that made the request, if an instrumented manager has
	// named it.
	Reconcile string `json:"reconcile,omitempty"`
	// Request is the request's body, decoded and redacted. In the process that records the
	// trace, RawRequest holds the body instead; RequestObject reads whichever is set.
	Request    json.RawMessage `json:"request,omitempty"`
	RawRequest Body            `json:"-"`
	// RequestSize and ResponseSize are the lengths of the bodies on the wire, in bytes.
	// RequestSize and ResponseSize are set even if the bodies were not kept.
	RequestSize  int64 `json:"requestSize,omitempty"`
	ResponseSize int64 `json:"responseSize,omitempty"`
	// Code is the HTTP status, or 0 if there was no response.
	Code int `json:"code"`
	// Reason is the metav1.StatusReason of an error.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Response is the response's body, decoded and redacted. In the process that records
	// the trace, RawResponse holds the body instead; ResponseObject reads whichever is set.
	Response    json.RawMessage `json:"response,omitempty"`
	RawResponse Body            `json:"-"`
	// ResourceVersion is taken from the object or list in the response.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Took is the time from the arrival of the request to the end of the response, in
	// nanoseconds.
	Took time.Duration `json:"took"`
	// Injected reports whether a fault, and not the server, made the response. Lost
	// reports whether the server's response failed to reach the client.
	Injected bool `json:"injected,omitempty"`
	Lost     bool `json:"lost,omitempty"`
}

// Watch is an event that was forwarded to a watch, or the end of the watch.
type Watch struct {
	// Call is the ID of the watch's Call.
	Call   int64  `json:"call"`
	Target Target `json:"target"`
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, or CLOSED for the end of the
	// watch.
	Type            string `json:"type"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Object is the event's object, decoded and redacted. In the process that records the
	// trace, RawObject holds the object instead; EventObject reads whichever is set.
	Object    json.RawMessage `json:"object,omitempty"`
	RawObject Body            `json:"-"`
	// Held is the time for which a fault delayed the event, in nanoseconds.
	Held     time.Duration `json:"held,omitempty"`
	Injected bool          `json:"injected,omitempty"`
}

// Process is the start or the end of an instance.
type Process struct {
	// What holds "started", "killed" (by the check, or at an edit), "terminated" (asked to exit by
	// SIGTERM), "ended" (exited after that) or "exited" (by itself).
	What string `json:"what"`
	PID  int    `json:"pid,omitempty"`
	// ExitCode is set if the instance exited or ended. After a signal it is 128 plus the signal's
	// number.
	ExitCode int `json:"exitCode,omitempty"`
	// Output is the end of the instance's output. Output is set if the instance exited or ended.
	Output string `json:"output,omitempty"`
}

// Step is the start or the end of a scenario's step. The end is the moment when everything
// is idle again.
type Step struct {
	Name string `json:"name"`
	// What holds "started" or "settled".
	What string `json:"what"`
	// Revision is the revision of the store when the step started or settled.
	Revision int64 `json:"revision,omitempty"`
}

// Fault is a change in the state of a fault, or a step that the checker takes to help a
// controller recover.
type Fault struct {
	What string `json:"what"` // armed, applied, ended, wait, relist, restart, poke
	// Text is for people.
	Text string `json:"text,omitempty"`
	Call int64  `json:"call,omitempty"`
}
