// Package container is what runs between the clone of a container's first
// process and the program: it mounts /proc of the new pid namespace, gives up
// what a container must not have, and becomes the program, which so is pid 1.
//
// All else (volumes, the filter of bind, the host name) the kubelet process does
// beforehand on a thread of its own, from which this process is cloned; errors
// there need no way back. What is left must happen inside: only a process in a
// pid namespace may mount its /proc. What exec runs in a container starts so
// too: the init waits until the kubelet process has made it a user.
//
// It runs in this package's init, so that it costs 10 ms and not the time and
// memory that initialising all of Kubernetes takes; package shim of
// internal/envtest explains the order. The package therefore imports the
// standard library only.
package container

// Verb is the only argument of a process that is to become a container.
const Verb = "koboshi-container-init"

// The exit codes of an init that does not become the program, as shells and
// container runtimes have them.
const (
	ExitFailed        = 128
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// SpecFile is the number of the open socket through which it is told what to
// become. It answers with nothing, which the exec closes, or with an error.
const SpecFile = 3

// A Spec says what to become.
type Spec struct {
	Path       string   `json:"path"` // absolute, or relative to the working directory
	Args       []string `json:"args"` // with the name
	Env        []string `json:"env"`
	NoNewPrivs bool     `json:"noNewPrivs"`
	MountProc  bool     `json:"mountProc"` // as the first of its pid namespace
	// Terminal is the path of the standard streams, to be opened again: what was
	// opened in another mount namespace has no name in this one.
	Terminal string `json:"terminal"`
	// Capabilities are those that root may have inside.
	Capabilities []int `json:"capabilities"`
}
