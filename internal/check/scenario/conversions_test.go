package scenario

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ships is a CRD with three versions, of which two are served, and a conversion webhook.
const ships = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: sea, name: harbor}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, required: [spec], properties: {
      spec: {type: object, required: [masts], properties: {
        masts: {type: integer, minimum: 1}, flag: {type: string}, sails: {type: array, items: {type: string}}, crew: {type: object, properties: {cook: {type: string}}}}},
      status: {type: object, properties: {ready: {type: boolean}}}}}}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, required: [spec], properties: {
      spec: {type: object, properties: {masts: {type: integer, minimum: 1}, banner: {type: string}}}}}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

func conversionsOf(t *testing.T, crd string, given ...string) []*Convertible {
	t.Helper()
	return GenerateConversions(givenObjects(t, given...), crdsFrom(t, crd), 1)
}

func crdsFrom(t *testing.T, text string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readCRDs(t, file)
}

func givenObjects(t *testing.T, given ...string) (objects []map[string]any) {
	t.Helper()
	for _, text := range given {
		var object map[string]any
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		wholeNumbers(object)
		objects = append(objects, object)
	}
	return objects
}

const sloop = `{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"sloop","namespace":"sea","finalizers":["a/b"]},"spec":{"masts":1,"flag":"red"},"status":{"ready":true}}`

func TestConversionsHaveObjectsInEachServedVersion(t *testing.T) {
	all := conversionsOf(t, ships, sloop)
	if len(all) != 1 || all[0].Kind != "Ship.sea.example.com" || all[0].Storage != "v1" || !slices.Equal(all[0].Versions, []string{"v1", "v1beta1"}) {
		t.Fatalf("%+v", all)
	}
	seen, fields := map[string]int{}, map[string]bool{}
	for _, object := range all[0].Objects {
		o := unstructured.Unstructured{Object: object}
		version := o.GroupVersionKind().Version
		seen[version]++
		if o.GetNamespace() != "default" || o.GetFinalizers() != nil || object["status"] != nil {
			t.Errorf("not an object that a user would create: %v", object)
		}
		spec, _ := object["spec"].(map[string]any)
		for name := range spec {
			fields[version+" "+name] = true
		}
	}
	for _, want := range []string{"v1 masts", "v1 flag", "v1 sails", "v1 crew", "v1beta1 masts", "v1beta1 banner"} {
		if !fields[want] {
			t.Errorf("no object has the field %s", want)
		}
	}
	if fields["v1beta1 flag"] || seen["v1"] < 4 || seen["v1beta1"] < 3 || seen["v1alpha1"] > 0 {
		t.Errorf("the numbers of objects are %v, their fields %v", seen, fields)
	}
}

func TestTheFirstObjectsOfAConversionAreTheGivenOneAndOneWithAllFields(t *testing.T) {
	objects := conversionsOf(t, ships, sloop)[0].Objects
	specOf := func(i int) map[string]any {
		spec, _ := objects[i]["spec"].(map[string]any)
		return spec
	}
	if first := specOf(0); first["flag"] != "red" || len(first) != 2 {
		t.Errorf("the first object is %v", objects[0])
	}
	if second := specOf(1); objects[1]["apiVersion"] != "sea.example.com/v1beta1" || second["masts"] != int64(1) || second["flag"] != nil {
		t.Errorf("the second object is %v", objects[1])
	}
	if third := specOf(2); len(third) != 4 || third["flag"] == "red" {
		t.Errorf("the object with all fields is %v", objects[2])
	}
}

func TestAnObjectIsMadeUpForAKindWithoutSamples(t *testing.T) {
	objects := conversionsOf(t, ships)[0].Objects
	first := unstructured.Unstructured{Object: objects[0]}
	if masts, _, _ := unstructured.NestedInt64(first.Object, "spec", "masts"); first.GetName() != "ship" || first.GetKind() != "Ship" || masts < 1 {
		t.Errorf("the object is %v", objects[0])
	}
}

func TestOnlyKindsThatAWebhookConvertsAreConverted(t *testing.T) {
	if all := conversionsOf(t, strings.ReplaceAll(ships, "strategy: Webhook", "strategy: None"), sloop); len(all) > 0 {
		t.Errorf("%v", all)
	}
	if all := conversionsOf(t, strings.ReplaceAll(ships, "served: true\n    storage: false", "served: false\n    storage: false"), sloop); len(all) > 0 {
		t.Errorf("with one served version: %v", all)
	}
}

func TestFieldsThatTheSchemaOfAVersionLacksAreNotConverted(t *testing.T) {
	old := `{"apiVersion":"sea.example.com/v1beta1","kind":"Ship","metadata":{"name":"raft"},"spec":{"masts":1,"oars":4}}`
	hasOars := func(object map[string]any) bool {
		_, found, _ := unstructured.NestedFieldNoCopy(object, "spec", "oars")
		return found
	}
	generated := conversionsOf(t, ships, old)[0].Objects
	if generated[1]["apiVersion"] != "sea.example.com/v1beta1" || slices.ContainsFunc(generated, hasOars) {
		t.Errorf("%v", generated)
	}
	given := GivenConversions(givenObjects(t, old), crdsFrom(t, ships))[0].Objects
	if masts, _, _ := unstructured.NestedInt64(given[0], "spec", "masts"); masts != 1 || hasOars(given[0]) {
		t.Errorf("%v", given)
	}
}
