package compat

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// These limits keep the experiment short for large schemas.
const (
	maxTargets = 60  // fields of a version whose values are varied
	maxObjects = 250 // objects of a version that are stored
)

// A draft is an object that an old client may have written.
type draft struct {
	origin  string         // the file of a sample, or generatedOrigin
	content map[string]any // without apiVersion, kind and metadata
}

const generatedOrigin = "generated"

// drafts returns the objects to store in a version: its samples, a minimal and a maximal object,
// and variants of these in which the changed fields have other values. Each group of variants
// applies the same change to different objects; one valid variant of a group is enough.
type drafts struct {
	bases    []draft
	variants [][]draft
	complete bool // the limits were not reached
}

// draw returns the drafts of a version.
func draw(old, updated *apiextensionsv1.CustomResourceDefinitionVersion, samples []draft, changes []change) drafts {
	schema := rootOf(old)
	d := drafts{complete: true, bases: slices.Clone(samples)}
	for _, content := range []map[string]any{object(schema, false), skeleton(schema), object(schema, true)} {
		d.bases = append(d.bases, draft{origin: generatedOrigin, content: contentOf(content)})
	}
	other, l := schema, &literals{}
	l.collect(schema)
	if updated != nil {
		other = rootOf(updated)
		l.collect(other)
	}
	for _, target := range d.targets(schema, changes) {
		d.vary(schema, other, target, l)
	}
	return d
}

// skeleton returns an object whose spec and status exist, but have only their required fields.
func skeleton(schema *node) map[string]any {
	out := object(schema, false)
	for name, child := range schema.Properties {
		if _, ok := out[name]; !ok && child.Type == "object" {
			out[name] = object(&child, false)
		}
	}
	return out
}

// Minimal returns an object of a version as small as its schema allows, without metadata. The
// schema alone cannot tell whether all its rules accept the object.
func Minimal(v *apiextensionsv1.CustomResourceDefinitionVersion) map[string]any {
	return contentOf(skeleton(rootOf(v)))
}

// rootOf returns the schema of a version. If the version has none, rootOf returns a schema that
// keeps all fields.
func rootOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *node {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return &node{Type: "object", XPreserveUnknownFields: new(true)}
	}
	return v.Schema.OpenAPIV3Schema
}

// contentOf returns the object without the fields that every object has.
func contentOf(object map[string]any) map[string]any {
	content := maps.Clone(object)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(content, name)
	}
	return content
}

// targets returns the fields to vary: those that changed, and those below them.
func (d *drafts) targets(schema *node, changes []change) (all []path) {
	seen := map[string]bool{}
	var visit func(at path, n *node)
	visit = func(at path, n *node) {
		if n == nil || len(at) == 1 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, at[0]) {
			return
		}
		if len(all) >= maxTargets {
			d.complete = false
			return
		}
		if !seen[at.String()] && len(at) > 0 {
			seen[at.String()] = true
			all = append(all, at)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			child := n.Properties[name]
			visit(at.child(name), &child)
		}
		if items := itemsOf(n); items != nil {
			visit(at.child(anyItem), items)
		}
		if values := valuesOf(n); values != nil && len(values.Properties) > 0 {
			visit(at.child(anyKey), values)
		}
	}
	for _, c := range changes {
		at := c.path
		for len(at) > 1 && at.at(schema) == nil {
			at = at[:len(at)-1] // a new field; its parents are what old objects have
		}
		visit(at, at.at(schema))
	}
	return all
}

// vary adds the variants of a field.
func (d *drafts) vary(schema, other *node, target path, l *literals) {
	old, updated := target.at(schema), target.at(other)
	if updated == nil {
		updated = old
	}
	add := func(content any, drop bool) {
		if len(d.variants) >= maxObjects {
			d.complete = false
			return
		}
		var group []draft
		for _, base := range slices.Backward(d.bases) { // rules that compare fields need the fullest object
			varied, _ := set(base.content, schema, target, content, drop).(map[string]any)
			group = append(group, draft{origin: generatedOrigin, content: varied})
		}
		d.variants = append(d.variants, group)
	}
	for _, content := range candidates(old, updated, l) {
		add(content, false)
	}
	if last := target[len(target)-1]; last != anyItem && last != anyKey {
		add(nil, true)
	}
}
