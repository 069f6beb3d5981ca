package invariant

import (
	"encoding/json"
	"strings"
	"testing"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestARuleSeesAnObjectAsAnAdmissionPolicyDoes(t *testing.T) {
	for _, tt := range []struct {
		expression, now, old string
		want                 bool
	}{
		{`object.spec.replicas > 0`, `{"spec":{"replicas":3}}`, "", true},
		{`object.spec.replicas > 0`, `{"spec":{"replicas":0}}`, "", false},
		{`object.spec.replicas + 1 == 4`, `{"spec":{"replicas":3}}`, "", true},
		{`object.spec.ratio < 0.5`, `{"spec":{"ratio":0.25}}`, "", true},
		{`!has(object.spec.paused) || !object.spec.paused`, `{"spec":{}}`, "", true},
		{`object.?spec.paused.orValue(false)`, `{"spec":{"paused":true}}`, "", true},
		{`object.spec.paused`, `{"spec":{"paused":true}}`, "", true},
		{`object.metadata.labels['app.kubernetes.io/name'] == 'a'`, `{"metadata":{"labels":{"app.kubernetes.io/name":"a"}}}`, "", true},
		{`object.spec.members.filter(m, m.role == 'leader').size() <= 1`, `{"spec":{"members":[{"role":"leader"},{"role":"leader"}]}}`, "", false},
		{`oldObject == null || object.spec.n >= oldObject.spec.n`, `{"spec":{"n":1}}`, "", true},
		{`oldObject == null || object.spec.n >= oldObject.spec.n`, `{"spec":{"n":1}}`, `{"spec":{"n":2}}`, false},
		{`quantity(object.spec.size).isGreaterThan(quantity('1Gi'))`, `{"spec":{"size":"2Gi"}}`, "", true},
		{`object.spec.url.matches('^https')`, `{"spec":{"url":"http://a"}}`, "", false},
	} {
		rule, err := Compile(tt.expression)
		if err != nil {
			t.Errorf("%s: %v", tt.expression, err)
			continue
		}
		got, err := rule.Holds(decode(t, tt.now), decode(t, tt.old))
		if err != nil || got != tt.want {
			t.Errorf("%s of %s: %t, %v", tt.expression, tt.now, got, err)
		}
		if rule.Compares() != strings.Contains(tt.expression, "oldObject") {
			t.Errorf("%s: compares is %t", tt.expression, rule.Compares())
		}
	}
}

func TestAWrongExpressionIsRefusedWithItsPlace(t *testing.T) {
	for expression, want := range map[string]string{
		"":                                     "is empty",
		"  ":                                   "is empty",
		"object.spec.replicas >":               "Syntax error",
		"object.spec.replicas > 0 &&\n  obj.x": "undeclared reference to 'obj' (in container ''), in line 2, column 3 of the expression",
		"'text'":                               "must be true or false, but the expression returns string",
		"1 + 'a' == 2":                         "found no matching overload",
	} {
		if _, err := Compile(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", expression, err)
		}
	}
}

func TestAFieldThatIsMissingIsAnErrorAndNotFalse(t *testing.T) {
	for expression, want := range map[string]string{"object.spec.n == 1": "no such key: n", "object.spec": "neither true nor false"} {
		rule, err := Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rule.Holds(decode(t, `{"spec":{}}`), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", expression, err)
		}
	}
}
