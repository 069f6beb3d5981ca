package project

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// sameFields lists the groups whose kinds have the same fields in v1 as in earlier versions,
// as far as manifests use them.
var sameFields = []string{
	groupRBAC, "apps", "policy", "scheduling.k8s.io", "storage.k8s.io", "coordination.k8s.io",
}

// modernize converts the objects to v1 in the same way as the oldest API server that serves both
// versions. An object whose kind has no v1 is not changed.
func (p *Project) modernize(docs []document) ([]document, error) {
	var old []string
	for i, d := range docs {
		gvk := d.Object.GroupVersionKind()
		if !isPrerelease(gvk) {
			continue
		}
		var err error
		switch {
		case isCRD(d) && gvk.Version == "v1beta1":
			err = currentCRD(&docs[i])
		case isWebhook(d):
			currentWebhooks(d)
		case gvk.Group == "extensions" && isWorkload(inApps(d)):
			d.Object.SetAPIVersion("apps/v1")
		case slices.Contains(sameFields, gvk.Group) && scheme.Scheme.Recognizes(gvk.GroupKind().WithVersion("v1")),
			gvk.Group == groupAdmission && strings.HasPrefix(gvk.Kind, "ValidatingAdmissionPolicy"):
			d.Object.SetAPIVersion(gvk.Group + "/v1")
		default:
			continue
		}
		if err != nil {
			return nil, d.errorf("converting it to v1: %w; convert it yourself", err)
		}
		old = append(old, d.String())
	}
	if len(old) > 0 {
		p.note("converted to v1, because their version is no longer served: %s", strings.Join(old, ", "))
	}
	return docs, nil
}

// isPrerelease reports whether the version is an alpha or beta version of Kubernetes itself,
// which API servers do not serve by default.
func isPrerelease(gvk schema.GroupVersionKind) bool {
	ours := gvk.Group == groupCRD || gvk.Group == "extensions" || scheme.Scheme.IsGroupRegistered(gvk.Group)
	return ours && (strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta"))
}

// inApps returns a copy of d in the group to which workloads moved.
func inApps(d document) document {
	d.Object = *d.Object.DeepCopy()
	d.Object.SetAPIVersion("apps/v1")
	return d
}

// crdScheme has the versions of CustomResourceDefinition, with their defaults.
var crdScheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
})

// currentCRD converts a CRD from v1beta1. Unknown fields of its objects are kept where
// v1beta1 kept them.
func currentCRD(d *document) error {
	var old apiextensionsv1beta1.CustomResourceDefinition
	data, err := d.Object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, &old)
	}
	if err != nil {
		return err
	}
	crdScheme().Default(&old)
	var hub apiextensions.CustomResourceDefinition
	var current apiextensionsv1.CustomResourceDefinition
	if err := crdScheme().Convert(&old, &hub, nil); err != nil {
		return err
	}
	if err := crdScheme().Convert(&hub, &current, nil); err != nil {
		return err
	}
	keepUnknown := current.Spec.PreserveUnknownFields
	current.Spec.PreserveUnknownFields = false
	for i := range current.Spec.Versions {
		version := &current.Spec.Versions[i]
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
			keepUnknown = true
		}
		structural(version.Schema.OpenAPIV3Schema, keepUnknown)
		atRoot(version.Schema.OpenAPIV3Schema)
	}
	current.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	current.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&current)
	if err != nil {
		return err
	}
	delete(content, "status")
	d.Object.Object = content
	return nil
}

// structural completes a schema for v1, which requires a type for each field and each item. A field
// without a type may have any value. Objects keep unknown fields if the parameter all is set.
func structural(s *apiextensionsv1.JSONSchemaProps, all bool) {
	if s == nil {
		return
	}
	keep := true
	switch {
	case s.Type == "" && isIntOrString(s.AnyOf):
		s.AnyOf, s.XIntOrString = nil, true
	case s.Type == "" && isIntOrString(s.OneOf):
		s.OneOf, s.XIntOrString = nil, true
	case s.Type == "" && (len(s.Properties) > 0 || s.AdditionalProperties != nil):
		s.Type = "object"
	case s.Type == "" && !s.XIntOrString:
		s.XPreserveUnknownFields = &keep
	case s.Type == "array" && s.Items == nil:
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{}}
	}
	if all && s.Type == "object" && s.AdditionalProperties == nil {
		s.XPreserveUnknownFields = &keep
	}
	for name, property := range s.Properties {
		structural(&property, all)
		s.Properties[name] = property
	}
	if s.Items != nil {
		structural(s.Items.Schema, all)
	}
	if s.AdditionalProperties != nil {
		structural(s.AdditionalProperties.Schema, all)
	}
}

// isIntOrString reports whether the alternatives are an integer and a string, and say nothing else.
func isIntOrString(alternatives []apiextensionsv1.JSONSchemaProps) bool {
	var types []string
	for _, a := range alternatives {
		if !reflect.DeepEqual(a, apiextensionsv1.JSONSchemaProps{Type: a.Type}) {
			return false
		}
		types = append(types, a.Type)
	}
	slices.Sort(types)
	return slices.Equal(types, []string{"integer", "string"})
}

// atRoot applies the rules of v1 for the root of a schema. It is an object, and of its metadata, it can only
// restrict the name and generateName.
func atRoot(s *apiextensionsv1.JSONSchemaProps) {
	s.Type = "object"
	metadata, found := s.Properties["metadata"]
	if !found {
		return
	}
	restricted := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, name := range []string{"name", "generateName"} {
		if property, found := metadata.Properties[name]; found {
			restricted[name] = property
		}
	}
	s.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: restricted}
}

// currentWebhooks converts a webhook configuration from v1beta1, whose defaults differ.
func currentWebhooks(d document) {
	d.Object.SetAPIVersion(groupAdmission + "/v1")
	hooks, _ := d.Object.Object["webhooks"].([]any)
	for _, hook := range hooks {
		hook, _ := hook.(map[string]any)
		if hook == nil {
			continue
		}
		for field, value := range map[string]any{
			"failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": int64(30), "admissionReviewVersions": []any{"v1beta1"},
		} {
			if _, ok := hook[field]; !ok {
				hook[field] = value
			}
		}
		if effects, _ := hook["sideEffects"].(string); effects != "NoneOnDryRun" {
			hook["sideEffects"] = "None" // v1 does not accept Unknown, which was the default
		}
	}
}
