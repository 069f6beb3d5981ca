// Package scenario defines scenarios: YAML files that describe step by step what is done
// to a cluster while a controller runs. The package also performs the steps, and generates
// scenarios from samples and schemas.
//
//	YAML ──Parse──▶ Scenario ──Prepare, Step.Do, Await, Check──▶ a cluster
//	                   ▲
//	samples, CRDs ──Generate
package scenario

import (
	"encoding/json"
)

// APIVersion and Kind identify a scenario file.
const (
	APIVersion = "check.koboshi.dev/v1"
	Kind       = "Scenario"
)

// Scenario is a sequence of steps without faults. The checker first runs it without faults
// to learn the expected outcome.
type Scenario struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is a DNS label that is unique among the scenarios of a check.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Sample is the file of the sample from which the scenario was generated. It is empty
	// if the scenario was read from a file.
	Sample string `json:"-"`
	// Seeded reports whether the scenario was generated, and another seed may give it other steps.
	Seeded bool `json:"-"`
	// Given is applied before the controller starts.
	Given []Manifest `json:"given,omitempty"`
	Steps []Step     `json:"steps"`
	// Always lists rules that hold in every revision of an object, in every run.
	Always []Always `json:"always,omitempty"`
	// Endpoints are servers outside the cluster with which the controller communicates.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Pods defines the answers of simulated Pods to commands and connections.
	Pods []PodAnswers `json:"pods,omitempty"`
	// Ledger is a command that prints a line for each external resource, in any order. The
	// command gets the environment variables of the endpoints.
	Ledger []string `json:"ledger,omitempty"`
	// Dir is the folder in which Ledger and the commands of the steps run, relative to the
	// scenario file; empty means the folder of that file. In a parsed scenario, it is
	// relative to the working directory.
	Dir string `json:"dir,omitempty"`
	// Ignore lists fields that are not compared, each as "Kind.group path" or "Kind.group
	// namespace/name path", such as "Widget.example.com status.lastSeen". * stands for one
	// part of a path or of a name, or for any kind. The path * stands for the whole object.
	Ignore []string `json:"ignore,omitempty"`
	Rest   Rest     `json:"rest,omitzero"`
}

// Rest defines when the cluster is considered idle.
type Rest struct {
	// Quiet is the time without any write after which the cluster is considered idle. If it is
	// zero, the time is learnt, and is at least 100 ms.
	Quiet Duration `json:"quiet,omitzero"`
	// Timeout limits the duration of a step; zero means 20 s.
	Timeout Duration `json:"timeout,omitzero"`
	// Round is the interval at which the controller works at rest, such as the interval of a
	// poller. After a fault, the controller has two such intervals to recover before healing
	// intervenes.
	Round Duration `json:"round,omitzero"`
}

// Step is one action, after which the cluster must become idle. Exactly one of Apply,
// Patch, Delete, Scale, Run and PodHealth is set, or none in a step that only has Wait or Expect.
type Step struct {
	// Name is unique in the scenario.
	Name string `json:"name"`

	Apply  []Manifest `json:"apply,omitempty"` // server-side apply, which takes ownership of the fields
	Patch  *Patch     `json:"patch,omitempty"`
	Delete *Delete    `json:"delete,omitempty"`
	Scale  *Scale     `json:"scale,omitempty"`
	// PodHealth changes the status of all simulated Pods: unready, crashing, or ready as before. If it is
	// pending, Pods that are created from now on find no node until they are ready.
	PodHealth string `json:"podHealth,omitempty"`
	// Run is a command that gets a KUBECONFIG with the rights of an administrator.
	Run []string `json:"run,omitempty"`
	// Suite marks Run as a test suite, which waits for the controller and asserts what it did. A
	// suite may fail in a run with a fault; any other command must not.
	Suite bool `json:"suite,omitempty"`
	// Timeout limits the time for the action; zero means the timeout of the step.
	Timeout Duration `json:"timeout,omitzero"`

	// WhileDown makes the step perform its action while the controller is stopped. The
	// controller is started afterwards.
	WhileDown bool `json:"whileDown,omitempty"`
	// Wait must hold before the cluster can be considered idle.
	Wait []Condition `json:"wait,omitempty"`
	// Expect must hold once the cluster is idle, with and without faults.
	Expect []Condition `json:"expect,omitempty"`
	// Quiet is the time without any write after which the cluster is considered idle after this
	// step, if it is longer than usual.
	Quiet Duration `json:"quiet,omitzero"`
	// SameAs names an earlier step whose final state this step must reach again.
	SameAs string `json:"sameAs,omitempty"`
	// Spares names earlier steps. Objects that the controller made in these steps must survive this
	// step, because the resources for which they were made still exist.
	Spares []string `json:"spares,omitempty"`
}

// Manifest is an object or a file of objects. In JSON and YAML, it is the object itself or
// {file: PATH}. PATH is relative to the scenario file; in a parsed scenario, it is relative
// to the working directory.
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
	// Subresource is status, scale or empty.
	Subresource string `json:"subresource,omitempty"`
}

// Delete deletes an object, and waits until it is gone.
type Delete struct {
	ObjectRef `json:",inline"`
	// Propagation is Background, Foreground or Orphan; empty means the server's default.
	Propagation string `json:"propagation,omitempty"`
	// Keep makes the step end without waiting until the object is gone.
	Keep bool `json:"keep,omitempty"`
}

// Scale sets the replicas through the scale subresource.
type Scale struct {
	ObjectRef `json:",inline"`
	Replicas  int32 `json:"replicas"`
}

// Condition is a condition on an object. At most one of Absent, Status and Field is set;
// without them, the object must exist.
type Condition struct {
	ObjectRef `json:",inline"`
	Absent    bool `json:"absent,omitempty"`
	// Status is a condition in status.conditions, such as "Ready" or "Ready=False".
	Status string `json:"status,omitempty"`
	// Field is a JSONPath without braces, and Equals is its expected value. Without
	// Equals, the field only has to exist.
	Field   string          `json:"field,omitempty"`
	Equals  json.RawMessage `json:"equals,omitempty"`
	Timeout Duration        `json:"timeout,omitzero"`
}

// Endpoint is an HTTP server outside the cluster, behind a proxy.
type Endpoint struct {
	Name string `json:"name"`
	// Run is the command that starts the server; PORT in its environment is a free port. If
	// Run is empty, the server at URL is already running.
	Run []string `json:"run,omitempty"`
	// URL is the address of the server; $(PORT) stands for the port. The URL is polled
	// until the server gives any answer.
	URL string `json:"url"`
	// Dir is the folder in which Run is started, relative to the same folder as
	// Scenario.Dir.
	Dir string `json:"dir,omitempty"`
	// Env is the environment variable with the address of the endpoint, for the
	// controller, the ledger and commands. In manifests, $(endpoint.NAME) stands for the
	// address.
	Env string `json:"env,omitempty"`
}
