// Package kubelet runs upstream's kubelet for one node of a plane: this machine.
//
//	Start (in the plane's process)             Main (in its own)
//	  clones with a new user,     ──config──▶    kubelet, and the runtime of
//	  mount and pid namespace     ◀──report──    package cri
//	  holds a pipe                ───────────    ends when the pipe does, and the
//	                                             kernel ends all that it started
//
// Inside its user namespace, the kubelet's process is root; outside, it has only the rights
// of the invoking user. The kubelet also needs a separate process because upstream's
// feature gates, metrics and loggers are global.
package kubelet

import (
	"errors"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// Name is the name of the component and of its log file.
const Name = "kubelet"

// Verb is the argument that makes this program run as a kubelet.
const Verb = "kubelet"

// Client is the only user that the kubelet serves: the API server.
const Client = "kube-apiserver-kubelet-client"

// Config configures a kubelet. A Config is passed to the kubelet's process as JSON.
type Config struct {
	// NodeName is the name of the Node, which already exists and has addresses.
	NodeName string
	// Kubeconfig is a file with the identity of the node.
	Kubeconfig string
	// Root is the folder of the kubelet and the runtime.
	Root string
	// ServingCert, ServingKey and ClientCA are the paths of PEM files.
	ServingCert, ServingKey, ClientCA string
	// Programs maps an image to the program that runs instead of the containers with this
	// image. An empty WorkingDir means the working directory of the process that calls
	// Start.
	Programs programs.Set
	// HostPaths lists the folders in which hostPath volumes are allowed.
	HostPaths []string
	// HidePaths lists files and folders of this machine that programs do not see.
	HidePaths []string
	// ServiceIP is the address of the Service "kubernetes", which cannot be reached. In the
	// environment of containers, ServiceIP is replaced by APIServer, a host and a port.
	ServiceIP, APIServer string
	// Verbosity is klog's -v.
	Verbosity int
}

// ErrForbidden reports that the operating system does not let the invoking user create Linux
// namespaces.
var ErrForbidden = errors.New("this system does not let you create the namespaces in which programs run; " +
	"as root, run `sysctl -w user.max_user_namespaces=15000`, on Ubuntu also " +
	"`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, and on older Debian also " +
	"`sysctl -w kernel.unprivileged_userns_clone=1`; then run koboshi up again")
