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
	const metadata = `{name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"key":"b2xk"}}'}}`
	live := object(t, "{apiVersion: v1, kind: Secret, metadata: "+metadata+", data: {same: c2FtZQ==, key: b2xk, gone: Z29uZQ==}}")
	for name, c := range map[string]struct {
		result *unstructured.Unstructured
		want   []string
	}{
		"changed": {
			object(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {same: c2FtZQ==, key: bmV3, added: YWRk}}"),
			[]string{"\n   same: '***'\n", "\n-  key: '*** (before)'\n", "\n+  key: '*** (after)'\n", "\n-  gone: '***'\n", "\n+  added: '***'\n"},
		},
		"deleted": {nil, []string{"\n-  same: '***'\n", "\n-  key: '***'\n"}},
	} {
		got, err := compare.Unified(live, c.result)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
		for _, value := range []string{"b2xk", "bmV3", "c2FtZQ==", "Z29uZQ==", "YWRk"} {
			if strings.Contains(got, value) {
				t.Errorf("%s: the value %s is visible in\n%s", name, value, got)
			}
		}
	}
	if text := live.Object["data"]; !cmp.Equal(text, map[string]any{"same": "c2FtZQ==", "key": "b2xk", "gone": "Z29uZQ=="}) {
		t.Errorf("the object itself was changed: %v", text)
	}
}
