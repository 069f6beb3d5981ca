package olm

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
)

// version returns the ClusterServiceVersion: the base, with everything that can be computed.
func (m *maker) version() (map[string]any, error) {
	csv := map[string]any{}
	if m.Base != nil {
		csv = runtime.DeepCopyJSON(m.Base)
	}
	metadata, spec := child(csv, "metadata"), child(csv, "spec")
	csv["apiVersion"], csv["kind"] = "operators.coreos.com/v1alpha1", "ClusterServiceVersion"
	metadata["name"], metadata["namespace"] = m.name(), "placeholder" // OLM replaces the namespace
	spec["version"] = m.Version
	spec["install"] = m.strategy()
	spec["installModes"] = anyList(m.modes())
	spec["relatedImages"] = m.relatedImages()
	child(spec, "customresourcedefinitions")["owned"] = m.owned()
	delete(spec, "webhookdefinitions")
	if len(m.webhooks) > 0 {
		spec["webhookdefinitions"] = anyList(m.webhooks)
	}
	m.setDefaults(spec)
	m.setLabels(child(metadata, "labels"))
	return csv, m.annotate(child(metadata, "annotations"))
}

// child returns a mapping in another one, and makes it if there is none.
func child(of map[string]any, field string) map[string]any {
	content, ok := of[field].(map[string]any)
	if !ok {
		content = map[string]any{}
		of[field] = content
	}
	return content
}

// setDefaults sets what a base should have, from what the project says.
func (m *maker) setDefaults(spec map[string]any) {
	title := Title(m.Package)
	// operator-sdk's bases have an icon without content, which catalogs refuse.
	icons := listAt(spec, "icon")
	if slices.ContainsFunc(icons, func(icon map[string]any) bool { return textAt(icon, "base64data") == "" }) {
		delete(spec, "icon")
	}
	defaults := map[string]any{
		"displayName": title, "maturity": m.maturity(), "minKubeVersion": m.minKube(), "keywords": []any{m.Package},
	}
	if kinds := m.kinds(); len(kinds) > 0 {
		defaults["description"] = fmt.Sprintf("%s manages objects of these kinds: %s.", title, strings.Join(kinds, ", "))
	}
	if m.Repository != "" {
		owner := m.Repository[:strings.LastIndex(m.Repository, "/")]
		defaults["links"] = []any{map[string]any{"name": "Source code", "url": m.Repository}}
		defaults["provider"] = map[string]any{"name": owner[strings.LastIndex(owner, "/")+1:], "url": owner}
	}
	for field, value := range defaults {
		if spec[field] == nil || spec[field] == "" {
			spec[field] = value
		}
	}
}

// kinds returns the kinds of the CRDs.
func (m *maker) kinds() (kinds []string) {
	for _, o := range m.held {
		if groupKind(o) == crdKind {
			kinds = append(kinds, textAt(o.Object, "spec", "names", "kind"))
		}
	}
	return kinds
}

// maturity returns how stable the operator is: like the least stable version in which the objects of
// a CRD are stored.
func (m *maker) maturity() string {
	least := "v1"
	for _, o := range m.held {
		for _, v := range listAt(o.Object, "spec", "versions") {
			if name := textAt(v, "name"); v["storage"] == true && groupKind(o) == crdKind && version.CompareKubeAwareVersionStrings(name, least) < 0 {
				least = name
			}
		}
	}
	for _, stage := range []string{"alpha", "beta"} {
		if strings.Contains(least, stage) {
			return stage
		}
	}
	return "stable"
}

// minKube returns the oldest version of Kubernetes that has what the CRDs need: apiextensions/v1, and
// rules in CEL, which older versions drop without an error.
func (m *maker) minKube() string {
	for _, o := range m.held {
		if groupKind(o) == crdKind && hasField(o.Object, "x-kubernetes-validations") {
			return "1.25.0"
		}
	}
	return "1.16.0"
}

func hasField(part any, field string) bool {
	switch part := part.(type) {
	case []any:
		return slices.ContainsFunc(part, func(item any) bool { return hasField(item, field) })
	case map[string]any:
		for name, item := range part {
			if name == field || hasField(item, field) {
				return true
			}
		}
	}
	return false
}

// setLabels names the platforms of the image. Catalogs show an operator only for these.
func (m *maker) setLabels(labels map[string]any) {
	for _, platform := range m.Platforms {
		os, rest, _ := strings.Cut(platform, "/")
		architecture, _, _ := strings.Cut(rest, "/")
		labels["operatorframework.io/os."+os] = "supported"
		labels["operatorframework.io/arch."+architecture] = "supported"
	}
}

// annotate sets the annotations that catalogs read.
func (m *maker) annotate(annotations map[string]any) error {
	examples, err := m.examples()
	if err != nil {
		return err
	}
	annotations["alm-examples"] = examples
	annotations["createdAt"] = m.Created.UTC().Format(time.RFC3339)
	annotations["containerImage"] = m.Image
	if annotations["capabilities"] == nil {
		annotations["capabilities"] = "Basic Install"
	}
	if m.Repository != "" && annotations["repository"] == nil {
		annotations["repository"] = m.Repository
	}
	if m.namespace != "" && annotations["operatorframework.io/suggested-namespace"] == nil {
		annotations["operatorframework.io/suggested-namespace"] = m.namespace
	}
	if m.space == nil || len(m.space.GetLabels())+len(m.space.GetAnnotations()) == 0 {
		return nil
	}
	// The console of OpenShift creates the namespace with its labels from this annotation.
	template, err := json.Marshal(m.space.Object)
	annotations["operatorframework.io/suggested-namespace-template"] = string(template)
	return err
}

// compareTexts notes objects that name the namespace of the operator, in which a person may not install
// it, or a Secret that does not exist with OLM.
func (m *maker) compareTexts() {
	all := slices.Concat(m.deployments, m.held)
	if m.namespace != "" {
		// A namespace is a word of its own, or a part of a host name.
		word := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(m.namespace) + `($|[^a-z0-9.-]|\.svc)`)
		if named := naming(all, word); len(named) > 0 {
			m.note("install the bundle in the namespace %s, because these objects name it: %s", m.namespace, titles(named))
		}
	}
	for _, secret := range slices.Concat(m.certified.webhooks, m.certified.others) {
		if named := naming(all, regexp.MustCompile("^"+regexp.QuoteMeta(secret)+"$")); len(named) > 0 {
			m.note("the Secret %s does not exist with OLM, and these objects name it: %s", secret, titles(named))
		}
	}
}

// naming returns the objects that have a text outside of their own metadata that matches. CRDs are
// left out: OLM replaces the Service of their conversion, and their other texts are for people.
func naming(objects []unstructured.Unstructured, text *regexp.Regexp) (all []unstructured.Unstructured) {
	for _, o := range objects {
		content := maps.Clone(o.Object)
		delete(content, "metadata")
		if groupKind(o) != crdKind && hasText(content, text) {
			all = append(all, o)
		}
	}
	return all
}

func hasText(part any, word *regexp.Regexp) bool {
	switch part := part.(type) {
	case string:
		return word.MatchString(part)
	case []any:
		return slices.ContainsFunc(part, func(item any) bool { return hasText(item, word) })
	case map[string]any:
		for _, item := range part {
			if hasText(item, word) {
				return true
			}
		}
	}
	return false
}
