package webhooks

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions:
  - {name: v1alpha1, served: false}
  - name: v1
    served: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [port], properties: {port: {type: string, enum: [Kobe]}}}}}}
`

func TestAProbeCreatesAnObjectThatTheRulesCover(t *testing.T) {
	for name, c := range map[string]struct {
		rules  string
		probed bool
	}{
		"its kind":           {`{operations: [CREATE, UPDATE], apiGroups: [sea.example.com], apiVersions: [v1], resources: [ships]}`, true},
		"everything":         {`{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}`, true},
		"only updates":       {`{operations: [UPDATE], apiGroups: [sea.example.com], apiVersions: [v1], resources: [ships]}`, false},
		"only the status":    {`{operations: [CREATE], apiGroups: [sea.example.com], apiVersions: [v1], resources: [ships/status]}`, false},
		"a version unserved": {`{operations: [CREATE], apiGroups: [sea.example.com], apiVersions: [v1alpha1], resources: [ships]}`, false},
		"another kind":       {`{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}`, false},
	} {
		configuration := object(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ships}
webhooks: [{name: default.sea.example.com, rules: [`+c.rules+`]}]`)
		probes, err := Probes([]*unstructured.Unstructured{configuration}, []*unstructured.Unstructured{object(t, crd)}, "sea")
		if err != nil || len(probes) != 1 {
			t.Fatal(probes, err)
		}
		var want *unstructured.Unstructured
		if c.probed {
			want = object(t, "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: koboshi-deploy-probe, namespace: sea}, spec: {port: Kobe}}")
		}
		if diff := cmp.Diff(want, probes[0].object); diff != "" || !probes[0].mutating {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestARefusalByAWebhookIsAnAnswer(t *testing.T) {
	ships := schema.GroupResource{Group: "sea.example.com", Resource: "ships"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Ship"}, "probe", nil)
	for name, c := range map[string]struct {
		err                  error
		mutating, validating state
	}{
		"created":       {nil, answered, answered},
		"denied":        {apierrors.NewForbidden(ships, "probe", errors.New(`admission webhook "v.sea.example.com" denied the request: no port`)), answered, answered},
		"not reached":   {apierrors.NewInternalError(errors.New(`failed calling webhook "v.sea.example.com": connection refused`)), unreachable, unreachable},
		"invalid":       {invalid, answered, unknown}, // the schema is checked between the two
		"no dry run":    {apierrors.NewBadRequest(`admission webhook "v.sea.example.com" does not support dry run`), unknown, unknown},
		"no permission": {apierrors.NewForbidden(ships, "probe", errors.New("User cannot create ships")), unknown, unknown},
		"no API server": {errors.New("dial tcp: connection refused"), unreachable, unreachable},
	} {
		if got := (Probe{mutating: true}).judge(c.err); got != c.mutating {
			t.Errorf("%s: a mutating webhook is %d, want %d", name, got, c.mutating)
		}
		if got := (Probe{}).judge(c.err); got != c.validating {
			t.Errorf("%s: a validating webhook is %d, want %d", name, got, c.validating)
		}
	}
}
