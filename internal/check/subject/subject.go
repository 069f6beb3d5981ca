// Package subject is the controller that is checked: how it is started, and what
// has to be in the cluster for it.
package subject

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Subject is one controller. What is not known before it is started stands in
// its command, its environment and Webhook as $(CERTS) and $(KUBECONFIG); see
// Expand.
type Subject struct {
	// Name is for people and for the names of files.
	Name string `json:"name"`
	// Command is how it is started; the first part is an absolute path.
	Command []string `json:"command"`
	// Dir is where it is started.
	Dir string `json:"dir,omitempty"`
	// Env is added to a small environment: PATH, HOME, LANG, TMPDIR, KUBECONFIG.
	Env []string `json:"env,omitempty"`
	// Identity is the service account that it runs as. Empty means an
	// administrator, and no verdicts about RBAC.
	Identity ServiceAccount `json:"identity,omitzero"`
	// Install are all objects that it needs, in the order in which they are to be
	// created: namespaces, definitions, RBAC, configuration; no Deployment of the
	// controller itself, no webhook configurations.
	Install []unstructured.Unstructured `json:"install,omitempty"`
	// Webhooks are its webhook configurations, with clientConfigs that name a
	// service; Webhook says where it really listens.
	Webhooks []unstructured.Unstructured `json:"webhooks,omitempty"`
	Webhook  Webhook                     `json:"webhook,omitzero"`
	// Election are the arguments that make it elect a leader; empty means that it
	// cannot.
	Election []string `json:"election,omitempty"`
	// Primary are the kinds that it reconciles, "Kind.group".
	Primary []string `json:"primary,omitempty"`
	// Roles are the rules that are bound to Identity, as they are shipped, for the
	// verdict RBAC UNUSED; each with the file it came from.
	Roles []Role `json:"roles,omitempty"`
}

// ServiceAccount names one.
type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Webhook is where a controller serves its webhooks.
type Webhook struct {
	// Port is on all its addresses; 0 means that it serves none, and the other
	// fields are empty.
	Port int `json:"port,omitempty"`
	// CertDir is where it looks for tls.crt and tls.key; it may hold $(CERTS),
	// for which a folder is put in. Args are arguments that tell it so; they are
	// added to the command.
	CertDir string   `json:"certDir,omitempty"`
	Args    []string `json:"args,omitempty"`
}

// Role is a Role or ClusterRole with where it is bound: Namespace is empty for
// the whole cluster.
type Role struct {
	Name      string                    `json:"name"`
	Namespace string                    `json:"namespace,omitempty"`
	File      string                    `json:"file,omitempty"`
	Object    unstructured.Unstructured `json:"object"`
	// Idle are resources, "resource.group", with the reason why no use of them can
	// be seen here although a cluster would see it: metrics are off, say.
	Idle map[string]string `json:"idle,omitempty"`
}

// The variables that a Subject may hold.
const (
	Certs      = "CERTS"      // the folder of certificates of this instance
	Kubeconfig = "KUBECONFIG" // the path of its kubeconfig
)

// Expand puts in the values of the variables. Others stay as they are, as in the
// arguments of a container.
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
