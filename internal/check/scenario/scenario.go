// Package scenario is what is done to a cluster while a controller runs, step by
// step, as YAML that anyone can write; and how scenarios are made from samples
// and schemas.
//
//	YAML ──Parse──▶ Scenario ──Prepare, Step.Do, Await, Check──▶ a cluster
//	                   ▲
//	samples, CRDs ──Generate
package scenario

import (
	"encoding/json"
)

// APIVersion and Kind are what a scenario file begins with.
const (
	APIVersion = "check.koboshi.dev/v1"
	Kind       = "Scenario"
)

// Scenario is a story without faults. The checker knows what should come of it
// by letting it happen.
type Scenario struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is unique among the scenarios of a check, and a DNS label.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Given is applied before the controller starts.
	Given []Manifest `json:"given,omitempty"`
	Steps []Step     `json:"steps"`
	// Endpoints are servers outside the cluster that the controller talks to.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Ledger is a command that prints what there is outside the cluster, a line
	// for each thing, in any order. It has the environment of the endpoints.
	Ledger []string `json:"ledger,omitempty"`
	// Dir is where Ledger and the steps' commands are run, relative to the file of
	// the scenario; empty is the folder of that file. Once parsed, it is relative
	// to the working directory.
	Dir string `json:"dir,omitempty"`
	// Ignore are fields that are not compared: "Kind.group path", such as
	// "Widget.example.com status.lastSeen"; * stands for one part of a path or
	// any kind.
	Ignore []string `json:"ignore,omitempty"`
	Rest   Rest     `json:"rest,omitzero"`
}

// Rest says when all is taken to have come to rest.
type Rest struct {
	// Quiet is how long nothing may be written; zero means that it is learnt,
	// from 100 ms up.
	Quiet Duration `json:"quiet,omitzero"`
	// Timeout is how long a step may take; zero means 20 s.
	Timeout Duration `json:"timeout,omitzero"`
}

// Step is one thing that is done; then all comes to rest. Exactly one of Apply,
// Patch, Delete, Scale, Run and Nothing is set, or none in a step that only waits
// or expects.
type Step struct {
	// Name is unique in the scenario.
	Name string `json:"name"`

	Apply  []Manifest `json:"apply,omitempty"` // server-side apply, as the owner of what it says
	Patch  *Patch     `json:"patch,omitempty"`
	Delete *Delete    `json:"delete,omitempty"`
	Scale  *Scale     `json:"scale,omitempty"`
	// Run is a command; it finds the cluster by KUBECONFIG as an administrator.
	Run []string `json:"run,omitempty"`

	// WhileDown does it while the controller is stopped; it is started after.
	WhileDown bool `json:"whileDown,omitempty"`
	// Wait is waited for before all is taken to have come to rest.
	Wait []Condition `json:"wait,omitempty"`
	// Expect must hold once all has come to rest, also without faults.
	Expect []Condition `json:"expect,omitempty"`
	// SameAs names an earlier step: what it led to must be the same again.
	SameAs string `json:"sameAs,omitempty"`
}

// Manifest is an object, or a file of objects; in JSON and YAML {file: PATH}, or
// the object itself. The path is relative to the file of the scenario; once
// parsed, to the working directory.
type Manifest struct {
	File   string
	Object map[string]any
}

// ObjectRef names an object.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Patch changes an object.
type Patch struct {
	ObjectRef `json:",inline"`
	Merge     json.RawMessage `json:"merge,omitempty"`
	JSON      json.RawMessage `json:"json,omitempty"`
	// Subresource is empty, or status or scale.
	Subresource string `json:"subresource,omitempty"`
}

// Delete deletes an object, and waits until it is gone.
type Delete struct {
	ObjectRef `json:",inline"`
	// Propagation is Background, Foreground or Orphan; empty is the server's default.
	Propagation string `json:"propagation,omitempty"`
	// Keep does not wait until it is gone.
	Keep bool `json:"keep,omitempty"`
}

// Scale sets the replicas by the scale subresource.
type Scale struct {
	ObjectRef `json:",inline"`
	Replicas  int32 `json:"replicas"`
}

// Condition is something that can be so about an object. Of Absent, Status and
// Field one is set, or none: then the object has to be there.
type Condition struct {
	ObjectRef `json:",inline"`
	Absent    bool `json:"absent,omitempty"`
	// Status is "Ready" or "Ready=False": a condition in status.conditions.
	Status string `json:"status,omitempty"`
	// Field is a JSONPath without braces; Equals what it has to be. Without
	// Equals it has to be there.
	Field   string          `json:"field,omitempty"`
	Equals  json.RawMessage `json:"equals,omitempty"`
	Timeout Duration        `json:"timeout,omitzero"`
}

// Endpoint is an HTTP server outside the cluster. A proxy stands before it.
type Endpoint struct {
	Name string `json:"name"`
	// Run starts it; PORT in the environment is a free port for it. Empty means
	// that URL is there already.
	Run []string `json:"run,omitempty"`
	// URL is where it answers, $(PORT) stands for the port. It is asked until
	// there is an answer, whatever it is.
	URL string `json:"url"`
	// Dir is where Run is started, as with a scenario's Dir.
	Dir string `json:"dir,omitempty"`
	// Env is the environment variable by which the controller, the ledger and
	// commands learn the address; in manifests $(endpoint.NAME) stands for it.
	Env string `json:"env,omitempty"`
}
