package scenario

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/check/invariant"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Always is a rule that holds in every revision of all objects that match.
type Always struct {
	// Name is unique among the rules of the scenario.
	Name  string `json:"name"`
	Match Match  `json:"match"`
	// Expr is an expression in CEL. object is the object in the revision, and oldObject is the
	// object in its previous revision, or null.
	Expr string `json:"expr"`
}

// Match selects objects. An empty field matches all objects of the kind.
type Match struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Selector is a label selector, such as "app=web,tier!=test".
	Selector string `json:"selector,omitempty"`
}

// Selects reports whether the object matches. The version of the kind does not matter.
func (m Match) Selects(ref state.Ref, object state.Object) bool {
	group, _ := schema.ParseGroupVersion(m.APIVersion)
	if ref.Kind != m.Kind || ref.Group != group.Group || m.Name != "" && ref.Name != m.Name || m.Namespace != "" && ref.Namespace != m.Namespace {
		return false
	}
	if m.Selector == "" {
		return true
	}
	selector, err := labels.Parse(m.Selector)
	if err != nil {
		return false // Validate reports it
	}
	set := labels.Set{}
	for key, value := range object.Labels() {
		set[key], _ = value.(string)
	}
	return selector.Matches(set)
}

func (c *checker) always(path string, a Always, earlier []Always) {
	if strings.TrimSpace(a.Name) == "" {
		c.complain(path+".name", "is empty; a finding names the rule")
	}
	for _, other := range earlier {
		if other.Name == a.Name {
			c.complain(path+".name", "%s is already the name of an earlier rule", a.Name)
		}
	}
	m := a.Match
	c.ref(path+".match", ObjectRef{APIVersion: m.APIVersion, Kind: m.Kind, Name: cmp.Or(m.Name, "any")})
	if m.Namespace != "" && len(validation.IsDNS1123Label(m.Namespace)) > 0 {
		c.complain(path+".match.namespace", "%q is not a DNS label", m.Namespace)
	}
	if _, err := labels.Parse(m.Selector); err != nil {
		c.complain(path+".match.selector", "%q is not a label selector such as app=web,tier!=test: %v", m.Selector, err)
	}
	if _, err := invariant.Compile(a.Expr); err != nil {
		c.complain(path+".expr", "%v", err)
	}
}
