// Package container runs between the clone of a container's first process and
// the program: it mounts /proc of the new pid namespace, gives up what a
// container must not have, and becomes the program, which is therefore pid 1.
//
// Everything else (volumes, the filter of bind, the host name) is done
// beforehand by the kubelet process, on a separate thread from which this
// process is cloned; errors there are easy to return. The rest must happen
// inside: only a process in a pid namespace may mount its /proc. A command of
// exec starts the same way: the init waits until the kubelet process has given
// it a user.
//
// It runs in this package's init, so that it costs 10 ms and not the time and
// memory of initialising all of Kubernetes; package shim of internal/envtest
// explains the order. The package therefore imports only the standard library.
package container

// Verb is the only argument of a process that is to become a container.
const Verb = "koboshi-container-init"

// The exit codes of an init that does not become the program, as in shells and
// container runtimes.
const (
	ExitFailed        = 128
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// SpecFile is the file descriptor of the socket from which the init reads its
// Spec. The init answers with an error, or exec closes the socket without an
// answer.
const SpecFile = 3

// A Spec describes the program that the init becomes.
type Spec struct {
	Path       string   `json:"path"` // absolute, or relative to the working directory
	Args       []string `json:"args"` // including the name
	Env        []string `json:"env"`
	NoNewPrivs bool     `json:"noNewPrivs"`
	MountProc  bool     `json:"mountProc"` // set for the first process of a pid namespace
	// Terminal is the path of the standard streams, which are opened again:
	// what was opened in another mount namespace has no name in this one.
	Terminal string `json:"terminal"`
	// Capabilities are the ones that root may have inside.
	Capabilities []int `json:"capabilities"`
}
