// Package olm makes the bundle with which the Operator Lifecycle Manager (OLM) installs an operator.
//
//	objects of install.yaml ─┬─▶ Deployments, permissions, webhooks, CRDs ──▶ ClusterServiceVersion ─┐
//	                         └─▶ other objects, as they are ──────────────────────────────────────────┤
//	base, samples, markers ──▶ what people read in a catalog ──▶ ClusterServiceVersion ──────────────┴─▶ files
//
// The format is registry+v1, in which operator-sdk writes bundles, too. Its layout is described at
// olm.operatorframework.io/docs/tasks/creating-operator-bundle. A bundle that would install only a part
// of the operator is refused; differences that OLM makes necessary are returned as notes.
package olm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options is everything on which a bundle depends.
type Options struct {
	// Package is the name of the operator in a catalog.
	Package string
	// Version is a semantic version without a leading v.
	Version string
	// Objects are those of the installation, with the image that was built. They are not changed.
	Objects []unstructured.Unstructured
	// Samples are custom resources that show people how to use the operator.
	Samples []unstructured.Unstructured
	// Base is a ClusterServiceVersion with everything that only people know, such as the icon, in the
	// form of JSON; nil means that there is none.
	Base map[string]any
	// Marked describes custom resources by the markers of their Go types.
	Marked []Definition
	// Image is the image of the manager.
	Image string
	// Repository is the address of the code, such as https://github.com/team/operator; it may be empty.
	Repository string
	// Platforms lists the platforms of the image, such as linux/amd64.
	Platforms []string
	// Channels lists the channels of a catalog that offer the bundle. The first is the default.
	Channels []string
	// Created is the time that catalogs show.
	Created time.Time
}

// Bundle is a bundle for OLM, as files and as the labels of its image.
type Bundle struct {
	// Name is the name of the ClusterServiceVersion.
	Name string
	// Files maps the paths of files, such as metadata/annotations.yaml, to their content.
	Files map[string][]byte
	// Labels are the labels of the bundle's image.
	Labels map[string]string
	// Notes describe how an installation by OLM differs from one by install.yaml, as far as a person
	// should know.
	Notes []string
}

// maker is one call of Make.
type maker struct {
	Options
	// namespace is the namespace of the operator in the installation.
	namespace string
	parts
	// certified has what the certificates of the installation are for; see certificates.go.
	certified certified
	// webhooks are the webhookdefinitions of the ClusterServiceVersion.
	webhooks []map[string]any
	// permissions and clusterPermissions map ServiceAccounts to their rules.
	permissions, clusterPermissions map[string][]any
	notes                           []string
}

// Make makes a bundle.
func Make(o Options) (*Bundle, error) {
	m := &maker{Options: o, permissions: map[string][]any{}, clusterPermissions: map[string][]any{}}
	for _, step := range []func() error{
		m.checkName, m.sortObjects, m.grant, m.findCertificates, m.defineWebhooks, m.checkModes,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	csv, err := m.version()
	if err != nil {
		return nil, err
	}
	m.compareTexts()
	files, err := m.files(csv)
	if err != nil {
		return nil, err
	}
	return &Bundle{Name: m.name(), Files: files, Labels: m.labels(), Notes: m.notes}, nil
}

// Version returns the version of a bundle for the tag of an image, such as 1.2.0 for v1.2.0.
func Version(tag string) (string, error) {
	version := strings.TrimPrefix(tag, "v")
	if !semver.IsValid("v"+version) || semver.Canonical("v"+version) != "v"+version {
		return "", fmt.Errorf("a bundle for OLM needs a version, and the tag %q of the image is none; name the image with a semantic version, as in --image registry.example.com/team/operator:v1.2.0", tag)
	}
	return version, nil
}

// name returns the name of the ClusterServiceVersion.
func (m *maker) name() string { return m.Package + ".v" + m.Version }

// checkName checks the rules of OLM for names, which also become the values of labels.
func (m *maker) checkName() error {
	wrong := slices.Concat(validation.IsDNS1123Subdomain(m.name()), validation.IsValidLabelValue(m.name()))
	if len(wrong) > 0 {
		return fmt.Errorf("the bundle would be called %s, which is not a valid name: %s; change projectName in PROJECT, or the tag of the image", m.name(), strings.Join(wrong, ", "))
	}
	if len(m.Channels) == 0 {
		return errors.New("a bundle needs a channel")
	}
	return nil
}

func (m *maker) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}
