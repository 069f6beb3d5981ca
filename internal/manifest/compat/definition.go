package compat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// A change is a difference between two CRDs.
type change struct {
	Finding

	// safe means that the change alone cannot harm users, so it is not a finding. The
	// experiment nevertheless tries the field.
	safe bool
}

// findingsOf returns the findings among the changes.
func findingsOf(changes []change) (all []Finding) {
	for _, c := range changes {
		if !c.safe {
			all = append(all, c.Finding)
		}
	}
	return all
}

// comparison collects the changes of one CRD.
type comparison struct {
	pair    *pair
	version string
	changes []change
}

func (c *comparison) add(severity Severity, rule string, at path, instead, format string, args ...any) {
	c.changes = append(c.changes, change{Finding: Finding{
		File: c.pair.new.File, CRD: c.pair.old.CRD.Name, Version: c.version, Field: at.String(), Rule: rule,
		Severity: severity, Message: fmt.Sprintf(format, args...), Instead: instead, path: at,
	}})
}

// safe records a change that is not a finding.
func (c *comparison) safe(at path) {
	c.changes = append(c.changes, change{safe: true, Finding: Finding{Version: c.version, path: at}})
}

// removed returns a finding for each CRD that no longer exists.
func removed(in Input) (findings []Finding) {
	for _, old := range in.Old {
		if _, ok := find(in.New, old.CRD.Name); !ok {
			findings = append(findings, Finding{
				File: old.File, CRD: old.CRD.Name, Rule: "crd-removed", Severity: Breaking,
				Message: fmt.Sprintf("the CRD is removed; deleting it from a cluster also deletes all objects of kind %s", old.CRD.Spec.Names.Kind),
				Instead: "keep the CRD, and mark its versions as deprecated",
			})
		}
	}
	return findings
}

// compare returns the changes of a CRD.
func compare(p *pair) []change {
	c := &comparison{pair: p}
	c.names()
	for i := range p.old.CRD.Spec.Versions {
		old := &p.old.CRD.Spec.Versions[i]
		c.version = old.Name
		updated := versionOf(p.new.CRD, old.Name)
		if updated == nil {
			c.add(Breaking, "version-removed", nil, "keep the version with served: false until no object is stored in it, and no client uses it", "the version is removed")
			continue
		}
		if old.Served && !updated.Served {
			c.add(Breaking, "version-not-served", nil, "keep serving the version, and mark it as deprecated", "the version is no longer served")
			continue
		}
		c.versions(old, updated)
	}
	c.newVersions()
	return c.changes
}

// newVersions records where a new version differs from the stored one. Versions may differ from
// each other, so a difference is not a finding; the experiment with objects shows whether content
// is lost.
func (c *comparison) newVersions() {
	stored := versionOf(c.pair.old.CRD, storageVersion(c.pair.old.CRD))
	for i := range c.pair.new.CRD.Spec.Versions {
		added := &c.pair.new.CRD.Spec.Versions[i]
		if stored == nil || versionOf(c.pair.old.CRD, added.Name) != nil {
			continue
		}
		other := &comparison{pair: c.pair, version: stored.Name}
		other.schemas(nil, rootOf(stored), rootOf(added))
		for _, change := range other.changes {
			c.version = stored.Name
			c.safe(change.path)
		}
	}
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// storageVersion returns the name of the version in which objects are stored.
func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// names compares the parts of a CRD that all versions have in common.
func (c *comparison) names() {
	old, updated := c.pair.old.CRD.Spec, c.pair.new.CRD.Spec
	if old.Scope != updated.Scope {
		c.add(Breaking, "scope-changed", nil, "use another kind", "the scope changes from %s to %s", old.Scope, updated.Scope)
	}
	if old.Names.Kind != updated.Names.Kind {
		c.add(Breaking, "kind-changed", nil, "use another CRD", "the kind changes from %s to %s", old.Names.Kind, updated.Names.Kind)
	}
	for _, list := range []struct {
		what     string
		old, new []string
	}{
		{"short name", old.Names.ShortNames, updated.Names.ShortNames},
		{"category", old.Names.Categories, updated.Names.Categories},
		{"singular name", []string{old.Names.Singular}, []string{cmp.Or(updated.Names.Singular, strings.ToLower(updated.Names.Kind))}},
		{"list kind", []string{old.Names.ListKind}, []string{cmp.Or(updated.Names.ListKind, updated.Names.Kind+"List")}},
	} {
		for _, name := range list.old {
			if name != "" && !slices.Contains(list.new, name) {
				c.add(Warning, "name-removed", nil, "keep the name", "the %s %s is removed", list.what, name)
			}
		}
	}
	if strategy(c.pair.old.CRD) != strategy(c.pair.new.CRD) {
		c.add(Warning, "conversion-changed", nil, "test the conversion in both directions",
			"the conversion strategy changes from %s to %s", strategy(c.pair.old.CRD), strategy(c.pair.new.CRD))
	}
}

// strategy returns the conversion strategy of a CRD.
func strategy(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.ConversionStrategyType {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy == "" {
		return apiextensionsv1.NoneConverter
	}
	return crd.Spec.Conversion.Strategy
}

// versions compares a version that is in both CRDs.
func (c *comparison) versions(old, updated *apiextensionsv1.CustomResourceDefinitionVersion) {
	c.subresources(old.Subresources, updated.Subresources)
	for _, field := range old.SelectableFields {
		if !slices.Contains(updated.SelectableFields, field) {
			c.add(Warning, "selectable-field-removed", nil, "keep the selectable field", "the selectable field %s is removed", field.JSONPath)
		}
	}
	for _, column := range old.AdditionalPrinterColumns {
		same := func(other apiextensionsv1.CustomResourceColumnDefinition) bool { return other.Name == column.Name }
		if !slices.ContainsFunc(updated.AdditionalPrinterColumns, same) {
			c.add(Warning, "printer-column-removed", nil, "keep the column", "the printer column %s is removed", column.Name)
		}
	}
	if old.Schema != nil && updated.Schema != nil && old.Schema.OpenAPIV3Schema != nil && updated.Schema.OpenAPIV3Schema != nil {
		c.schemas(nil, old.Schema.OpenAPIV3Schema, updated.Schema.OpenAPIV3Schema)
	}
}

func (c *comparison) subresources(old, updated *apiextensionsv1.CustomResourceSubresources) {
	empty := &apiextensionsv1.CustomResourceSubresources{}
	old, updated = cmp.Or(old, empty), cmp.Or(updated, empty)
	if old.Status != nil && updated.Status == nil {
		c.add(Breaking, "status-subresource-removed", path{"status"}, "keep the subresource", "the subresource status is removed, so writes to it fail")
	}
	if old.Status == nil && updated.Status != nil {
		// The API server then ignores a status that is written with the object; the experiment with
		// objects shows this.
		c.safe(path{"status"})
	}
	if old.Scale != nil && updated.Scale == nil {
		c.add(Breaking, "scale-subresource-removed", nil, "keep the subresource", "the subresource scale is removed, so kubectl scale and autoscalers fail")
	}
	if old.Scale != nil && updated.Scale != nil && !equality.Semantic.DeepEqual(old.Scale, updated.Scale) {
		c.add(Warning, "scale-subresource-changed", nil, "keep the paths", "the paths of the subresource scale change")
	}
}

// sorted orders findings: breaking ones first, then by CRD, version and field.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.CRD, b.CRD), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Rule, b.Rule))
	})
	return findings
}
