package compat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
)

// within limits the table; usually it takes a few seconds.
const within = 5 * time.Minute

// A row is a change of an API. Its schemas are the properties of spec, as YAML.
type row struct {
	name     string
	old, new string
	// edit changes the new CRD, or both.
	edit func(old, updated *apiextensionsv1.CustomResourceDefinition)
	// sample is the spec of a sample, as YAML.
	sample string
	// breaking lists the rules and fields of the breaking findings, and whether stored objects
	// stay usable because the API server ratchets. Empty means that the change is safe.
	breaking []string
	// action is an action that must be among the effects.
	action string
	// hidden means that a comparison of the schemas alone does not call the change breaking.
	hidden bool
}

var table = []row{
	// Safe changes.
	{name: "a new optional field", old: `{a: {type: string}}`, new: `{a: {type: string}, b: {type: integer}}`},
	{name: "a new optional field with a default", old: `{a: {type: string}}`, new: `{a: {type: string}, b: {type: integer, default: 3}}`},
	{name: "a new required field with a default", old: `{o: {type: object, properties: {c: {type: string}}}}`, new: `{o: {type: object, required: [b], properties: {b: {type: integer, default: 3}, c: {type: string}}}}`},
	{name: "a new enum value", old: `{a: {type: string, enum: [x, w]}}`, new: `{a: {type: string, enum: [x, w, z]}}`},
	{name: "a removed enum", old: `{a: {type: string, enum: [x, w]}}`, new: `{a: {type: string}}`},
	{name: "a raised maximum", old: `{a: {type: integer, maximum: 5}}`, new: `{a: {type: integer, maximum: 9}}`},
	{name: "a lowered minLength", old: `{a: {type: string, minLength: 5}}`, new: `{a: {type: string, minLength: 2}}`},
	{name: "a new description", old: `{a: {type: string, description: old}}`, new: `{a: {type: string, description: new}}`},
	{name: "an optional field that was required", old: `{a: {type: object, required: [b], properties: {b: {type: string}}}}`, new: `{a: {type: object, properties: {b: {type: string}}}}`},
	{name: "a removed CEL rule", old: `{a: {type: integer, x-kubernetes-validations: [{rule: self < 10}]}}`, new: `{a: {type: integer}}`},
	{name: "a relaxed CEL rule", old: `{a: {type: integer, x-kubernetes-validations: [{rule: self < 10}]}}`, new: `{a: {type: integer, x-kubernetes-validations: [{rule: self < 20}]}}`},
	{name: "a relaxed pattern", old: `{a: {type: string, pattern: "^[a-z]+$"}}`, new: `{a: {type: string, pattern: "^[a-z0-9]+$"}}`},
	{name: "a new CEL rule about a new field", old: `{a: {type: string}}`, new: `{a: {type: string}, b: {type: integer, x-kubernetes-validations: [{rule: self < 20}]}}`},
	{name: "a field that is now nullable", old: `{a: {type: string}}`, new: `{a: {type: string, nullable: true}}`},
	{name: "a new printer column", old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: func(_, updated *apiextensionsv1.CustomResourceDefinition) {
		updated.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "A", Type: "string", JSONPath: ".spec.a"}}
	}},
	{name: "a new version with the same schema", old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: addVersion(`{a: {type: string}}`, false)},
	{name: "a new storage version with the same schema", old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: addVersion(`{a: {type: string}}`, true)},
	{name: "a new storage version with another field", old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: addVersion(`{a: {type: string}, b: {type: string}}`, true)},

	// Changes that the schemas show.
	{name: "a removed field", old: `{a: {type: string}, b: {type: string}}`, new: `{a: {type: string}}`, breaking: []string{"field-removed spec.b"}, action: "read"},
	{name: "a removed enum value", old: `{a: {type: string, enum: [x, w]}}`, new: `{a: {type: string, enum: [x]}}`, breaking: []string{"enum-value-removed spec.a usable"}, action: "create"},
	{name: "a lowered maximum", old: `{a: {type: integer}}`, new: `{a: {type: integer, maximum: 5}}`, breaking: []string{"limit-added spec.a usable"}, action: "create"},
	{name: "a lowered maxLength in a set", old: `{a: {type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 9}}}`, new: `{a: {type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 3}}}`,
		breaking: []string{"limit-tightened spec.a[*] usable"}, action: "create"},
	{name: "a new required field", old: `{a: {type: object, properties: {b: {type: string}}}}`, new: `{a: {type: object, required: [c], properties: {b: {type: string}, c: {type: string}}}}`,
		breaking: []string{"required-added spec.a.c usable"}, action: "create"},
	{name: "another type", old: `{a: {type: integer}}`, new: `{a: {type: string}}`, breaking: []string{"type-changed spec.a usable"}, action: "create"},
	{name: "a removed default", old: `{a: {type: string, default: x}}`, new: `{a: {type: string}}`, breaking: []string{"default-removed spec.a usable"}, action: "create"},
	{name: "another default", old: `{a: {type: string, default: x}}`, new: `{a: {type: string, default: w}}`, breaking: []string{"default-changed spec.a usable"}, action: "create"},
	{name: "a default for an old field", old: `{a: {type: string}}`, new: `{a: {type: string, default: w}}`, breaking: []string{"default-added spec.a"}, action: "read"},
	{name: "null that is not accepted", old: `{a: {type: string, nullable: true}}`, new: `{a: {type: string}}`, breaking: []string{"nullable-removed spec.a"}, action: "create"},
	{name: "an atomic list that becomes a set", old: `{a: {type: array, items: {type: string}}}`, new: `{a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}`,
		breaking: []string{"list-type-changed spec.a usable"}, action: "create"},
	{name: "an atomic list that becomes a map", old: `{a: {type: array, items: {type: object, required: [k], properties: {k: {type: string}}}}}`,
		new:      `{a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}}`,
		breaking: []string{"list-type-changed spec.a usable"}, action: "create"},
	{name: "unknown fields that are pruned", old: `{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, new: `{a: {type: object, properties: {b: {type: string}}}}`,
		breaking: []string{"unknown-fields-pruned spec.a"}, action: "read"},
	{name: "a new pattern", old: `{a: {type: string}}`, new: `{a: {type: string, pattern: "^[a-z]+$"}}`, breaking: []string{"pattern-added spec.a usable"}, action: "create"},
	{name: "a version that is not served", old: `{a: {type: string}}`, new: `{a: {type: string}}`, breaking: []string{"version-not-served "}, action: "read", edit: func(old, updated *apiextensionsv1.CustomResourceDefinition) {
		addVersion(`{a: {type: string}}`, true)(nil, old)
		addVersion(`{a: {type: string}}`, true)(nil, updated)
		updated.Spec.Versions[0].Served = false
	}},
	{name: "a removed version that is stored", old: `{a: {type: string}}`, new: `{a: {type: string}}`, breaking: []string{"version-removed "}, action: "update of the CRD", edit: func(_, updated *apiextensionsv1.CustomResourceDefinition) {
		updated.Spec.Versions[0].Name = "v2"
	}},
	{name: "another scope", old: `{a: {type: string}}`, new: `{a: {type: string}}`, breaking: []string{"scope-changed "}, action: "update of the CRD", edit: func(_, updated *apiextensionsv1.CustomResourceDefinition) {
		updated.Spec.Scope = apiextensionsv1.ClusterScoped
	}},
	{name: "a removed subresource status", old: `{a: {type: string}}`, new: `{a: {type: string}}`, breaking: []string{"status-subresource-removed status"}, action: "update of the status", edit: func(old, _ *apiextensionsv1.CustomResourceDefinition) {
		old.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}},

	// Changes that a comparison of the schemas does not call breaking.
	{name: "a new version without a field", hidden: true, old: `{a: {type: string}, b: {type: string}}`, new: `{a: {type: string}, b: {type: string}}`, edit: addVersion(`{a: {type: string}}`, false),
		breaking: []string{"content-lost spec.b"}, action: "update through v2"},
	{name: "a new storage version with a renamed field", hidden: true, old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: addVersion(`{renamed: {type: string}}`, true),
		breaking: []string{"content-lost spec.a"}, action: "create"},
	{name: "a default only in the new storage version", hidden: true, old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: addVersion(`{a: {type: string, default: x}}`, true),
		breaking: []string{"content-changed spec.a"}, action: "create"},
	{name: "a rule that forbids changes", hidden: true, old: `{a: {type: string}}`, new: `{a: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}`,
		breaking: []string{"cel-rule-added spec.a usable"}, action: "change of a field"},
	{name: "a rule that compares two fields", hidden: true, old: `{a: {type: object, properties: {min: {type: integer}, max: {type: integer}}}}`,
		new:      `{a: {type: object, x-kubernetes-validations: [{rule: "!has(self.min) || !has(self.max) || self.min <= self.max"}], properties: {min: {type: integer}, max: {type: integer}}}}`,
		breaking: []string{"cel-rule-added spec.a usable"}, action: "create"},
	{name: "a stricter CEL rule", hidden: true, old: `{a: {type: integer, x-kubernetes-validations: [{rule: self < 20}]}}`, new: `{a: {type: integer, x-kubernetes-validations: [{rule: self < 10}]}}`,
		breaking: []string{"cel-rule-added spec.a usable"}, action: "create"},
	{name: "a new field where unknown fields were kept", hidden: true, old: `{a: {type: object, x-kubernetes-preserve-unknown-fields: true}}`,
		new:      `{a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: integer}}}}`,
		breaking: []string{"content-lost spec.a.b.kept", "request-refused spec.a.b usable"}, action: "create"},
	{name: "a default that fills a limited map", hidden: true, old: `{a: {type: object, maxProperties: 2, properties: {b: {type: string}, c: {type: string}}}}`,
		new:      `{a: {type: object, maxProperties: 2, properties: {b: {type: string}, c: {type: string}, d: {type: string, default: x}}}}`,
		breaking: []string{"request-refused spec.a usable"}, action: "create"},
	{name: "a new subresource status", hidden: true, old: `{a: {type: string}}`, new: `{a: {type: string}}`, edit: func(_, updated *apiextensionsv1.CustomResourceDefinition) {
		updated.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}, breaking: []string{"content-lost status usable"}, action: "create"},
	{name: "a stricter pattern that a sample violates", hidden: true, old: `{a: {type: string, pattern: "^[a-z0-9]+$"}}`, new: `{a: {type: string, pattern: "^[a-z]+$"}}`, sample: `{a: port8080}`,
		breaking: []string{"pattern-changed spec.a usable"}, action: "create"},
	{name: "a format", hidden: true, old: `{a: {type: string}}`, new: `{a: {type: string, format: date-time}}`, breaking: []string{"format-changed spec.a usable"}, action: "create"},
}

// addVersion adds the version v2 to the new CRD.
func addVersion(spec string, storage bool) func(_, updated *apiextensionsv1.CustomResourceDefinition) {
	return func(_, updated *apiextensionsv1.CustomResourceDefinition) {
		added := *updated.Spec.Versions[0].DeepCopy()
		added.Name, added.Schema = "v2", schemaOf(spec)
		updated.Spec.Versions[0].Storage, added.Storage = !storage, storage
		updated.Spec.Versions = append(updated.Spec.Versions, added)
	}
}

// schemaOf returns a schema whose spec has the properties.
func schemaOf(properties string) *apiextensionsv1.CustomResourceValidation {
	text := fmt.Sprintf(`{openAPIV3Schema: {type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object},
  spec: {type: object, properties: %s}, status: {type: object, properties: {phase: {type: string}}}}}}`, properties)
	out := &apiextensionsv1.CustomResourceValidation{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		panic(err)
	}
	return out
}

// crdOf returns a CRD with a group of its own.
func crdOf(number int, spec string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group = fmt.Sprintf("row%d.example.com", number)
	crd.Name = "things." + crd.Spec.Group
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: schemaOf(spec)}}
	return crd
}

// input returns the CRDs and samples of a row.
func (r row) input(number int) Input {
	old, updated := crdOf(number, r.old), crdOf(number, r.new)
	if r.edit != nil {
		r.edit(old, updated)
	}
	in := Input{Old: []Definition{{"old.yaml", old}}, New: []Definition{{"new.yaml", updated}}}
	if r.sample != "" {
		object := map[string]any{}
		text := fmt.Sprintf("{apiVersion: %s/v1, kind: Thing, metadata: {name: sample}, spec: %s}", old.Spec.Group, r.sample)
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			panic(err)
		}
		in.Samples = []Sample{{"sample.yaml", &unstructured.Unstructured{Object: object}}}
	}
	return in
}

func rulesOf(findings []Finding) (rules []string) {
	for _, f := range findings {
		if f.Severity == Breaking {
			rule := f.Rule + " " + f.Field
			if f.StoredUsable {
				rule += " usable"
			}
			rules = append(rules, rule)
		}
	}
	slices.Sort(rules)
	return rules
}

func TestSafeAndUnsafeChangesAreToldApart(t *testing.T) {
	config, ctx := plane(t)
	for i, r := range table {
		t.Run(r.name, func(t *testing.T) {
			in := r.input(i)
			report, err := Check(ctx, config, in)
			if err != nil {
				t.Fatal(err)
			}
			if got := rulesOf(report.Findings); !slices.Equal(got, r.breaking) {
				t.Errorf("breaking: %q, want %q", got, r.breaking)
			}
			if r.hidden && len(rulesOf(Compare(in))) > 0 {
				t.Errorf("the comparison alone finds %q", rulesOf(Compare(in)))
			}
			r.checkEffects(t, report)
			if len(report.Unchecked) > 0 {
				t.Errorf("unchecked: %q", report.Unchecked)
			}
			if t.Failed() || testing.Verbose() {
				t.Log(textOf(report))
			}
		})
	}
}

// checkEffects checks that the API server has shown the breaking findings.
func (r row) checkEffects(t *testing.T, report *Report) {
	t.Helper()
	var actions []string
	for _, f := range report.Findings {
		for _, e := range f.Effects {
			actions = append(actions, e.Action)
		}
	}
	if r.action != "" && !slices.Contains(actions, r.action) {
		t.Errorf("actions: %q, want %q among them", actions, r.action)
	}
}

func textOf(report *Report) string {
	var out strings.Builder
	for _, f := range report.Findings {
		_, _ = fmt.Fprintf(&out, "%s %s %s: %s (usable %t)\n", f.Severity, f.Rule, f.Field, f.Message, f.StoredUsable)
		for _, e := range f.Effects {
			_, _ = fmt.Fprintf(&out, "    %s: %s; %v\n", e.Action, e.Message, e.Object["spec"])
		}
	}
	_, _ = fmt.Fprintf(&out, "%d objects", report.Objects)
	return out.String()
}

// plane starts the plane of this process. Only one test can do this.
func plane(t *testing.T) (*rest.Config, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return config, ctx
}
