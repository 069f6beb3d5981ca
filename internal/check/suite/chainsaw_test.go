package suite

import (
	"strings"
	"testing"
)

// test is the beginning of a test of chainsaw, whose steps follow as a list in YAML.
const test = "-- chainsaw-test.yaml --\napiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: grow}\nspec:\n  steps:\n"

func TestOperationsOfChainsawBecomeSteps(t *testing.T) {
	check(t, `
-- e2e/grow/chainsaw-test.yaml --
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: grow
spec:
  deletionPropagationPolicy: Foreground
  timeouts: {assert: 30s, cleanup: 10m}
  steps:
  - name: install it
    try:
    - apply: {file: ../shared/*.yaml}
    - assert:
        resource:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: a}
          spec: {replicas: 1}
    - create:
        resource:
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: b}
  - try:
    - apply: {file: ../shared/widget.yaml}
    - patch:
        subresource: status
        resource:
          apiVersion: example.com/v1
          kind: Widget
          metadata: {name: a}
          status: {ready: false}
    - update:
        timeout: 40s
        resource:
          apiVersion: example.com/v1
          kind: Widget
          metadata: {name: a}
          spec: {size: 3}
    - wait:
        apiVersion: example.com/v1
        kind: Widget
        name: a
        for: {condition: {name: Ready, value: "true"}}
    - wait:
        apiVersion: example.com/v1
        kind: Widget
        for: {jsonPath: {path: "{.status.size}", value: "3"}}
    - error:
        resource:
          apiVersion: v1
          kind: Pod
          metadata: {name: old}
  - name: remove
    try:
    - delete:
        ref: {apiVersion: example.com/v1, kind: Widget, name: a}
    - wait:
        apiVersion: v1
        kind: Pod
        name: p
        for: {deletion: {}}
    - delete:
        deletionPropagationPolicy: Orphan
        file: ../shared/config.yaml
-- e2e/shared/config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
-- e2e/shared/widget.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
spec: {size: 1}
`, `
e2e/grow: grow
  timeout 40s
  install-it: apply ConfigMap c apply Widget.example.com a
    expect Deployment.apps a to have spec.replicas = 1
  install-it-2: apply ConfigMap b
  step-2: patch Widget.example.com a {"spec":{"size":1}}
  step-2-2: patch Widget.example.com a status{"status":{"ready":false}}
  step-2-3: apply Widget.example.com a
    wait Widget.example.com a to be Ready=True
    wait Widget.example.com a to have .status.size = 3
    expect Pod old to be gone
  remove: delete Widget.example.com a Foreground
    wait Pod p to be gone
  remove-2: delete ConfigMap c Orphan
`)
}

func TestWhatDoesNotChangeTheClusterIsLeftOutByName(t *testing.T) {
	check(t, `
-- chainsaw-test.yaml --
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: grow}
spec:
  bindings: [{name: a, value: b}]
  catch: [{events: {}}]
  namespaceTemplate: {metadata: {labels: {a: b}}}
  steps:
  - name: one
    bindings: [{name: a, value: b}]
    try:
    - apply: {file: widget.yaml}
    - sleep: {duration: 5s}
    - get: {apiVersion: v1, kind: Pod}
    - describe: {apiVersion: v1, kind: Pod}
    - events: {}
    - podLogs: {name: a}
    - proxy: {name: a}
    - script: {content: kubectl logs a, outputs: [{name: a, value: ($stdout)}]}
    - command: {entrypoint: kubectl, args: [get, pods, -o, "jsonpath={.a b}"]}
    - assert: {resource: {apiVersion: v1, kind: Pod, metadata: {name: ($a)}}}
    - assert: {file: missing.yaml}
    - error: {resource: {apiVersion: v1, kind: Pod, metadata: {name: a}, (status.phase): Failed}}
    - wait: {apiVersion: v1, kind: Pod, selector: a=b, for: {condition: {name: Ready}}}
    - wait: {apiVersion: v1, kind: Pod, name: a, for: {condition: {name: Ready, value: other}}}
    - wait: {apiVersion: v1, kind: Pod, name: a, for: {jsonPath: {path: "{a["}}}
    - apply: {file: widget.yaml, dryRun: true}
    - apply: {file: widget.yaml, expect: [{check: {($error != null): true}}]}
    - patch:
        expect: [{check: {($error != null): false}}]
        resource: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 2}}
    catch: [{podLogs: {}}]
    finally: [{sleep: {duration: 1s}}]
    cleanup: [{delete: {}}]
  - name: two
    try:
    - assert: {file: widget.yaml}
-- widget.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
`, `
.: grow
  one: apply Widget.example.com a
  one-2: patch Widget.example.com a {"spec":{"size":2}}
  two:
    expect Widget.example.com a to exist
  - chainsaw-test.yaml:5: bindings (2 times): expressions are not supported
  - chainsaw-test.yaml:6: catch (2 times): it only collects information for a failed test
  - chainsaw-test.yaml:7: namespaceTemplate: namespaces are created without it
  - chainsaw-test.yaml:34: cleanup: a check resets the cluster after each run
  - chainsaw-test.yaml:13: sleep: a check waits until the cluster is at rest instead
  - chainsaw-test.yaml:14: get: it only reads
  - chainsaw-test.yaml:15: describe: it only reads
  - chainsaw-test.yaml:16: events: it only reads
  - chainsaw-test.yaml:17: podLogs: it only reads
  - chainsaw-test.yaml:18: proxy: it only reads
  - chainsaw-test.yaml:19: outputs: expressions are not supported
  - chainsaw-test.yaml:19: command "kubectl logs a": commands are not run
  - chainsaw-test.yaml:20: command "kubectl get pods -o 'jsonpath={.a b}'": commands are not run
  - chainsaw-test.yaml:21: assert Pod ($a): ($a): expressions are not supported
  - chainsaw-test.yaml:22: assert missing.yaml: the file does not exist
  - chainsaw-test.yaml:23: error Pod a: (status.phase): expressions are not supported
  - chainsaw-test.yaml:24: wait: selectors are not supported
  - chainsaw-test.yaml:25: wait for Pod a: the condition is not supported
  - chainsaw-test.yaml:26: wait for Pod a: the path is not supported
  - chainsaw-test.yaml:27: apply widget.yaml: a dry run changes nothing
  - chainsaw-test.yaml:28: apply widget.yaml: the API server refuses it, and a scenario cannot expect this
  - chainsaw-test.yaml:33: finally: it is not run
`)
}

func TestALostOperationEndsTheTest(t *testing.T) {
	const first = test + "  - name: first\n    try:\n    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}}\n"
	const last = "    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}}\n" +
		"  - name: last\n    try:\n    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}}\n"
	const step = "  - name: lost\n    try:\n    - "
	const object = "resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}"
	for _, c := range []struct{ name, files, left string }{
		{"script", step + "script: {content: 'helm install a'}\n", `:11: command "helm install a": commands are not run, and this one may change the cluster`},
		{"command", step + "command: {entrypoint: kubectl, args: [delete, pod, a]}\n", `:11: command "kubectl delete pod a": commands are not run`},
		{"expression", step + "apply: {" + object + ", data: {a: \"(join('', []))\", b: c}}}\n", ":11: apply ConfigMap a: (join('', [])): expressions are not supported"},
		{"expression as key", step + "create: {" + object + ", data: {(a): b}}}\n", ":11: apply ConfigMap a: (a): expressions are not supported"},
		{"file", step + "update: {file: missing.yaml}\n", ":11: update missing.yaml: the file does not exist"},
		{"expectation", step + "apply: {expect: [{check: {a: b}}], " + object + "}}\n", ":11: apply: its expectations are not supported"},
		{"match", step + "delete: {expect: [{match: {a: b}, check: {($error == null): true}}], ref: {apiVersion: v1, kind: Pod, name: a}}\n", ":11: delete: its expectations are not supported"},
		{"subresource", step + "patch: {subresource: other, " + object + "}}\n", ":11: patch ConfigMap a: the subresource other is not supported"},
		{"cluster", step + "apply: {cluster: b, " + object + "}}\n", ":11: apply: a check has only one cluster"},
		{"deletion", step + "delete: {ref: {apiVersion: v1, kind: Pod}}\n", ":11: delete Pod: it has no name, and the case names no object of this kind"},
		{"unknown", step + "launch: {}\n", ":11: operation: it is not known"},
		{"template", "  - name: lost\n    use: {template: a.yaml}\n    try:\n", ":10: use of a template: templates of steps are not supported"},
		{"cluster of the step", "  - name: lost\n    cluster: b\n    try:\n", ":10: cluster: a check has only one cluster"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := summary(imported(t, first+c.files+last, "."))
			if !strings.Contains(got, "\n  - chainsaw-test.yaml"+c.left) {
				t.Errorf("%q is not left out:\n%s", c.left, got)
			}
			if !strings.HasPrefix(got, ".: grow, cut short\n  first: apply ConfigMap first\n  - ") {
				t.Errorf("only the step before it has to be imported:\n%s", got)
			}
			if !strings.Contains(got, "the rest of step lost, and step last: this may depend on the part of step lost that is left out") {
				t.Errorf("what follows is not named:\n%s", got)
			}
		})
	}
}

func TestAFinallyThatMayChangeTheClusterEndsTheTestAfterItsStep(t *testing.T) {
	check(t, test+`
  - name: first
    try:
    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
    finally:
    - delete: {ref: {apiVersion: v1, kind: ConfigMap, name: a}}
  - name: last
    try:
    - apply: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
`, `
.: grow, cut short
  first: apply ConfigMap a
  - chainsaw-test.yaml:11: finally: it is not run, and may change the cluster
  - chainsaw-test.yaml: step last: this may depend on the part of step first that is left out
`)
}

func TestSettingsOfChainsawApplyToAllTests(t *testing.T) {
	check(t, `
-- .chainsaw.yaml --
apiVersion: chainsaw.kyverno.io/v1alpha2
kind: Configuration
spec:
  discovery: {testFile: e2e.yaml}
  namespace: {name: shop}
  timeouts: {assert: 50s, exec: 5m}
-- a/e2e.yml --
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: one}
spec:
  steps:
  - try:
    - apply:
        resource:
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: a}
          data: {namespace: ($namespace)}
---
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: two}
spec:
  namespace: other
  steps:
  - try:
    - create: {resource: {apiVersion: v1, kind: Namespace, metadata: {name: ($namespace)}}}
    - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
---
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: three}
spec: {skip: true}
---
apiVersion: chainsaw.kyverno.io/v1
kind: Test
---
kind: Other
-- a/00-assert.yaml --
kind: Pod
-- b/e2e.yaml --
a: [
`, `
a: one
  given Namespace shop
  timeout 50s
  step-1: apply ConfigMap shop/a
a: two
  timeout 50s
  step-1: apply Namespace other
  step-1-2: apply ConfigMap other/a
  - a/e2e.yml:27: the test: chainsaw skips it
  - a/e2e.yml:29: the test: version chainsaw.kyverno.io/v1 is not supported
  - a/e2e.yml:32: Other: it is not a test of chainsaw
  - b/e2e.yaml:1: the file: is not YAML: did not find expected node content
`)
}
