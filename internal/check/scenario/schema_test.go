package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaAndTypesNameTheSameFields(t *testing.T) {
	root := readSchema(t)
	definitions := root["definitions"].(map[string]any)
	for name, of := range map[string]reflect.Type{
		"": reflect.TypeFor[Scenario](), "rest": reflect.TypeFor[Rest](), "step": reflect.TypeFor[Step](),
		"patch": reflect.TypeFor[Patch](), "delete": reflect.TypeFor[Delete](), "scale": reflect.TypeFor[Scale](),
		"condition": reflect.TypeFor[Condition](), "always": reflect.TypeFor[Always](), "match": reflect.TypeFor[Match](), "endpoint": reflect.TypeFor[Endpoint](),
		"pods": reflect.TypeFor[PodAnswers](), "exec": reflect.TypeFor[ExecAnswer](), "podPort": reflect.TypeFor[PodPort](),
	} {
		s := root
		if name != "" {
			s = definitions[name].(map[string]any)
		}
		var all, required []string
		for _, f := range strictyaml.Fields(of) {
			all = append(all, f.Name)
			if f.Required {
				required = append(required, f.Name)
			}
		}
		properties := s["properties"].(map[string]any)
		if diff := cmp.Diff(slices.Sorted(slices.Values(all)), slices.Sorted(maps.Keys(properties))); diff != "" {
			t.Errorf("%s: fields of the type, and of the schema:\n%s", of.Name(), diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(required)), sortedTexts(s["required"])); diff != "" {
			t.Errorf("%s: required by the type, and by the schema:\n%s", of.Name(), diff)
		}
		if s["additionalProperties"] != false {
			t.Errorf("%s: the schema allows unknown fields", of.Name())
		}
		for field, p := range properties {
			if description, _ := p.(map[string]any)["description"].(string); description == "" {
				t.Errorf("%s.%s: there is no description for editors to show", of.Name(), field)
			}
		}
	}
}

func sortedTexts(value any) []string {
	var all []string
	list, _ := value.([]any)
	for _, v := range list {
		all = append(all, v.(string))
	}
	slices.Sort(all)
	return all
}

func TestSchemaAcceptsTheExamplesAndGeneratedScenarios(t *testing.T) {
	v := validator{readSchema(t)}
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(data), "\n---\n") {
		value := parseYAML(t, document)
		for _, wrong := range v.check(v.root, value, "") {
			t.Error(wrong)
		}
	}
	for _, s := range scenariosOf(t, "storagebucket") {
		var value any
		if err := json.Unmarshal(mustJSON(s), &value); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range v.check(v.root, value, "") {
			t.Errorf("%s: %s", s.Name, wrong)
		}
	}
}

func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	v := validator{readSchema(t)}
	for _, text := range []string{
		"stpes: []",
		"steps: []",
		"steps: [{run: [a]}]",
		"steps: [{name: a, apply: [{file: a, b: c}]}]",
		"steps: [{name: a, patch: {apiVersion: v1, kind: Pod, name: a}}]",
		"steps: [{name: a, scale: {apiVersion: v1, kind: Pod, name: a, replicas: -1}}]",
		"steps: [{name: a, delete: {apiVersion: v1, kind: Pod, name: a, propagation: None}}]",
		"steps: [{name: a, expect: [{apiVersion: v1, kind: Pod, name: a, equals: 1}]}]",
		"steps: [{name: a, run: [a]}]\nrest: {quiet: 3}",
		"steps: [{name: a, run: [a]}]\nledger: []",
		"steps: [{name: a, run: [a]}]\nalways: [{name: a, match: {apiVersion: v1, kind: Pod}}]",
		"steps: [{name: a, run: [a]}]\nalways: [{name: a, match: {kind: Pod}, expr: 'true'}]",
	} {
		document := parseYAML(t, text)
		document["apiVersion"], document["kind"], document["name"] = APIVersion, Kind, "a"
		if len(v.check(v.root, document, "")) == 0 {
			t.Errorf("the schema accepts %s", text)
		}
		if _, err := Parse("x.yaml", mustJSON(document)); err == nil {
			t.Errorf("Parse accepts %s", text)
		}
	}
}

// parseYAML parses YAML, and returns numbers with the types of encoding/json.
func parseYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.ToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// validator supports the part of JSON schema that schema.json uses, and fails on anything
// else.
type validator struct{ root map[string]any }

func (v validator) check(s map[string]any, value any, at string) (wrong []string) {
	complain := func(format string, args ...any) {
		wrong = append(wrong, at+": "+fmt.Sprintf(format, args...))
	}
	for _, keyword := range sortedKeys(s) {
		switch rule := s[keyword]; keyword {
		case "$schema", "title", "description", "definitions", "properties":
		case "$ref":
			name := strings.TrimPrefix(rule.(string), "#/definitions/")
			wrong = append(wrong, v.check(v.root["definitions"].(map[string]any)[name].(map[string]any), value, at)...)
		case "allOf":
			for _, each := range rule.([]any) {
				wrong = append(wrong, v.check(each.(map[string]any), value, at)...)
			}
		case "oneOf":
			fitting := 0
			for _, each := range rule.([]any) {
				if len(v.check(each.(map[string]any), value, at)) == 0 {
					fitting++
				}
			}
			if fitting != 1 {
				complain("fits %d of oneOf", fitting)
			}
		case "type":
			if !isType(value, rule.(string)) {
				complain("%v is no %s", value, rule)
			}
		case "const":
			if value != rule {
				complain("%v is not %v", value, rule)
			}
		case "enum":
			if !slices.Contains(rule.([]any), value) {
				complain("%v is none of %v", value, rule)
			}
		case "pattern":
			if text, is := value.(string); is && !regexp.MustCompile(rule.(string)).MatchString(text) {
				complain("%q does not match %s", text, rule)
			}
		case "minLength", "maxLength":
			if text, is := value.(string); is && (keyword == "minLength") == (float64(len(text)) < rule.(float64)) && float64(len(text)) != rule.(float64) {
				complain("%q: %s %v", text, keyword, rule)
			}
		case "minimum":
			if number, is := value.(float64); is && number < rule.(float64) {
				complain("%v is less than %v", number, rule)
			}
		case "maximum":
			if number, is := value.(float64); is && number > rule.(float64) {
				complain("%v is more than %v", number, rule)
			}
		case "minItems":
			if list, is := value.([]any); is && float64(len(list)) < rule.(float64) {
				complain("has %d items", len(list))
			}
		case "items":
			list, _ := value.([]any)
			for i, item := range list {
				wrong = append(wrong, v.check(rule.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		case "required":
			for _, name := range rule.([]any) {
				if object, is := value.(map[string]any); is && object[name.(string)] == nil {
					complain("%v is missing", name)
				}
			}
		case "dependencies":
			object, _ := value.(map[string]any)
			for name, needed := range rule.(map[string]any) {
				for _, other := range needed.([]any) {
					if object[name] != nil && object[other.(string)] == nil {
						complain("%s needs %v", name, other)
					}
				}
			}
		case "additionalProperties":
			object, _ := value.(map[string]any)
			for name := range object {
				if _, known := s["properties"].(map[string]any)[name]; !known {
					complain("%s is unknown", name)
				}
			}
		default:
			complain("the test's validator does not know %s", keyword)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	object, _ := value.(map[string]any)
	for name, inner := range object {
		if p, known := properties[name].(map[string]any); known {
			wrong = append(wrong, v.check(p, inner, at+"."+name)...)
		}
	}
	return wrong
}

func isType(value any, name string) bool {
	switch v := value.(type) {
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	}
	return false
}

func TestTheHandbooksScenariosCanBeRead(t *testing.T) {
	const name = "../../../docs/guide/check/scenarios.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	v := validator{readSchema(t)}
	whole := 0
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		text := block[1]
		if strings.HasPrefix(text, "apiVersion: ") {
			whole++
			if _, err := Parse(name, []byte(text)); err != nil {
				t.Error(err)
			}
		} else {
			// Only the schema checks the text, because it may be an incomplete scenario.
			text = header + text
			if !strings.Contains(text, "steps:") {
				text += "steps: [{name: a, run: [a]}]\n"
			}
		}
		for _, wrong := range v.check(v.root, parseYAML(t, text), "") {
			t.Errorf("%s\n%s", wrong, text)
		}
	}
	if whole < 2 {
		t.Errorf("the page has %d whole scenarios", whole)
	}
}
