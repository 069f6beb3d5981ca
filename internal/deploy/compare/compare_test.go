package compare_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/deploy/compare"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: sea, "

func TestADifferenceHasOnlyWhatTheManifestChanges(t *testing.T) {
	live := object(t, configMap+`resourceVersion: "1", uid: x, generation: 1, managedFields: [{manager: a}]}, data: {port: Kobe}, status: {seen: 1}}`)
	for name, c := range map[string]struct{ result, want string }{
		"nothing": {configMap + `resourceVersion: "2", generation: 2, managedFields: [{manager: b}]}, data: {port: Kobe}, status: {seen: 2}}`, ""},
		"a value": {configMap + `}, data: {port: Oita}}`, `--- ConfigMap sea/a (live)
+++ ConfigMap sea/a (deployed)
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  port: Kobe
+  port: Oita
 kind: ConfigMap
 metadata:
   name: a
`},
		"a deletion": {"", `--- ConfigMap sea/a (live)
+++ /dev/null
@@ -1,7 +0,0 @@
-apiVersion: v1
-data:
-  port: Kobe
-kind: ConfigMap
-metadata:
-  name: a
-  namespace: sea
`},
	} {
		got, err := compare.Unified(live, object(t, c.result))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheValuesOfSecretsAreNeverShownButTheirChangesAre(t *testing.T) {
	secret := func(name, value string) *unstructured.Unstructured {
		return object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}, data: {same: c2FtZQ==, key: "+value+"}}")
	}
	got, err := compare.Unified(secret("a", "b2xk"), secret("a", "bmV3"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(got, "***") != 3 || strings.Count(got, "\n-  key: '*** (hash ") != 1 || strings.Count(got, "\n+  key: '*** (hash ") != 1 {
		t.Error(got)
	}
	for _, value := range []string{"b2xk", "bmV3", "c2FtZQ=="} {
		if strings.Contains(got, value) {
			t.Errorf("the value %s is visible in\n%s", value, got)
		}
	}
}
