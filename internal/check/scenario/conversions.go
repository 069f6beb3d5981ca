package scenario

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Convertible is a custom kind with several served versions, between which a webhook converts.
type Convertible struct {
	// Kind is the kind as "Kind.group".
	Kind       string `json:"kind"`
	Group      string `json:"group"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
	// Storage is the version in which objects are stored, and Versions are those that are served.
	Storage  string   `json:"storage"`
	Versions []string `json:"versions"`
	// Lossy lists what may be lost, as the settings of the project do.
	Lossy []string `json:"lossy,omitempty"`
	// Objects are objects to convert, the most telling first. Each is in one of the versions.
	Objects []map[string]any `json:"objects"`
}

const (
	// mostBases is the number of given objects of each version that are converted, and from which
	// others are made.
	mostBases = 3
	// mostConverted is the number of objects that are made for each version.
	mostConverted = 60
)

// GenerateConversions returns the kinds of the CRDs that are converted by a webhook, with objects in each
// of their served versions: first the given ones, then one with as many fields as the schema allows, and
// then some in which one field differs. For a version without a given object, an object of another
// version is used without the fields that the version lacks, or one is made up.
func GenerateConversions(given []map[string]any, crds []*apiextensionsv1.CustomResourceDefinition, seed uint64) (all []*Convertible) {
	for _, crd := range crds {
		c := convertible(crd)
		if c == nil {
			continue
		}
		g := newGenerator(nil, crds, GenerateOptions{Seed: seed})
		g.thorough = true
		var groups [][]map[string]any
		for _, version := range c.Versions {
			groups = append(groups, g.convertedFrom(crd, version, c.objectsIn(given)))
		}
		c.Objects = ByTurns(groups)
		all = append(all, c)
	}
	return all
}

// GivenConversions is like GenerateConversions, but without other objects than the given ones.
func GivenConversions(given []map[string]any, crds []*apiextensionsv1.CustomResourceDefinition) (all []*Convertible) {
	for _, crd := range crds {
		c := convertible(crd)
		if c == nil {
			continue
		}
		for _, object := range c.objectsIn(given) {
			if kind, err := newCustomKind(crd, versionOf(object)); err == nil {
				kind.prune(object)
				c.Objects = append(c.Objects, object)
			}
		}
		if len(c.Objects) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// convertible returns the kind of a CRD, or nil if no webhook converts it.
func convertible(crd *apiextensionsv1.CustomResourceDefinition) *Convertible {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return nil
	}
	c := &Convertible{
		Kind: crd.Spec.Names.Kind + "." + crd.Spec.Group, Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			c.Storage = v.Name
		}
		if v.Served {
			c.Versions = append(c.Versions, v.Name)
		}
	}
	if len(c.Versions) < 2 {
		return nil
	}
	return c
}

// objectsIn returns the given objects of the kind that are in a served version. Objects in a namespace
// are moved to the default namespace, which always exists.
func (c *Convertible) objectsIn(given []map[string]any) (some []map[string]any) {
	for _, object := range given {
		o := unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
		if groupKind(object) != c.Kind || !slices.Contains(c.Versions, versionOf(object)) {
			continue
		}
		unstructured.RemoveNestedField(o.Object, "status")
		unstructured.RemoveNestedField(o.Object, "metadata", "finalizers")
		unstructured.RemoveNestedField(o.Object, "metadata", "ownerReferences")
		if c.Namespaced {
			o.SetNamespace("default")
		}
		some = append(some, o.Object)
	}
	return some
}

// convertedFrom returns objects in one version of a CRD.
func (g *generator) convertedFrom(crd *apiextensionsv1.CustomResourceDefinition, version string, given []map[string]any) (all []map[string]any) {
	kind, err := newCustomKind(crd, version)
	if err != nil {
		return nil
	}
	bases := kind.bases(crd, version, given)
	all = append(all, bases...)
	for i, base := range bases {
		s := &sampled{object: unstructured.Unstructured{Object: base}}
		p := &plot{generator: g, sample: s, kind: kind, ref: refOf(base), base: base, random: g.random(s)}
		if i == 0 {
			all = append(all, p.filled())
		}
		for _, m := range p.moves() {
			made, _ := p.make(m, base)
			if len(all) == mostConverted {
				return all
			}
			if made != nil && !g.tried[version+" "+m.String()] && kind.refusal(made.to, nil) == nil {
				g.tried[version+" "+m.String()] = true
				all = append(all, made.to)
			}
		}
	}
	return all
}

// bases returns the objects from which others are made. There is at least one, unless none can be made.
func (k *customKind) bases(crd *apiextensionsv1.CustomResourceDefinition, version string, given []map[string]any) (bases []map[string]any) {
	in := crd.Spec.Group + "/" + version
	for _, same := range []bool{true, false} {
		for _, object := range given {
			if (object["apiVersion"] == in) != same || len(bases) == mostBases {
				continue
			}
			object = runtime.DeepCopyJSON(object)
			object["apiVersion"] = in
			k.prune(object)
			if k.refusal(object, nil) == nil {
				bases = append(bases, object)
			}
		}
		if len(bases) > 0 {
			return bases
		}
	}
	made, ok := makeObject(k.schema, "", 0)
	object, isObject := made.(map[string]any)
	if !ok || !isObject {
		return nil
	}
	object["apiVersion"], object["kind"] = in, crd.Spec.Names.Kind
	metadata := map[string]any{"name": strings.ToLower(crd.Spec.Names.Kind)}
	if k.namespaced {
		metadata["namespace"] = "default"
	}
	object["metadata"] = metadata
	if k.refusal(object, nil) != nil {
		return nil
	}
	return []map[string]any{object}
}

// prune removes the fields that the schema lacks. The API server does the same before it converts an object,
// so the conversion is not to blame for these fields.
func (k *customKind) prune(object map[string]any) { pruning.Prune(object, k.structural, true) }

func versionOf(object map[string]any) string {
	return (&unstructured.Unstructured{Object: object}).GroupVersionKind().Version
}

// filled returns the object with as many fields, and with as many other values, as the schema allows.
func (p *plot) filled() map[string]any {
	now := p.base
	for _, m := range p.moves() {
		if !slices.Contains([]string{"change", "add", "add-to", "fill"}, m.verb) {
			continue
		}
		if made, _ := p.make(m, now); made != nil && p.kind.refusal(made.to, nil) == nil {
			now = made.to
		}
	}
	return now
}

// Conversion returns a scenario with an object whose conversion has lost something.
func Conversion(name string, object map[string]any) *Scenario {
	ref := refOf(object)
	return &Scenario{
		APIVersion: APIVersion, Kind: Kind, Name: name, Description: "Created in one version, to be read and written back in another one.",
		Steps: []Step{
			{Name: CreateStep, Apply: []Manifest{{Object: runtime.DeepCopyJSON(object)}}},
			{Name: "delete", Delete: &Delete{ObjectRef: ref}},
		},
	}
}
