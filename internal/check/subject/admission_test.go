package subject

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func objects(t *testing.T, texts ...string) (all []unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

const mice = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: mice.x.dev},
  spec: {group: x.dev, names: {kind: Mouse, plural: mice}, conversion: {strategy: Webhook},
  versions: [{name: v1, storage: false}, {name: v2, storage: true}]}}`

func TestChangeIsRefusedOnlyIfAWebhookCoversIt(t *testing.T) {
	rule := func(fields string) string {
		return `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x}, webhooks: [` + fields + `]}`
	}
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	mouse := schema.GroupVersionKind{Group: "x.dev", Version: "v2", Kind: "Mouse"}
	update := Change{Kind: mouse, Operation: "UPDATE", Namespace: "default"}
	for name, test := range map[string]struct {
		webhook string
		change  Change
		want    bool
	}{
		"its kind":             {`{rules: [{apiGroups: [x.dev], apiVersions: [v1], resources: [mice], operations: [CREATE, UPDATE]}]}`, update, true},
		"any kind":             {`{rules: [{apiGroups: ["*"], resources: ["*"], operations: ["*"]}]}`, update, true},
		"another kind":         {`{rules: [{apiGroups: [x.dev], resources: [cats], operations: ["*"]}]}`, update, false},
		"another group":        {`{rules: [{apiGroups: [y.dev], resources: [mice], operations: ["*"]}]}`, update, false},
		"another operation":    {`{rules: [{apiGroups: [x.dev], resources: [mice], operations: [DELETE]}]}`, update, false},
		"the second webhook":   {`{rules: []}, {rules: [{apiGroups: [x.dev], resources: [mice], operations: [UPDATE]}]}`, update, true},
		"failures are ignored": {`{failurePolicy: Ignore, rules: [{apiGroups: [x.dev], resources: [mice], operations: [UPDATE]}]}`, update, false},
		"a selector":           {`{objectSelector: {matchLabels: {a: b}}, rules: [{apiGroups: [x.dev], resources: [mice], operations: [UPDATE]}]}`, update, true},
		"cluster-scoped only":  {`{rules: [{apiGroups: [x.dev], resources: [mice], operations: [UPDATE], scope: Cluster}]}`, update, false},
		"a built-in kind":      {`{rules: [{apiGroups: [""], resources: [pods], operations: [CREATE]}]}`, Change{Kind: pods, Operation: "CREATE"}, true},
		"not its subresource":  {`{rules: [{apiGroups: [""], resources: [pods, "*"], operations: ["*"]}]}`, Change{Kind: pods, Operation: "UPDATE", Subresource: "status"}, false},
		"any subresource":      {`{rules: [{apiGroups: [""], resources: [pods/*], operations: ["*"]}]}`, Change{Kind: pods, Operation: "UPDATE", Subresource: "status"}, true},
		"everything":           {`{rules: [{apiGroups: [""], resources: ["*/*"], operations: ["*"]}]}`, Change{Kind: pods, Operation: "UPDATE", Subresource: "scale"}, true},
	} {
		s := &Subject{Install: objects(t, mice), Webhooks: objects(t, rule(test.webhook))}
		if got := s.Refused(test.change); got != test.want {
			t.Errorf("%s: refused is %t", name, got)
		}
	}
}

func TestOnlyAMutatingWebhookWhoseFailuresAreIgnoredMutatesUnlessDown(t *testing.T) {
	for text, want := range map[string]bool{
		`{kind: MutatingWebhookConfiguration, webhooks: [{failurePolicy: Fail}, {failurePolicy: Ignore}]}`: true,
		`{kind: MutatingWebhookConfiguration, webhooks: [{failurePolicy: Fail}, {}]}`:                      false,
		`{kind: ValidatingWebhookConfiguration, webhooks: [{failurePolicy: Ignore}]}`:                      false,
	} {
		if got := (&Subject{Webhooks: objects(t, text)}).MutatesUnlessDown(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestChangeThatAWebhookHasToConvertIsRefused(t *testing.T) {
	s := &Subject{Install: objects(t, mice)}
	for version, want := range map[string]bool{"v1": true, "v2": false} {
		if got := s.Refused(Change{Kind: schema.GroupVersionKind{Group: "x.dev", Version: version, Kind: "Mouse"}, Operation: "DELETE"}); got != want {
			t.Errorf("%s: refused is %t", version, got)
		}
	}
}

func TestARequestIsReviewedUnderItsOperation(t *testing.T) {
	webhook := func(operation string) *Subject {
		return &Subject{Webhooks: objects(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x},
  webhooks: [{rules: [{apiGroups: [x.dev], apiVersions: [v1], resources: [mice], operations: [`+operation+`]}]}]}`)}
	}
	mouse := trace.Target{Group: "x.dev", Version: "v1", Resource: "mice", Namespace: "d", Name: "a"}
	status := mouse
	status.Subresource = "status"
	for name, test := range map[string]struct {
		call *trace.Call
		want string
	}{
		"a creation":               {&trace.Call{Verb: "create", Target: mouse, Code: 201}, "CREATE"},
		"an update":                {&trace.Call{Verb: "update", Target: mouse, Code: 200}, "UPDATE"},
		"an apply that creates":    {&trace.Call{Verb: "patch", Target: mouse, Code: 201}, "CREATE"},
		"an apply that changes":    {&trace.Call{Verb: "patch", Target: mouse, Code: 200}, "UPDATE"},
		"a deletion":               {&trace.Call{Verb: "delete", Target: mouse, Code: 200}, "DELETE"},
		"a deletion of several":    {&trace.Call{Verb: "deletecollection", Target: mouse, Code: 200}, "DELETE"},
		"a status":                 {&trace.Call{Verb: "update", Target: status, Code: 200}, ""},
		"a read":                   {&trace.Call{Verb: "get", Target: mouse, Code: 200}, ""},
		"a request for discovery":  {&trace.Call{Verb: "get", Path: "/apis"}, ""},
		"a write of another group": {&trace.Call{Verb: "create", Target: trace.Target{Resource: "mice", Name: "a"}, Code: 201}, ""},
	} {
		for _, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
			if got := webhook(operation).Reviewed(test.call); got != (operation == test.want) {
				t.Errorf("%s: reviewed as %s is %t", name, operation, got)
			}
		}
	}
}
