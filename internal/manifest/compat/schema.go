package compat

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// A node is the schema of a field.
type node = apiextensionsv1.JSONSchemaProps

// schemas compares two schemas of a field, and of everything below it.
func (c *comparison) schemas(at path, old, updated *node) {
	if equality.Semantic.DeepEqual(old, updated) {
		return
	}
	for _, rule := range schemaRules {
		rule(c, at, old, updated)
	}
	c.below(at, old, updated)
}

// schemaRules lists the rules for a field. Each of them adds the changes that it recognizes.
var schemaRules = []func(c *comparison, at path, old, updated *node){
	typeChanged, nullableRemoved, enumTightened, boundsTightened, textRules, requiredAdded,
	defaultChanged, listTypeChanged, unknownFieldsPruned, celAdded, combinationChanged,
}

// below compares the schemas of properties, items and values.
func (c *comparison) below(at path, old, updated *node) {
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was := old.Properties[name]
		if now, ok := updated.Properties[name]; ok {
			c.schemas(at.child(name), &was, &now)
			continue
		}
		if keepsUnknown(updated) {
			c.safe(at.child(name))
			continue
		}
		c.add(Breaking, "field-removed", at.child(name), "keep the field, and describe it as deprecated; remove it in a new version with a conversion",
			"the field is removed, so its content in stored objects is lost")
	}
	for _, name := range slices.Sorted(maps.Keys(updated.Properties)) {
		if _, ok := old.Properties[name]; !ok {
			c.safe(at.child(name))
		}
	}
	if was, now := itemsOf(old), itemsOf(updated); was != nil && now != nil {
		c.schemas(at.child(anyItem), was, now)
	}
	switch was, now := valuesOf(old), valuesOf(updated); {
	case was != nil && now != nil:
		c.schemas(at.child(anyKey), was, now)
	case was != nil && !keepsUnknown(updated):
		c.add(Breaking, "field-removed", at.child(anyKey), "keep the map", "the map no longer accepts keys, so its content in stored objects is lost")
	}
}

func itemsOf(n *node) *node {
	if n.Items == nil {
		return nil
	}
	return n.Items.Schema
}

// valuesOf returns the schema of the values of a map. A map that accepts everything has an
// empty schema.
func valuesOf(n *node) *node {
	switch {
	case n.AdditionalProperties == nil:
		return nil
	case n.AdditionalProperties.Schema != nil:
		return n.AdditionalProperties.Schema
	case n.AdditionalProperties.Allows:
		return &node{XPreserveUnknownFields: new(true)}
	}
	return nil
}

func keepsUnknown(n *node) bool { return n.XPreserveUnknownFields != nil && *n.XPreserveUnknownFields }

func typeChanged(c *comparison, at path, old, updated *node) {
	const instead = "add another field with the new type"
	was, now := typeOf(old), typeOf(updated)
	switch {
	case was == now:
	case was == "integer" && (now == "number" || now == "int-or-string"), was == "string" && now == "int-or-string":
		c.add(Warning, "type-widened", at, instead, "the type changes from %s to %s; old clients may read values that they do not understand", was, now)
	case was == "any":
		c.add(Warning, "type-added", at, instead, "the field accepted any type, and now has the type %s", now)
	default:
		c.add(Breaking, "type-changed", at, instead, "the type changes from %s to %s; stored objects keep the old type, which new code cannot decode", was, now)
	}
}

func typeOf(n *node) string {
	switch {
	case n.XIntOrString:
		return "int-or-string"
	case n.Type == "":
		return "any"
	}
	return n.Type
}

func nullableRemoved(c *comparison, at path, old, updated *node) {
	if old.Nullable && !updated.Nullable {
		c.add(Breaking, "nullable-removed", at, "keep the field nullable", "the field no longer accepts null")
	}
}

func enumTightened(c *comparison, at path, old, updated *node) {
	if len(updated.Enum) == 0 {
		return
	}
	if len(old.Enum) == 0 {
		c.add(Breaking, "enum-added", at, "check the value in the controller, and report it in a condition", "the field now accepts only certain values")
		return
	}
	for _, value := range old.Enum {
		same := func(other apiextensionsv1.JSON) bool { return string(other.Raw) == string(value.Raw) }
		if !slices.ContainsFunc(updated.Enum, same) {
			c.add(Breaking, "enum-value-removed", at, "keep the value, and treat it like one of the remaining values", "the value %s is removed from the enum", value.Raw)
		}
	}
	c.safe(at)
}

// boundsTightened compares minima and maxima.
func boundsTightened(c *comparison, at path, old, updated *node) {
	const instead = "keep the limit, and apply the stricter one in a new version or in the controller"
	for _, bound := range []struct {
		name     string
		old, new *float64
		sign     float64 // -1 for minima, so that a smaller value is always stricter
	}{
		{"maximum", old.Maximum, updated.Maximum, 1},
		{"minimum", old.Minimum, updated.Minimum, -1},
		{"maxLength", float(old.MaxLength), float(updated.MaxLength), 1},
		{"minLength", float(old.MinLength), float(updated.MinLength), -1},
		{"maxItems", float(old.MaxItems), float(updated.MaxItems), 1},
		{"minItems", float(old.MinItems), float(updated.MinItems), -1},
		{"maxProperties", float(old.MaxProperties), float(updated.MaxProperties), 1},
		{"minProperties", float(old.MinProperties), float(updated.MinProperties), -1},
	} {
		switch {
		case bound.new == nil && bound.old == nil:
		case bound.new == nil, bound.old != nil && bound.sign**bound.new >= bound.sign**bound.old:
			c.safe(at)
		case bound.old == nil:
			c.add(Breaking, "limit-added", at, instead, "%s is now %v", bound.name, *bound.new)
		default:
			c.add(Breaking, "limit-tightened", at, instead, "%s changes from %v to %v", bound.name, *bound.old, *bound.new)
		}
	}
	exclusive := updated.ExclusiveMaximum && !old.ExclusiveMaximum && old.Maximum != nil ||
		updated.ExclusiveMinimum && !old.ExclusiveMinimum && old.Minimum != nil
	if exclusive {
		c.add(Breaking, "limit-tightened", at, instead, "the limit itself is no longer accepted")
	}
	if updated.MultipleOf != nil && (old.MultipleOf == nil || *old.MultipleOf != *updated.MultipleOf) {
		c.add(Breaking, "limit-added", at, instead, "the value must be a multiple of %v", *updated.MultipleOf)
	}
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// textRules compares patterns and formats. Whether a changed pattern accepts less is found only by
// trying values.
func textRules(c *comparison, at path, old, updated *node) {
	const instead = "keep the rule, and apply the stricter one in a new version or in the controller"
	switch {
	case updated.Pattern == old.Pattern:
	case updated.Pattern == "":
		c.safe(at)
	case old.Pattern == "":
		c.add(Breaking, "pattern-added", at, instead, "the field must match the pattern %s", updated.Pattern)
	default:
		c.add(Warning, "pattern-changed", at, instead, "the pattern changes from %s to %s; no tried value was refused", old.Pattern, updated.Pattern)
	}
	switch updated.Format {
	case old.Format:
	case "":
		c.safe(at)
	default:
		c.add(Warning, "format-changed", at, instead, "the format %s is required; no tried value was refused", updated.Format)
	}
}

func requiredAdded(c *comparison, at path, old, updated *node) {
	for _, name := range updated.Required {
		if slices.Contains(old.Required, name) {
			continue
		}
		if field, ok := updated.Properties[name]; ok && field.Default != nil {
			c.safe(at.child(name)) // the API server adds the field before it validates
			continue
		}
		c.add(Breaking, "required-added", at.child(name), "make the field optional, or give it a default", "the field is now required and has no default")
	}
	if len(updated.Required) < len(old.Required) {
		c.safe(at)
	}
}

func defaultChanged(c *comparison, at path, old, updated *node) {
	const instead = "keep the default"
	switch was, now := old.Default, updated.Default; {
	case was == nil && now == nil, was != nil && now != nil && string(was.Raw) == string(now.Raw):
	case now == nil:
		c.add(Breaking, "default-removed", at, instead, "the default %s is removed, so objects without the field have another meaning", was.Raw)
	case was == nil:
		c.add(Breaking, "default-added", at, "let the controller treat a missing field as it does today", "the default %s is added, so stored objects without the field get it when they are read", now.Raw)
	default:
		c.add(Breaking, "default-changed", at, instead, "the default changes from %s to %s", was.Raw, now.Raw)
	}
}

func listTypeChanged(c *comparison, at path, old, updated *node) {
	was, now := text(old.XListType, "atomic"), text(updated.XListType, "atomic")
	switch {
	case was != now && now == "atomic":
		c.add(Warning, "list-type-changed", at, "keep the list type", "the list type changes from %s to atomic, so one applier owns the whole list", was)
	case was != now:
		c.add(Breaking, "list-type-changed", at, "keep the list type", "the list type changes from %s to %s, so duplicates are refused", was, now)
	case !slices.Equal(old.XListMapKeys, updated.XListMapKeys):
		c.add(Breaking, "list-keys-changed", at, "keep the keys", "the keys of the list change from %v to %v", old.XListMapKeys, updated.XListMapKeys)
	}
	if was, now := text(old.XMapType, "granular"), text(updated.XMapType, "granular"); was != now {
		c.add(Warning, "map-type-changed", at, "keep the map type", "the map type changes from %s to %s, which changes the result of server-side apply", was, now)
	}
}

func text(value *string, otherwise string) string {
	if value == nil {
		return otherwise
	}
	return *value
}

func unknownFieldsPruned(c *comparison, at path, old, updated *node) {
	if keepsUnknown(old) && !keepsUnknown(updated) {
		c.add(Breaking, "unknown-fields-pruned", at, "keep x-kubernetes-preserve-unknown-fields", "unknown fields are no longer kept")
	}
	if updated.XEmbeddedResource && !old.XEmbeddedResource {
		c.add(Breaking, "embedded-resource-added", at, "keep the field as it is", "the field must now be a complete object with apiVersion and kind")
	}
}

func celAdded(c *comparison, at path, old, updated *node) {
	for _, rule := range updated.XValidations {
		same := func(other apiextensionsv1.ValidationRule) bool {
			return other.Rule == rule.Rule && equality.Semantic.DeepEqual(other.OptionalOldSelf, rule.OptionalOldSelf)
		}
		if !slices.ContainsFunc(old.XValidations, same) {
			c.add(Warning, "cel-rule-added", at, "keep the rule, and apply the stricter one in a new version or in the controller",
				"the rule %s is new; no tried object was refused", rule.Rule)
			c.changes[len(c.changes)-1].cel = rule.Rule
		}
	}
	if len(updated.XValidations) < len(old.XValidations) {
		c.safe(at)
	}
}

func combinationChanged(c *comparison, at path, old, updated *node) {
	same := equality.Semantic.DeepEqual(old.AllOf, updated.AllOf) && equality.Semantic.DeepEqual(old.AnyOf, updated.AnyOf) &&
		equality.Semantic.DeepEqual(old.OneOf, updated.OneOf) && equality.Semantic.DeepEqual(old.Not, updated.Not)
	if !same && old.XIntOrString == updated.XIntOrString {
		c.add(Warning, "combination-changed", at, "keep the combination", "allOf, anyOf, oneOf or not changes; no tried object was refused")
	}
}
