package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Ref names an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the form that ParseRef reads: "Deployment.apps/default/web".
func (r Ref) String() string {
	parts := []string{r.Kind}
	if r.Group != "" {
		parts[0] += "." + r.Group
	}
	if r.Namespace != "" {
		parts = append(parts, r.Namespace)
	}
	return strings.Join(append(parts, r.Name), "/")
}

// Short returns the form for people: "Deployment default/web".
func (r Ref) Short() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

func compareRefs(a, b Ref) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Find returns the object that a person names: "KIND/NAME" or "KIND/NAMESPACE/NAME". The kind
// may be written as in kubectl: Deployment, deployment, deployments or deployments.apps.
func (s *Session) Find(text, namespace string) (Ref, error) {
	kind, rest, ok := strings.Cut(text, "/")
	if !ok || rest == "" {
		return Ref{}, fmt.Errorf("%q does not name an object; write KIND/NAME or KIND/NAMESPACE/NAME", text)
	}
	name := rest
	if ns, after, both := strings.Cut(rest, "/"); both {
		namespace, name = ns, after
	}
	var found []Ref
	for ref := range s.objects {
		if ref.Name == name && (namespace == "" || ref.Namespace == namespace || ref.Namespace == "") && s.kinds.matches(kind, ref) {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 0:
		return Ref{}, fmt.Errorf("the session contains no %s; koboshi inspect objects lists those that it contains", text)
	case 1:
		return found[0], nil
	}
	one, two := found[0], found[1]
	if compareRefs(one, two) > 0 {
		one, two = two, one
	}
	return Ref{}, fmt.Errorf("%q names %d objects; write, for example, %s or %s", text, len(found), one, two)
}

// kinds records which resource belongs to which kind. It contains upstream's resources, and learns
// others from the bodies of requests.
type kinds struct {
	kindOf     map[schema.GroupResource]string
	resourceOf map[schema.GroupKind]string
}

func newKinds() kinds {
	k := kinds{map[schema.GroupResource]string{}, map[schema.GroupKind]string{}}
	for kind := range clientscheme.Scheme.AllKnownTypes() {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		k.set(plural.GroupResource(), kind.Kind)
	}
	k.set(schema.GroupResource{Resource: "endpoints"}, "Endpoints")
	k.set(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "CustomResourceDefinition")
	return k
}

func (k kinds) set(resource schema.GroupResource, kind string) {
	k.kindOf[resource] = kind
	k.resourceOf[schema.GroupKind{Group: resource.Group, Kind: kind}] = resource.Resource
}

// kind returns the kind of a target, or its resource if the kind is unknown.
func (k kinds) kind(t trace.Target) string {
	return cmp.Or(k.kindOf[schema.GroupResource{Group: t.Group, Resource: t.Resource}], t.Resource)
}

// matches reports whether a person's word for a kind means the kind of the object.
func (k kinds) matches(word string, ref Ref) bool {
	bare, group, qualified := strings.Cut(word, ".")
	if qualified && group != ref.Group {
		return false
	}
	plural := k.resourceOf[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	return strings.EqualFold(bare, ref.Kind) || plural != "" && strings.EqualFold(bare, plural)
}

// learn records the kind of a target from the body of an object. It reports the earlier name
// of the kind if objects were recorded under it.
func (s *Session) learn(t trace.Target, kind string) {
	resource := schema.GroupResource{Group: t.Group, Resource: t.Resource}
	if t.Subresource != "" && t.Subresource != "status" || s.kinds.kindOf[resource] != "" || partial(kind) {
		return
	}
	s.kinds.set(resource, kind)
	for ref, o := range s.objects {
		if ref.Group == t.Group && ref.Kind == t.Resource {
			s.rename(o, Ref{ref.Group, kind, ref.Namespace, ref.Name})
		}
	}
}

// partial reports whether objects of the kind show other objects incompletely.
func partial(kind string) bool {
	switch kind {
	case "", "PartialObjectMetadata", "Table", "Status":
		return true
	}
	return strings.HasSuffix(kind, "Options")
}

func refOf(group string, object map[string]any) Ref {
	kind, _ := object["kind"].(string)
	return Ref{group, kind, metadata(object, "namespace"), metadata(object, "name")}
}

// metadata returns a string field of the metadata.
func metadata(object map[string]any, field string) string {
	m, _ := object["metadata"].(map[string]any)
	text, _ := m[field].(string)
	return text
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
