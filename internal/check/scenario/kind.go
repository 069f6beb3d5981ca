package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// customKind is one version of a custom kind. It validates objects with the code of the API
// server: defaults, schema, list types, and CEL rules including transition rules. Only
// webhooks can reject an object that customKind accepts.
type customKind struct {
	name       string // Kind.group
	namespaced bool
	schema     *apiextensionsv1.JSONSchemaProps
	replicas   string // the path of the replicas for the scale subresource, if there is one

	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func newCustomKind(crd *apiextensionsv1.CustomResourceDefinition, version string) (*customKind, error) {
	k := &customKind{
		name:       crd.Spec.Names.Kind + "." + crd.Spec.Group,
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil, fmt.Errorf("%s has no version %s", crd.Name, version)
	}
	v := crd.Spec.Versions[i]
	if !v.Served || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s of %s is not served, or has no schema", version, crd.Name)
	}
	k.schema = v.Schema.OpenAPIV3Schema
	if v.Subresources != nil && v.Subresources.Scale != nil {
		k.replicas = v.Subresources.Scale.SpecReplicasPath
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(k.schema, internal, nil); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", crd.Name, err)
	}
	var err error
	if k.structural, err = schema.NewStructural(internal); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", crd.Name, err)
	}
	if k.validator, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", crd.Name, err)
	}
	k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	return k, nil
}

// refusal returns the reason why the API server would reject the creation of the object,
// or its update if old is set. It returns nil if the server would accept the object.
func (k *customKind) refusal(object, old map[string]any) error {
	object = k.defaulted(object)
	var before any
	if old != nil {
		before = k.defaulted(old)
	}
	errs := validation.ValidateCustomResource(nil, object, k.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if len(errs) == 0 {
		broken, _ := k.rules.Validate(context.Background(), nil, k.structural, object, before, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs.ToAggregate()
}

func (k *customKind) defaulted(object map[string]any) map[string]any {
	object = k.withoutNulls(object)
	defaulting.Default(object, k.structural)
	return object
}

// withoutNulls returns a copy of an object without the nulls that the API server drops when it creates the
// object: those of fields that are not nullable and have no default. A server-side apply, with which scenarios
// create objects, is refused instead. In YAML, a null is easy to write by accident, as a key without a value.
func (k *customKind) withoutNulls(object map[string]any) map[string]any {
	object = runtime.DeepCopyJSON(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.structural)
	return object
}

// at returns the schema at a path of fields, or nil if there is none.
func (k *customKind) at(path []string) *apiextensionsv1.JSONSchemaProps {
	s := k.schema
	for _, part := range path {
		child, known := s.Properties[part]
		if !known {
			return nil
		}
		s = &child
	}
	return s
}

// replicasPath returns the path of the replicas in the object.
func (k *customKind) replicasPath() []string {
	return strings.Split(strings.TrimPrefix(k.replicas, "."), ".")
}

func hasDefault(s *apiextensionsv1.JSONSchemaProps) (any, bool) {
	if s.Default == nil {
		return nil, false
	}
	return fromJSON(s.Default.Raw)
}

func fromJSON(data []byte) (any, bool) {
	var value any
	if err := json.Unmarshal(data, &value); err != nil || value == nil {
		return nil, false
	}
	return wholeNumbers(value), true
}

// anything reports whether the schema allows any content in an object.
func anything(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields && len(s.Properties) == 0 && s.AdditionalProperties == nil
}

// mapValue returns the schema of the values of a map, or nil if s is not a map.
func mapValue(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

func listItem(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}
