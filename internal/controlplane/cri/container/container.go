// Package container contains the init: the first process of a container, which
// later becomes the container's program. The init mounts /proc of the new pid
// namespace, gives up the privileges that a container must not have, and then
// becomes the program, which is therefore pid 1.
//
// Before the init starts, the kubelet process prepares the other parts of the
// container (the volumes, the filter for bind, the host name) on a separate
// thread, from which the init is cloned; errors on that thread are easy to
// return. The steps of the init must happen inside the container: only a
// process in a pid namespace may mount the /proc of that namespace. A command
// of kubectl exec starts with the same init. The init of a container or of a
// command waits until the kubelet process has given it a user.
//
// The code runs in the init function of this package, so that it takes only 10 ms, and not the time
// and memory that initializing all of Kubernetes takes; package shim of internal/envtest explains
// the order of initialization. The package imports only the standard library, so that it is
// initialized early.
package container

// Verb is the only argument of a process that will become a container.
const Verb = "koboshi-container-init"

// These are the exit codes of an init that cannot become the program, as in
// shells and container runtimes.
const (
	ExitFailed        = 128
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// SpecFile is the file descriptor of the socket from which the init reads its
// Spec. If the init fails, it writes the error to the socket; otherwise exec
// closes the socket, with nothing written.
const SpecFile = 3

// A Spec describes the program that the init becomes.
type Spec struct {
	Path       string   `json:"path"` // absolute, or relative to the working directory
	Args       []string `json:"args"` // including the name of the program
	Env        []string `json:"env"`
	NoNewPrivs bool     `json:"noNewPrivs"`
	MountProc  bool     `json:"mountProc"` // set for the first process of a pid namespace
	// Terminal is the path of the terminal. The init opens this path again as
	// its standard streams, because a file that was opened in another mount
	// namespace has no name in the container's namespace.
	Terminal string `json:"terminal"`
	// Capabilities lists the capabilities that root may have inside the
	// container.
	Capabilities []int `json:"capabilities"`
}
