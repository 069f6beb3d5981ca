package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// ship is a CRD with every kind of field that a policy can see.
const ship = `
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Ship, plural: ships}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          metadata: {type: object}
          spec:
            type: object
            properties:
              owner: {type: string}
              crew: {type: integer, format: int32}
              weight: {type: number}
              since: {type: string, format: date-time}
              cargo: {type: array, items: {type: object, properties: {name: {type: string}}}}
              flags: {type: object, additionalProperties: {type: string}}
              speed: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}
              config: {x-kubernetes-preserve-unknown-fields: true}
              reserved: {type: object, properties: {namespace: {type: string}}}
  - name: v2
    schema: {openAPIV3Schema: {type: object}}
`

func crd(t *testing.T, name, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(ship), crd); err != nil {
		t.Fatal(err)
	}
	crd.Name, crd.Spec.Names.Kind = name, kind
	return crd
}

// mistakes returns what is wrong with rules for the kind Ship.
func mistakes(t *testing.T, rules ...Rule) (messages []string) {
	t.Helper()
	var all []Marked
	for _, rule := range rules {
		all = append(all, Marked{rule, crd(t, "ships.sea.example.com", "Ship"), "v1"})
	}
	_, found := Make(all)
	for _, m := range found {
		messages = append(messages, m.Message)
	}
	return messages
}

func TestExpressionsThatTheAPIServerUnderstandsAreAccepted(t *testing.T) {
	for _, expression := range []string{
		"oldObject == null || object.spec.owner == oldObject.spec.owner",
		"!has(object.spec.crew) || object.spec.crew < 5",
		"object.spec.weight > 1",
		"object.spec.since == '2020-01-01T00:00:00Z' || timestamp(object.spec.since) < timestamp('2020-01-01T00:00:00Z')",
		"object.spec.cargo.all(c, c.name != '')",
		"object.spec.flags.exists(k, k == object.spec.flags[k])",
		"type(object.spec.speed) == int || object.spec.speed == '5'",
		"object.spec.config.anything.at == 5",
		"object.spec.reserved.__namespace__ == '' || object.spec.reserved.namespace == ''",
		"object.metadata.labels['a'] == 'b' && object.metadata.?annotations.orValue({}) == {}",
		"request.userInfo.username == 'a' && request.operation == 'DELETE' && request.dryRun",
		"namespaceObject.metadata.labels['a'] == 'b'",
		"authorizer.requestResource.check('a').allowed() && authorizer.group('').resource('pods').check('get').allowed()",
		"object.spec.owner.find('[a-z]+') == '' && ip('::1').isLoopback() && quantity('1').isInteger()",
	} {
		if got := mistakes(t, Rule{Name: "a", Expression: expression}); len(got) > 0 {
			t.Errorf("%s: %q", expression, got)
		}
	}
}

func TestWrongRulesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		rule Rule
		want string
	}{
		"syntax":           {Rule{Expression: "object.spec.owner =="}, `expression: Syntax error: mismatched input '<EOF>'`},
		"unknown field":    {Rule{Expression: "object.spec.ownr == ''"}, `expression: undefined field 'ownr' at ".ownr == ''"`},
		"guarded field":    {Rule{Expression: "has(object.spec.ownr)"}, "expression: undefined field 'ownr'"},
		"nested field":     {Rule{Expression: "object.spec.cargo[0].nam == ''"}, "expression: undefined field 'nam'"},
		"types":            {Rule{Expression: "object.spec.crew == '5'"}, "expression: found no matching overload for '_==_'"},
		"other version":    {Rule{Expression: "self.spec.crew > 5"}, "expression: undeclared reference to 'self'"},
		"result":           {Rule{Expression: "object.spec.owner"}, "expression: must return bool, but returns string"},
		"empty":            {Rule{Expression: " "}, "expression: the expression is empty; write one"},
		"message's type":   {Rule{MessageExpression: "5"}, "messageExpression: must return string, but returns int"},
		"message's rights": {Rule{MessageExpression: "string(authorizer.group('').resource('a').check('b').allowed())"}, "messageExpression: undeclared reference to 'authorizer'"},
		"line break":       {Rule{Message: "a\nb"}, "the message contains a line break; remove it"},
		"reason":           {Rule{Reason: "Unauthorized"}, `reason cannot be "Unauthorized"; use Forbidden, Invalid, RequestEntityTooLarge`},
		"failure policy":   {Rule{FailurePolicy: "never"}, `failurePolicy cannot be "never"; use Fail, Ignore`},
		"repetition":       {Rule{Operations: []string{"update", "UPDATE"}}, "operations contains UPDATE twice; remove one of them"},
		"deny and warn":    {Rule{Actions: []string{"deny", "warn"}}, "actions cannot contain both Deny and Warn; remove one of them"},
		"name":             {Rule{Name: "Ships"}, `"Ships" cannot be the name of a policy: `},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rule.Name == "" {
				c.rule.Name = "a"
			}
			if c.rule.Expression == "" {
				c.rule.Expression = "true"
			}
			if got := mistakes(t, c.rule); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestMarkersOfOnePolicyAgree(t *testing.T) {
	first := Rule{Name: "a", Expression: "true", Operations: []string{"Update"}}
	if got := mistakes(t, first, Rule{Name: "a", Expression: "true"}, Rule{Name: "a", Expression: "true", Operations: []string{"UPDATE"}}); len(got) > 0 {
		t.Errorf("%q", got)
	}
	want := []string{"operations belongs to the whole policy a, and differs from its first marker; remove it here, or choose another name"}
	if diff := cmp.Diff(want, mistakes(t, first, Rule{Name: "a", Expression: "true", Operations: []string{"delete"}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPolicyBelongsToOneVersionOfOneKind(t *testing.T) {
	rule := Rule{Name: "a", Expression: "true"}
	ships, boats := crd(t, "ships.sea.example.com", "Ship"), crd(t, "boats.sea.example.com", "Boat")
	_, found := Make([]Marked{{rule, ships, "v1"}, {rule, boats, "v1"}, {rule, ships, "v2"}, {rule, ships, "v3"}})
	want := []Mistake{
		{1, "the name of the policy, a, is already used for Ship; choose another name"},
		{2, "the policy a is already on version v1, to which the API server converts the objects of other versions; remove the marker from one of them"},
		{3, "the CRD ships.sea.example.com has no schema for version v3"},
		{3, "the policy a is already on version v1, to which the API server converts the objects of other versions; remove the marker from one of them"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
