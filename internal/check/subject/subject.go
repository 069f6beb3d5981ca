// Package subject describes the controller that is checked: how it is started, and
// what it needs in the cluster.
package subject

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Subject is one controller. Its command, its environment and Webhook can contain
// $(CERTS) and $(KUBECONFIG), whose values are known only when it is started; see
// Expand.
type Subject struct {
	// Name is used in messages and in file names.
	Name string `json:"name"`
	// Command is the command line; its first part is an absolute path.
	Command []string `json:"command"`
	// Dir is the working directory.
	Dir string `json:"dir,omitempty"`
	// Env is added to a small environment: PATH, HOME, LANG, TMPDIR, KUBECONFIG.
	Env []string `json:"env,omitempty"`
	// Identity is the service account that it runs as. If it is empty, the
	// controller runs as an administrator, and RBAC is not checked.
	Identity ServiceAccount `json:"identity,omitzero"`
	// Install lists all objects that it needs, in the order of their creation:
	// namespaces, CRDs, RBAC, configuration; but not the controller's own Deployment
	// or webhook configurations.
	Install []unstructured.Unstructured `json:"install,omitempty"`
	// Webhooks are its webhook configurations, with clientConfigs that name a
	// service; Webhook has the real address.
	Webhooks []unstructured.Unstructured `json:"webhooks,omitempty"`
	Webhook  Webhook                     `json:"webhook,omitzero"`
	// Election holds the arguments that enable leader election; empty means that it
	// is not supported.
	Election []string `json:"election,omitempty"`
	// Primary lists the kinds that it reconciles, as "Kind.group".
	Primary []string `json:"primary,omitempty"`
	// Roles are the shipped roles that are bound to Identity, for the check of
	// unused permissions; each with the file it came from.
	Roles []Role `json:"roles,omitempty"`
}

// ServiceAccount names a service account.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Webhook describes where a controller serves its webhooks.
type Webhook struct {
	// Port is the port on all addresses; 0 means that there are no webhooks, and the
	// other fields are empty.
	Port int `json:"port,omitempty"`
	// CertDir is the folder from which it reads tls.crt and tls.key; it may contain
	// $(CERTS), which is replaced by a folder. Args are added to the command to set
	// it.
	CertDir string   `json:"certDir,omitempty"`
	Args    []string `json:"args,omitempty"`
}

// Role is a Role or ClusterRole, and the namespace in which it is bound; empty
// means the whole cluster.
type Role struct {
	Name      string                    `json:"name"`
	Namespace string                    `json:"namespace,omitempty"`
	File      string                    `json:"file,omitempty"`
	Object    unstructured.Unstructured `json:"object"`
	// Idle maps resources, as "resource.group", to the reason why a check does not
	// use them although a cluster would, such as metrics that are turned off.
	Idle map[string]string `json:"idle,omitempty"`
}

// The variables that a Subject may contain.
const (
	Certs      = "CERTS"      // the folder with the certificates of this instance
	Kubeconfig = "KUBECONFIG" // the path of its kubeconfig
)

// Expand replaces the variables with their values. Unknown variables stay, as in
// the arguments of a container.
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
