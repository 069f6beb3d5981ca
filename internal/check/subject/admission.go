package subject

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Change describes the properties of a write to the API server on which the rules of webhooks
// depend.
type Change struct {
	Kind        schema.GroupVersionKind
	Subresource string
	Namespace   string // empty if the object is cluster-scoped, or if the namespace is unknown
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
}

// Refused reports whether the API server refuses a change while the controller is down,
// because it would have to call one of the controller's webhooks. If a webhook has
// selectors or conditions, Refused assumes that they select the object.
func (s *Subject) Refused(c Change) bool {
	return s.reviewed(c, s.resource(c.Kind)) || s.converted(c.Kind)
}

// Reviewed reports whether the API server refuses a request of the controller while the controller's
// admission webhooks are down. As in Refused, selectors and conditions count as if they select the
// object.
func (s *Subject) Reviewed(call *trace.Call) bool {
	c := Change{Kind: schema.GroupVersionKind{Group: call.Target.Group, Version: call.Target.Version}, Subresource: call.Target.Subresource, Namespace: call.Target.Namespace}
	switch call.Verb {
	case "create":
		c.Operation = "CREATE"
	case "delete", "deletecollection":
		c.Operation = "DELETE"
	case "patch", "update":
		c.Operation = "UPDATE"
		if call.Code == http.StatusCreated { // an apply of an object that did not exist
			c.Operation = "CREATE"
		}
	default:
		return false
	}
	return s.reviewed(c, call.Target.Resource)
}

// reviewed reports whether a webhook without whose answer the API server refuses a change covers the
// change of a resource.
func (s *Subject) reviewed(c Change, resource string) bool {
	for _, config := range s.Webhooks {
		webhooks, _ := config.Object["webhooks"].([]any)
		for _, w := range webhooks {
			webhook, _ := w.(map[string]any)
			rules, _ := webhook["rules"].([]any)
			if webhook["failurePolicy"] != "Ignore" && slices.ContainsFunc(rules, func(r any) bool { return matches(r, c, resource) }) {
				return true
			}
		}
	}
	return false
}

// MutatesUnlessDown reports whether a webhook changes objects, but the API server accepts them without this
// change while the controller is down.
func (s *Subject) MutatesUnlessDown() bool {
	return slices.ContainsFunc(s.Webhooks, func(config unstructured.Unstructured) bool {
		webhooks, _ := config.Object["webhooks"].([]any)
		return config.GetKind() == "MutatingWebhookConfiguration" && slices.ContainsFunc(webhooks, func(w any) bool {
			webhook, _ := w.(map[string]any)
			return webhook["failurePolicy"] == "Ignore"
		})
	})
}

// resource returns the plural name of a kind, from the controller's CRDs or by Kubernetes'
// usual rule.
func (s *Subject) resource(kind schema.GroupVersionKind) string {
	if crd := s.definition(kind.GroupKind()); crd != nil {
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		return plural
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

func (s *Subject) definition(kind schema.GroupKind) *unstructured.Unstructured {
	for i := range s.Install {
		crd := &s.Install[i]
		if crd.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if group == kind.Group && name == kind.Kind {
			return crd
		}
	}
	return nil
}

// converted reports whether a webhook has to convert objects of this version to the version
// in which they are stored.
func (s *Subject) converted(kind schema.GroupVersionKind) bool {
	crd := s.definition(kind.GroupKind())
	if crd == nil {
		return false
	}
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return strategy == "Webhook" && !slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		return version["name"] == kind.Version && version["storage"] == true
	})
}

// matches applies one rule of a webhook. It ignores the versions of the rule, because by
// default the API server also converts the object to a version that the rule names.
func matches(r any, c Change, resource string) bool {
	rule, _ := r.(map[string]any)
	has := func(field string, wanted ...string) bool {
		values, _, _ := unstructured.NestedStringSlice(rule, field)
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(wanted, v) })
	}
	resources := []string{"*", resource}
	if c.Subresource != "" {
		resources = []string{resource + "/" + c.Subresource, resource + "/*", "*/" + c.Subresource}
	}
	resources = append(resources, "*/*")
	scope, _ := rule["scope"].(string)
	return has("apiGroups", "*", c.Kind.Group) && has("operations", "*", strings.ToUpper(c.Operation)) && has("resources", resources...) &&
		(scope != "Cluster" || c.Namespace == "")
}
