package project_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// kubebuilder2 changes the project in testdata to the syntax of 2019: bases, and names of
// files in patches.
var kubebuilder2 = map[string]string{
	"config/default/kustomization.yaml": `namespace: boats-system
namePrefix: boats-
commonLabels: {old: "yes"}
bases: [../crd, ../rbac, ../manager, ../webhook]
patches:
- args_patch.yaml
vars:
- name: SERVICE_NAME
  objref: {kind: Service, version: v1, name: webhook-service}
`,
	"config/default/args_patch.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller-manager, namespace: system}
spec:
  template:
    spec:
      containers:
      - name: manager
        args: [--leader-elect, --fleet=$(SERVICE_NAME)]
`,
	"config/manager/kustomization.yaml": `resources: [manager.yaml]
imageTags: [{name: controller, newTag: v2}]
patches: [label_patch.yaml]
patchesJson6902:
- target: {group: apps, version: v1, kind: Deployment, name: controller-manager}
  path: tier_patch.yaml
configMapGenerator:
- {name: fleet, literals: [name=north]}
`,
	"config/manager/tier_patch.yaml":  "- {op: replace, path: /spec/template/metadata/labels/tier, value: front}\n",
	"config/manager/label_patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: controller-manager, namespace: system, labels: {patched: \"yes\"}}\n",
	"PROJECT":                         "version: \"2\"\ndomain: example.com\nrepo: example.com/boats\nresources: [{group: sea, kind: Captain, version: v1}]\n",
	"main.go":                         usesRuntime, "cmd/main.go": "",
}

func TestOldKustomizationsAreReadAsOldKustomizeReadThem(t *testing.T) {
	o := project.Options{Dir: boats(t, kubebuilder2), Command: []string{"sh"}}
	p := load(t, o)
	if want := (subject.ServiceAccount{Namespace: "boats-system", Name: "boats-controller-manager"}); p.Subject.Identity != want || len(p.Subject.Roles) != 2 {
		t.Errorf("identity %v, %d roles", p.Subject.Identity, len(p.Subject.Roles))
	}
	if !slices.Contains(p.Subject.Env, "TIER=front") {
		t.Errorf("patchesJson6902 was not applied: %q", p.Subject.Env)
	}
	for _, o := range p.Subject.Install {
		if o.GetKind() == "ClusterRole" && o.GetLabels()["old"] != "yes" {
			t.Errorf("commonLabels were not applied to %s: %v", o.GetName(), o.GetLabels())
		}
	}
	o.Command = nil
	if p = load(t, o); p.Main != "." {
		t.Errorf("main is %q", p.Main)
	}
}

func TestAnOldListOfPatchesIsApplied(t *testing.T) {
	o := project.Options{Dir: boats(t, kubebuilder2), Command: []string{"sh"}, Manifests: []string{"config/default"}}
	o.Deployment = "boats-system/boats-controller-manager"
	p, err := project.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Build(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.Subject.Command, "--fleet=boats-webhook-service") {
		t.Errorf("the patch of the arguments, or its variable, was not applied: %q", p.Subject.Command)
	}
}

func TestTheLayoutOfOldOperatorSDKIsRead(t *testing.T) {
	crd := strings.NewReplacer("captains", "ships", "Captain", "Ship").Replace(otherCRD)
	p := load(t, project.Options{Dir: tree(t, map[string]string{
		"go.mod": "module example.com/ships\n", "cmd/manager/main.go": usesRuntime,
		"deploy/crds/ships_crd.yaml":              crd,
		"deploy/crds/sea_v1_ship_cr.yaml":         "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: example}\n",
		"deploy/olm-catalog/manifests/other.yaml": "no: object\n",
		"deploy/service_account.yaml":             "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ships}\n",
		"deploy/role.yaml":                        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: ships}\n",
		"deploy/role_binding.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: ships}\n" +
			"subjects: [{kind: ServiceAccount, name: ships}]\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ships}\n",
		"deploy/operator.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: ships}
spec:
  template:
    spec:
      serviceAccountName: ships
      containers:
      - name: ships
        image: REPLACE_IMAGE
        command: [ships]
        env:
        - {name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
`,
	})})
	if p.Main != "cmd/manager" {
		t.Errorf("main is %q", p.Main)
	}
	if want := (subject.ServiceAccount{Namespace: "default", Name: "ships"}); p.Subject.Identity != want || len(p.Subject.Roles) != 1 {
		t.Errorf("identity %v, %d roles", p.Subject.Identity, len(p.Subject.Roles))
	}
	if len(p.Samples) != 1 || p.Samples[0].File != "deploy/crds/sea_v1_ship_cr.yaml" {
		t.Errorf("samples: %v", p.Samples)
	}
	if diff := cmp.Diff([]string{"Ship.sea.example.com"}, p.Subject.Primary); diff != "" {
		t.Errorf("primary, -want +got:\n%s", diff)
	}
}

func TestObjectsOfOldVersionsAreConverted(t *testing.T) {
	p := load(t, project.Options{Command: []string{"sh"}, Dir: boats(t, map[string]string{
		"config/default/kustomization.yaml": "",
		"config/crd/kustomization.yaml":     "",
		"config/crd/bases/ships.yaml": `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  version: v1
  names: {kind: Ship, plural: ships}
  subresources: {status: {}}
  validation:
    openAPIV3Schema: {properties: {spec: {properties: {masts: {type: integer}}}}}
`,
		"config/crd/bases/rafts.yaml": `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: rafts.sea.example.com}
spec: {group: sea.example.com, version: v1, names: {kind: Raft, plural: rafts}}
`,
		"config/rbac/kustomization.yaml":      "",
		"config/rbac/role.yaml":               "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: ClusterRole\nmetadata: {name: manager-role}\n",
		"config/rbac/psp.yaml":                "apiVersion: networking.k8s.io/v1beta1\nkind: Ingress\nmetadata: {name: x}\n",
		"config/webhook/kustomization.yaml":   "",
		"config/webhook/kustomizeconfig.yaml": "",
		"config/webhook/manifests.yaml": `apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingWebhookConfiguration
metadata: {name: hooks}
webhooks: [{name: a.example.com, clientConfig: {service: {name: webhook-service, namespace: system}}}]
`,
	})})
	wantNotes(t, p, "converted to v1, because their version is no longer served", "left out, because the plane does not serve their kinds: Ingress x")
	found := 0
	for _, o := range p.Subject.Install {
		if strings.Contains(o.GetAPIVersion(), "beta") {
			t.Errorf("%s %s is %s", o.GetKind(), o.GetName(), o.GetAPIVersion())
		}
		if o.GetKind() != "CustomResourceDefinition" || o.GetName() == "captains.sea.example.com" {
			continue
		}
		found++
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		version, _ := versions[0].(map[string]any)
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if schema["type"] != "object" || schema["x-kubernetes-preserve-unknown-fields"] != true || version["storage"] != true {
			t.Errorf("%s: version %v", o.GetName(), version)
		}
		_, status, _ := unstructured.NestedMap(version, "subresources", "status")
		masts, _, _ := unstructured.NestedString(schema, "properties", "spec", "properties", "masts", "type")
		if o.GetName() == "ships.sea.example.com" && (!status || masts != "integer") {
			t.Errorf("ships: version %v", version)
		}
	}
	if found != 2 {
		t.Errorf("%d CRDs were converted: %q", found, names(p.Subject.Install))
	}
	hooks, _, _ := unstructured.NestedSlice(p.Subject.Webhooks[0].Object, "webhooks")
	want := map[string]any{
		"name": "a.example.com", "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": int64(30), "sideEffects": "None",
		"admissionReviewVersions": []any{"v1beta1"}, "clientConfig": map[string]any{"service": map[string]any{"name": "webhook-service", "namespace": "system"}},
	}
	if diff := cmp.Diff(want, hooks[0]); diff != "" {
		t.Errorf("webhook, -want +got:\n%s", diff)
	}
}

func TestOldDefinitionsBecomeStructural(t *testing.T) {
	p := load(t, project.Options{Command: []string{"sh"}, Dir: boats(t, map[string]string{
		"config/default/kustomization.yaml": "",
		"config/crd/kustomization.yaml":     "",
		"config/crd/bases/ships.yaml": `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  version: v1
  names: {kind: Ship, plural: ships}
  validation:
    openAPIV3Schema:
      properties:
        metadata: {type: object, properties: {name: {type: string, maxLength: 20}, labels: {type: object}}}
        spec:
          properties:
            port: {anyOf: [{type: integer}, {type: string}]}
            berth: {oneOf: [{type: string}, {type: integer}]}
            limits: {additionalProperties: {anyOf: [{type: integer}, {type: string}], pattern: "^[0-9]+$"}}
            draft: {anyOf: [{type: integer}, {type: string}], oneOf: [{pattern: "^[0-9]$"}, {pattern: m$}]}
            cargo: {description: Anything.}
            crew: {type: array}
            sails: {type: array, items: {description: Anything.}}
            hull: {properties: {metadata: {type: object}}}
`,
	})})
	i := slices.IndexFunc(p.Subject.Install, func(o unstructured.Unstructured) bool { return o.GetName() == "ships.sea.example.com" })
	if i < 0 {
		t.Fatalf("installed: %q", names(p.Subject.Install))
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.Subject.Install[i].Object, &crd); err != nil {
		t.Fatal(err)
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root, &internal, nil); err != nil {
		t.Fatal(err)
	}
	s, err := schema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range schema.ValidateStructural(nil, s) {
		t.Error(err)
	}
	if name := root.Properties["metadata"].Properties["name"]; name.MaxLength == nil || *name.MaxLength != 20 {
		t.Errorf("the limit of the name is lost: %+v", name)
	}
	spec := root.Properties["spec"].Properties
	if len(spec["draft"].OneOf) != 2 {
		t.Errorf("the patterns of draft are lost: %+v", spec["draft"])
	}
	for field, value := range map[string]apiextensionsv1.JSONSchemaProps{
		"port": spec["port"], "draft": spec["draft"], "berth": spec["berth"], "limits": *spec["limits"].AdditionalProperties.Schema,
	} {
		if !value.XIntOrString {
			t.Errorf("%s is %+v", field, value)
		}
	}
}
