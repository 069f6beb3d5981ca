// Package trace is what a controller saw and wrote: data only, one line of JSON
// for each thing that happened, in the order in which the recorder learnt of it.
//
//	apiproxy ──Record──▶ Log ──WriteTo──▶ file ──Read──▶ judge, report, inspector
//
// Bodies are kept as they were on the wire, because decoding costs more than
// forwarding; what leaves the process is decoded and redacted, see Redact.
package trace

import (
	"encoding/json"
	"time"
)

// Version is the version of the format. A reader refuses a later one.
const Version = 1

// Header is the first line of a trace.
type Header struct {
	Version int       `json:"version"`
	Started time.Time `json:"started"`
	// Subject is what was run, as a person would type it.
	Subject string `json:"subject,omitempty"`
}

// Entry is one thing that happened. Exactly one of the pointers is set.
type Entry struct {
	// Seq counts from 1 without gaps.
	Seq int64 `json:"seq"`
	// At is the time since the start of the trace, in nanoseconds.
	At time.Duration `json:"at"`
	// Instance is the process whose doing it was: "controller-1" is the first
	// one that was started, "controller-2" the one after its first restart or
	// beside it. Empty is the one who tests.
	Instance string `json:"instance,omitempty"`

	Call    *Call    `json:"call,omitempty"`
	Watch   *Watch   `json:"watch,omitempty"`
	Process *Process `json:"process,omitempty"`
	Step    *Step    `json:"step,omitempty"`
	Fault   *Fault   `json:"fault,omitempty"`
}

// Target is what a request is about. Resource is the plural, as in a URL.
type Target struct {
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Call is a request with its answer. It is recorded when the answer is complete,
// or has failed; a watch when it has been established.
type Call struct {
	// ID is the number of the request, from 1.
	ID int64 `json:"id"`
	// Verb is RBAC's: get, list, watch, create, update, patch, delete,
	// deletecollection; for what is no resource the method in lower case.
	Verb string `json:"verb"`
	// Endpoint is the name of an endpoint outside the cluster; then Path and the
	// method in Verb say what was asked, and Target is empty.
	Endpoint string `json:"endpoint,omitempty"`
	Target   Target `json:"target,omitzero"`
	Path     string `json:"path"` // with the query
	// ContentType is that of the request: of a patch it tells the kind of patch.
	ContentType string `json:"contentType,omitempty"`
	UserAgent   string `json:"userAgent,omitempty"`
	// Request is the request's body as written: decoded and redacted. While the
	// recording process lives it is in RawRequest instead; RequestObject finds it
	// in either.
	Request    json.RawMessage `json:"request,omitempty"`
	RawRequest Body            `json:"-"`
	// RequestSize and ResponseSize are the bodies' bytes on the wire. Where a body
	// was not kept they are all there is.
	RequestSize  int64 `json:"requestSize,omitempty"`
	ResponseSize int64 `json:"responseSize,omitempty"`
	// Code is the HTTP status, 0 if there was no answer.
	Code int `json:"code"`
	// Reason is the answer's metav1.StatusReason, of an error.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Response is to RawResponse as Request is to RawRequest.
	Response    json.RawMessage `json:"response,omitempty"`
	RawResponse Body            `json:"-"`
	// ResourceVersion is that of the answer's object or list.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Took is from the request's arrival to the answer's end, in nanoseconds.
	Took time.Duration `json:"took"`
	// Injected says that a fault and not the server made the answer, Lost that
	// the server's answer did not get to the client.
	Injected bool `json:"injected,omitempty"`
	Lost     bool `json:"lost,omitempty"`
}

// Watch is an event of a watch, as it was passed on; also its end.
type Watch struct {
	// Call is the ID of the watch's Call.
	Call   int64  `json:"call"`
	Target Target `json:"target"`
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or CLOSED at its end.
	Type            string `json:"type"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Object is to RawObject as Call.Request is to Call.RawRequest.
	Object    json.RawMessage `json:"object,omitempty"`
	RawObject Body            `json:"-"`
	// Held is how long a fault held it back, in nanoseconds.
	Held     time.Duration `json:"held,omitempty"`
	Injected bool          `json:"injected,omitempty"`
}

// Process tells of the life of an instance.
type Process struct {
	// What is started, killed (by us), or exited (by itself).
	What string `json:"what"`
	PID  int    `json:"pid,omitempty"`
	// ExitCode is that of one that exited; a signal is 128 and its number.
	ExitCode int `json:"exitCode,omitempty"`
	// Output is the end of what it wrote, of one that exited.
	Output string `json:"output,omitempty"`
}

// Step is a step of the scenario: when it began, and when all had come to rest.
type Step struct {
	Name string `json:"name"`
	// What is started or settled.
	What string `json:"what"`
	// Revision is the store's at that moment.
	Revision int64 `json:"revision,omitempty"`
}

// Fault tells that a fault was applied, or a stage of healing begun.
type Fault struct {
	What string `json:"what"` // armed, applied, ended, wait, relist, restart, poke
	// Text is for people.
	Text string `json:"text,omitempty"`
	Call int64  `json:"call,omitempty"`
}
