package suite

import (
	"strings"
	"testing"
)

func TestFilesOfAKuttlCaseAreGroupedByNumber(t *testing.T) {
	check(t, `
-- kuttl-test.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestSuite
testDirs: [./e2e]
-- e2e/shared.yaml --
-- e2e/grow/00-assert.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {replicas: 1}
-- e2e/grow/00-config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
-- e2e/grow/00-widget.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
---
apiVersion: v1
kind: Secret
metadata: {name: c}
-- e2e/grow/10-assert.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
status: {ready: true}
-- e2e/grow/9-more/errors.yaml --
apiVersion: v1
kind: Pod
metadata: {name: old}
-- e2e/grow/9-more/other.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: d}
-- e2e/grow/readme.yaml --
not: read
-- e2e/grow/11-x.y.yaml --
not: read
`, `
e2e/grow: grow
  00-config: apply ConfigMap b apply Widget.example.com a apply Secret c
    expect Deployment.apps a to have spec.replicas = 1
  9-more: apply ConfigMap d
    expect Pod old to be gone
  10-assert:
    expect Widget.example.com a to have status.ready = true
`)
}

func TestAKnownObjectIsPatched(t *testing.T) {
	check(t, `
-- a/00-a.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
spec: {size: 1, color: red}
-- a/00-assert.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: owned}
-- a/01-a.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, labels: {x: "1"}}
spec: {size: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: owned}
spec: {replicas: 3}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fresh}
-- a/02-a.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestStep
delete:
- apiVersion: example.com/v1
  kind: Widget
  name: a
-- a/03-a.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
`, `
a: a
  00-a: apply Widget.example.com a
    expect Deployment.apps owned to exist
  01-a: patch Widget.example.com a {"metadata":{"labels":{"x":"1"}},"spec":{"size":2}}
  01-a-2: patch Deployment.apps owned {"spec":{"replicas":3}}
  01-a-3: apply ConfigMap fresh
  02-a: delete Widget.example.com a
  03-a: apply Widget.example.com a
`)
}

func TestATestStepNamesFilesAndObjects(t *testing.T) {
	check(t, `
-- more/b.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
-- more/c.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
-- gone.yaml --
apiVersion: v1
kind: Pod
metadata: {name: p}
-- a/00-a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {x: "1"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
-- a/01-step.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestStep
apply: [../more]
assert: [../more/c.yaml]
error: [../gone.yaml, ../missing.yaml]
delete:
- apiVersion: v1
  kind: ConfigMap
  labels: {x: "1"}
commands:
- command: kubectl get pods
- script: sleep 5
`, `
a: a
  00-a: apply ConfigMap a apply ConfigMap other
  01-step: delete ConfigMap a
  01-step-2: apply ConfigMap b apply ConfigMap c
    expect ConfigMap c to exist
    expect Pod p to be gone
  - a/01-step.yaml:5: error ../missing.yaml: the file does not exist
  - a/01-step.yaml:11: command "kubectl get pods": commands are not run
  - a/01-step.yaml:12: command "sleep 5": commands are not run
`)
}

// TestALostActionEndsTheCase has a second step in each case that must not be imported.
func TestALostActionEndsTheCase(t *testing.T) {
	const first = "-- a/00-a.yaml --\n" + widget + "-- a/02-later.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: later}\n"
	const step = "-- a/01-b.yaml --\napiVersion: kuttl.dev/v1beta1\nkind: TestStep\n"
	for _, c := range []struct{ name, files, left string }{
		{"command", step + "commands:\n- script: ./prepare.sh\n", `a/01-b.yaml:4: command "./prepare.sh": commands are not run, and this one may change the cluster`},
		{"template", "-- a/01-b.gotmpl.yaml --\n{{ .A }}\n", "a/01-b.gotmpl.yaml: the file: templates are not supported"},
		{"download", step + "apply: ['https://example.com/a.yaml']\n", "a/01-b.yaml:3: apply https://example.com/a.yaml: nothing is downloaded; save the file next to the case"},
		{"outside", step + "apply: [../../../a.yaml]\n", "a/01-b.yaml:3: apply ../../../a.yaml: the file is outside of the repository"},
		{"variable", step + "apply: [$FILE]\n", "a/01-b.yaml:3: apply $FILE: the path contains a variable"},
		{"other cluster", step + "kubeconfig: other\n", "a/01-b.yaml:3: kubeconfig: a check has only one cluster"},
		{"without a name", "-- a/01-b.yaml --\napiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", "a/01-b.yaml:1: apply Pod: it has no name"},
		{"unknown deletion", step + "delete:\n- apiVersion: v1\n  kind: Pod\n", "a/01-b.yaml:4: delete Pod: it has no name, and the case names no object of this kind"},
		{"endpoint", "-- a/01-b.yaml --\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n  url: $(endpoint.a)\n", "a/01-b.yaml:5: apply Pod b: $(endpoint.…) has a meaning of its own in scenarios"},
		{"damaged", "-- a/01-b.yaml --\nkind: [\n", "a/01-b.yaml:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := summary(imported(t, first+c.files+"-- a/03-assert.yaml --\n"+widget, "."))
			if !strings.Contains(got, "\n  - "+c.left) {
				t.Errorf("%q is not left out:\n%s", c.left, got)
			}
			if !strings.HasPrefix(got, "a: a, cut short\n  00-a: apply Widget.example.com a\n") || strings.Contains(got, "\n  02-later:") || strings.Contains(got, "\n  03-assert:") {
				t.Errorf("only the step before it has to be imported:\n%s", got)
			}
			if !strings.Contains(got, "steps 02-later, 03-assert: this may depend on the part of step 01-b that is left out") {
				t.Errorf("the later steps are not named:\n%s", got)
			}
		})
	}
}

func TestALostAssertionDoesNotEndTheCase(t *testing.T) {
	check(t, `
-- a/00-a.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
-- a/00-assert-2.yaml --
apiVersion: v1
kind: Pod
metadata: {labels: {app: a}}
---
apiVersion: example.com/v1
kind: Widget
status: {ready: true}
---
apiVersion: kuttl.dev/v1beta1
kind: TestAssert
timeout: 45
collectors: [{type: pod}]
commands: [{script: curl http://a}]
assertAll: [{celExpr: "true"}]
resourceRefs: [{kind: Pod}]
other: 1
-- a/00-assert.gotmpl.yaml --
{{ .A }}
-- a/00-errors.yaml --
apiVersion: v1
kind: Pod
metadata: {name: p}
status: {phase: Failed}
-- a/01-assert.yaml --
{
-- a/02-b.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
-- a/02-skipped.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestFile
testRunSelector: {matchLabels: {a: b}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: skipped}
`, `
a: a
  timeout 45s
  00-a: apply Widget.example.com a
    expect Widget.example.com a to have status.ready = true
  02-b: apply ConfigMap b
  - a/00-assert.gotmpl.yaml: the file: templates are not supported
  - a/00-assert-2.yaml:1: assert Pod: it has no name, and the case names no object of this kind
  - a/00-errors.yaml:1: error Pod p: a scenario can only expect that an object is absent, not that its fields differ
  - a/00-assert-2.yaml:14: assertAll: expressions are not supported
  - a/00-assert-2.yaml:12: collectors: they only collect information for a failed test
  - a/00-assert-2.yaml:13: command "curl http://a": commands are not run
  - a/00-assert-2.yaml:16: other: the field is not known
  - a/00-assert-2.yaml:15: resourceRefs: only expressions use them
  - a/01-assert.yaml:1: the file: is not YAML: did not find expected node content
  - a/02-skipped.yaml:1: the file: kuttl reads it only if a label of the test run selects it
`)
}

func TestSettingsOfAKuttlSuiteApplyToAllCases(t *testing.T) {
	check(t, `
-- kuttl-test.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestSuite
testDirs:
- tests/e2e/cases
- missing
timeout: 300
namespace: shop
commands:
- command: make deploy
crdDir: crds
manifestDirs: [manifests]
ignoreFiles: ["*-skip*.yaml"]
-- tests/e2e/cases/a/00-a.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: team}
-- tests/e2e/cases/a/00-assert.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- tests/e2e/cases/a/00-skip-this.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: skipped}
-- tests/e2e/cases/empty/readme.yaml --
`, `
tests/e2e/cases/a: a
  given Namespace shop
  given Namespace team
  timeout 1m0s
  00-a: apply Widget.example.com shop/a apply ClusterRole.rbac.authorization.k8s.io a apply RoleBinding.rbac.authorization.k8s.io team/a
    expect ConfigMap shop/a to exist
  - kuttl-test.yaml:5: testDirs missing: the folder does not exist
  - kuttl-test.yaml:9: a command of the suite: commands are not run; a check installs the controller itself
  - kuttl-test.yaml:10: crdDir: pass this folder to koboshi check with --crds or --with-crds
  - kuttl-test.yaml:11: manifestDirs: pass these folders to koboshi check with --given
`)
}

func TestFoldersOfCasesMayBeRelativeToAFolderAbove(t *testing.T) {
	s := imported(t, `
-- tests/e2e/kuttl-test.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestSuite
testDirs: [./tests/e2e/]
-- tests/e2e/a/00-a.yaml --
`+widget, "tests/e2e")
	if len(s.Scenarios()) != 1 || s.Cases[0].Dir != "tests/e2e/a" {
		t.Errorf("imported:\n%s", summary(s))
	}
}

func TestTheVariableOfTheNamespaceIsReplaced(t *testing.T) {
	s := imported(t, `
-- a/00-a.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
spec: {ref: {namespace: $NAMESPACE}, script: $NAMESPACE}
-- a/00-assert.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, namespace: $NAMESPACE}
`, ".")
	step := s.Scenarios()[0].Steps[0]
	spec := step.Apply[0].Object["spec"].(map[string]any)
	if text(spec, "ref", "namespace") != "default" || text(spec, "script") != "$NAMESPACE" || step.Expect[0].Namespace != "default" {
		t.Errorf("spec %v, expectation in %s", spec, step.Expect[0].Namespace)
	}
}

func TestACaseWithoutAnActionIsNotImported(t *testing.T) {
	check(t, "-- a/00-assert.yaml --\n"+widget, `
a: nothing
  - a: the whole case: no step that changes the cluster can be imported
`)
}
