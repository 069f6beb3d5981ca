package scenario

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secretive = `
apiVersion: check.koboshi.dev/v1
kind: Scenario
name: secretive
given:
- {apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque, stringData: {password: planted-4711, pin: "471147"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {copy: "url=planted-4711;"}}
- {apiVersion: v1, kind: Secret, metadata: {name: word}, stringData: {namespace: default}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: Secret, metadata: {name: b, annotations: {kubectl.kubernetes.io/last-applied-configuration: planted-4711}}, data: {password: cGxhbnRlZC00NzEx, short: YQ==}}
steps:
- name: registry
  apply:
  - {apiVersion: v1, kind: Secret, metadata: {name: c}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths":{"planted-registry":{}}}'}}
- name: merge
  patch: {apiVersion: v1, kind: Secret, name: a, merge: {stringData: {password: planted-merge, gone: null}}}
- name: operations
  patch: {apiVersion: v1, kind: Secret, name: a, json: [{op: add, path: /data/x, value: cGxhbnRlZC1vcGVyYXRpb24=}, {op: add, path: /metadata/labels, value: {kept: kept}}]}
- name: call
  run: [curl, "-upeter:planted-4711"]
  expect:
  - {apiVersion: v1, kind: Secret, name: a, field: .data.password, equals: planted-expected}
`

func parsed(t *testing.T, text string) *Scenario {
	t.Helper()
	all, err := Parse("secretive.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func asJSON(t *testing.T, s *Scenario) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestNoValueOfASecretIsInAConcealedScenario(t *testing.T) {
	original := parsed(t, secretive)
	before := asJSON(t, original)
	concealed, err := original.Conceal()
	if err != nil {
		t.Fatal(err)
	}
	text := asJSON(t, concealed)
	for _, value := range []string{"planted", "471147", "YQ==", base64.StdEncoding.EncodeToString([]byte("planted-4711")), "cGxhbnRlZC1v"} {
		if strings.Contains(text, value) {
			t.Errorf("%s is in %s", value, text)
		}
	}
	for _, want := range []string{`"type":"kubernetes.io/dockerconfigjson"`, `"gone":null`, `"kept":"kept"`, `"namespace":"default"`, `"copy":"url=$(secret 1 text 12);"`, `"password":"$(secret 1 text 12 base64)"`, `json 33)`, `digits 6)`, `text 7)`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if asJSON(t, original) != before {
		t.Error("the scenario itself was changed")
	}
	again, err := concealed.Conceal()
	if diff := cmp.Diff(concealed, again); err != nil || diff != "" {
		t.Errorf("concealed again: %v\n%s", err, diff)
	}
}

func TestRevealedScenarioHasFreshValuesInTheSamePlaces(t *testing.T) {
	concealed, err := parsed(t, secretive).Conceal()
	if err != nil {
		t.Fatal(err)
	}
	first, err := concealed.Reveal()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Validate(); err != nil {
		t.Error(err)
	}
	data := first.Given[0].Object["stringData"].(map[string]any)
	password, pin := data["password"].(string), data["pin"].(string)
	if !regexp.MustCompile(`^[A-Za-z0-9]{12}$`).MatchString(password) || !regexp.MustCompile(`^[0-9]{6}$`).MatchString(pin) {
		t.Errorf("the values are %q and %q", password, pin)
	}
	text := asJSON(t, first)
	for _, want := range []string{"url=" + password + ";", base64.StdEncoding.EncodeToString([]byte(password)), "-upeter:" + password, `".dockerconfigjson":"{}"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if strings.Contains(text, "$(secret") {
		t.Errorf("a placeholder is left in %s", text)
	}
	second, err := concealed.Reveal()
	if err != nil || asJSON(t, second) == text {
		t.Errorf("the values are the same as the first time: %v", err)
	}
}

func TestAFreshValueIsRecognizedAsASecret(t *testing.T) {
	for range 1000 {
		value := randomValue("text", 12)
		if len(value) != 12 || !strings.ContainsAny(value, "0123456789") {
			t.Fatalf("%q has no digit, or not 12 characters", value)
		}
	}
	for class, length := range map[string]int{"text": 1, "digits": 8, "json": 2} {
		if value := randomValue(class, length); len(value) != length {
			t.Errorf("%s: %q does not have %d characters", class, value, length)
		}
	}
}

func FuzzReveal(f *testing.F) {
	f.Add("$(secret 1 text 12)", "$(secret 1 text 12 base64)")
	f.Add("$(secret 1 json 99999999999999999999)", "x$(secret 2 digits 3)y")
	f.Fuzz(func(t *testing.T, a, b string) {
		s := &Scenario{Name: a, Given: []Manifest{{Object: map[string]any{"kind": "Secret", "data": map[string]any{"x": b}}}}}
		revealed, err := s.Reveal()
		if err != nil {
			return
		}
		if placeholder.MatchString(asJSON(t, revealed)) {
			t.Errorf("a placeholder is left in %s", asJSON(t, revealed))
		}
	})
}
