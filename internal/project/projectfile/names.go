package projectfile

import (
	"fmt"
	"strings"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/util/validation"
)

// RegularPlural returns the plural of a kind as controller-tools forms it, in lower case.
func RegularPlural(kind string) string { return strings.ToLower(flect.Pluralize(kind)) }

// PluralName returns the name of the resource in the paths of the API.
func (r Resource) PluralName() string {
	if r.Plural != "" {
		return r.Plural
	}
	return RegularPlural(r.Kind)
}

// CheckDomain returns an error if API groups cannot end with the domain.
func CheckDomain(domain string) error {
	if problems := validation.IsDNS1123Subdomain(domain); len(problems) > 0 {
		return fmt.Errorf("domain %q: %s", domain, problems[0])
	}
	return nil
}

// CheckNames returns an error if the API server would refuse the group, the version or the
// kind of a resource in a CustomResourceDefinition. The group and the version of a resource
// that belongs to Kubernetes are not checked.
func (r Resource) CheckNames() error {
	group := r.QualifiedGroup()
	if r.Core {
		return checkKind(r.Kind)
	}
	if group == "" {
		return fmt.Errorf("group and domain must not both be empty")
	}
	if problems := validation.IsDNS1123Subdomain(group); len(problems) > 0 {
		return fmt.Errorf("group %q: %s", group, problems[0])
	}
	if !strings.Contains(group, ".") && !r.External {
		return fmt.Errorf("group %q: a CRD needs a group with a domain, such as %s.example.com", group, group)
	}
	if problems := validation.IsDNS1035Label(r.Version); len(problems) > 0 {
		return fmt.Errorf("version %q: use a version such as v1, v1beta1 or v2alpha1", r.Version)
	}
	return checkKind(r.Kind)
}

func checkKind(kind string) error {
	problems := validation.IsDNS1035Label(strings.ToLower(kind))
	switch {
	case strings.Contains(kind, "-"):
		return fmt.Errorf("kind %q: it must also be a Go identifier, so it must not contain a dash", kind)
	case len(problems) > 0:
		return fmt.Errorf("kind %q: use 1 to 63 letters and digits, starting with an uppercase letter", kind)
	case kind[0] < 'A' || kind[0] > 'Z':
		return fmt.Errorf("kind %q: it must start with an uppercase letter, as in %s", kind, strings.ToUpper(kind[:1])+kind[1:])
	}
	return nil
}
