// Package choices defines the section `ship` of koboshi.yaml: what a project's image is called, for
// which platforms it is built, what is in it, and where its webhooks get their certificate.
package choices

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Choices is the section. The zero value changes nothing.
type Choices struct {
	// Image is the name of the image, such as registry.example.com/team/operator:v1.2.0.
	Image string `json:"image,omitempty"`
	// Platforms lists the platforms of the image; none means linux/amd64 and linux/arm64.
	Platforms []string `json:"platforms,omitempty"`
	// Base is the image to which programs are added; empty means an image without files.
	Base string `json:"base,omitempty"`
	// Programs maps the name of a program in the image, besides the manager, to the folder of its
	// main package in the project.
	Programs map[string]string `json:"programs,omitempty"`
	// OLM has the settings of bundles for OLM.
	OLM OLM `json:"olm,omitzero"`
	// WatchNamespaces is the flag or the environment variable of the manager that lists the
	// namespaces to watch; empty means that there is none. The chart then has a value for it.
	WatchNamespaces string `json:"watchNamespaces,omitempty"`
	// Certificates says where the webhooks get their certificate: cert-manager or self-signed. Empty
	// means what config/default says.
	Certificates string `json:"certificates,omitempty"`
}

// OLM is the part of the section about bundles for the Operator Lifecycle Manager.
type OLM struct {
	// Channels lists the channels of a catalog that offer a bundle, the default one first; none means
	// alpha, as for operator-sdk.
	Channels []string `json:"channels,omitempty"`
}

// channel matches the names that catalogs accept for channels.
var channel = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// namespaceOption matches a flag, such as --namespaces, and an environment variable.
var namespaceOption = regexp.MustCompile(`^(--?[a-z][-a-zA-Z0-9.]*|[A-Z][A-Z0-9_]*)$`)

// Complaints returns the mistakes in the section, which stands at a path of the file.
func (c *Choices) Complaints(at string) (all []strictyaml.Complaint) {
	if _, err := name.NewTag(c.Image); c.Image != "" && err != nil {
		all = append(all, strictyaml.Complaint{Path: at + ".image", Message: fmt.Sprintf("%q is not the name of an image; write it as registry.example.com/team/operator:v1.2.0", c.Image)})
	}
	if _, err := name.ParseReference(c.Base); c.Base != "" && err != nil {
		all = append(all, strictyaml.Complaint{Path: at + ".base", Message: fmt.Sprintf("%q is not the name of an image; write it as gcr.io/distroless/static:nonroot", c.Base)})
	}
	if c.WatchNamespaces != "" && !namespaceOption.MatchString(c.WatchNamespaces) {
		all = append(all, strictyaml.Complaint{Path: at + ".watchNamespaces", Message: fmt.Sprintf("%q is neither a flag nor an environment variable; write it as --namespaces or WATCH_NAMESPACE", c.WatchNamespaces)})
	}
	if _, err := certificates.ParseSource(c.Certificates); c.Certificates != "" && err != nil {
		all = append(all, strictyaml.Complaint{Path: at + ".certificates", Message: err.Error()})
	}
	for _, program := range slices.Sorted(maps.Keys(c.Programs)) {
		if program != path.Base(program) || strings.TrimLeft(program, ".") == "" {
			all = append(all, strictyaml.Complaint{Path: at + ".programs." + program, Message: fmt.Sprintf("%q is not the name of a file; programs are in the root folder of the image", program)})
		}
	}
	for i, name := range c.OLM.Channels {
		if !channel.MatchString(name) {
			all = append(all, strictyaml.Complaint{Path: fmt.Sprintf("%s.olm.channels[%d]", at, i), Message: fmt.Sprintf("%q is not the name of a channel; write it as stable or stable-v1", name)})
		}
	}
	return all
}
