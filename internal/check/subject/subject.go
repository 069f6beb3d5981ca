// Package subject describes the controller under test: how to start it, and what it needs
// in the cluster.
package subject

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Subject is one controller. Command, Env, Election and Webhook may contain the variables
// below, whose values are known only when the controller starts; see Expand.
type Subject struct {
	// Name is used in messages and in file names.
	Name string `json:"name"`
	// Command is the command line; its first part is an absolute path.
	Command []string `json:"command"`
	// Dir is the working directory.
	Dir string `json:"dir,omitempty"`
	// Env is added to the minimal environment of package home, and to KUBECONFIG.
	Env []string `json:"env,omitempty"`
	// Private holds those values of Env that may be secret. They are removed from everything that a
	// lab prints or writes.
	Private []string `json:"private,omitempty"`
	// Identity is the service account that the controller uses. If it is empty, the
	// controller runs as an administrator, and RBAC is not checked.
	Identity ServiceAccount `json:"identity,omitzero"`
	// Install lists all objects that the controller needs, in the order of their
	// creation: namespaces, CRDs, RBAC, configuration. It does not contain the
	// controller's Deployment or webhook configurations.
	Install []unstructured.Unstructured `json:"install,omitempty"`
	// Self holds the controller's Deployment, without replicas, and its Pod, with a status, and what
	// they need. A controller may look them up. They are created after Install.
	Self []unstructured.Unstructured `json:"self,omitempty"`
	// Webhooks are the controller's webhook configurations, whose clientConfigs name a
	// service. Webhook defines where the controller actually serves its webhooks.
	Webhooks []unstructured.Unstructured `json:"webhooks,omitempty"`
	Webhook  Webhook                     `json:"webhook,omitzero"`
	// Election holds the arguments that enable leader election; empty means that leader
	// election is not supported.
	Election []string `json:"election,omitempty"`
	// Files are the volumes of the controller's Pod. In Command and Env, a path in a volume is
	// written as, for example, $(KOBOSHI_ROOT)/etc/config. WriteFiles puts the files below a
	// folder, which is then the value of the variable KOBOSHI_ROOT.
	Files []Mount `json:"files,omitempty"`
	// Primary lists the kinds that the controller reconciles, as "Kind.group".
	Primary []string `json:"primary,omitempty"`
	// Roles are the roles in the project that are bound to Identity, each with its file.
	// They are used to find unused permissions.
	Roles []Role `json:"roles,omitempty"`
	// UnknownRoles names the roles that are bound to Identity but are not in the project,
	// such as cluster-admin.
	UnknownRoles []string `json:"unknownRoles,omitempty"`
}

// ServiceAccount names a service account.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Webhook describes where a controller serves its webhooks.
type Webhook struct {
	// Port is the port on which the controller listens on all addresses; 0 means that
	// there are no webhooks, and the other fields are empty.
	Port int `json:"port,omitempty"`
	// CertDir is the folder from which the controller reads tls.crt and tls.key. It may
	// contain $(CERTS), which is replaced with a folder. Args are the arguments that make
	// the controller use CertDir.
	CertDir string   `json:"certDir,omitempty"`
	Args    []string `json:"args,omitempty"`
	// Mounts lists the paths, in the controller's Pod, of the volumes that contain the certificate.
	Mounts []string `json:"mounts,omitempty"`
}

// Role is a Role or ClusterRole and the namespace in which it is bound; an empty namespace
// means the complete cluster.
type Role struct {
	Name      string                    `json:"name"`
	Namespace string                    `json:"namespace,omitempty"`
	File      string                    `json:"file,omitempty"`
	Object    unstructured.Unstructured `json:"object"`
	// Idle holds the resources, as "resource.group", that the controller uses in a cluster but not
	// in a check. Each value is the reason, for example that Koboshi turns off metrics.
	Idle map[string]string `json:"idle,omitempty"`
}

// These are the variables that a Subject may contain.
const (
	Certs      = "CERTS"      // the folder with the certificates of the controller instance
	Kubeconfig = "KUBECONFIG" // the path of the kubeconfig of the controller instance
	// The following names are long, so that no manifest uses them for something else.
	Address = "KOBOSHI_ADDRESS" // the IP address of the controller instance
	Root    = "KOBOSHI_ROOT"    // the folder with Files
	PodUID  = "KOBOSHI_POD_UID" // the UID of the controller's Pod
)

// NoPodUID is the value of PodUID if the controller has no Pod.
const NoPodUID = "00000000-0000-4000-8000-000000000001"

// Expand replaces the variables with their values. It keeps unknown variables as they are,
// as Kubernetes does in the arguments of a container.
func (s Subject) Expand(variables map[string]string) Subject {
	var pairs []string
	for name, value := range variables {
		pairs = append(pairs, "$("+name+")", value)
	}
	replacer := strings.NewReplacer(pairs...)
	all := func(texts []string) []string {
		texts = slices.Clone(texts)
		for i := range texts {
			texts[i] = replacer.Replace(texts[i])
		}
		return texts
	}
	s.Command, s.Env, s.Election = all(s.Command), all(s.Env), all(s.Election)
	s.Webhook.Args, s.Webhook.CertDir = all(s.Webhook.Args), replacer.Replace(s.Webhook.CertDir)
	return s
}
