package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// widgetInstallation installs the controller in conformance/checked, in the form in which
// helm template prints a chart.
const widgetInstallation = `
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: widgets, namespace: widgets}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: widgets}
rules:
- {apiGroups: [example.com], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [secrets], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: widgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: widgets}
subjects: [{kind: ServiceAccount, name: widgets, namespace: widgets}]
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: widgets, namespace: widgets}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: widgets, namespace: widgets}
spec:
  template:
    spec:
      serviceAccountName: widgets
      containers:
      - name: widgets
        image: registry.example.com/widgets:v1
        env:
        - {name: SECRET, value: "${SOURCE:=source}"}
`

func TestCheckReadsAnInstallationFromAPipe(t *testing.T) {
	t.Parallel()
	crd, err := os.ReadFile(filepath.Join("testdata", "check", "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := checkIn(t, t.TempDir(), "--manifests=-", "--scenario=secret.yaml", "--workers=1", "--seed=7", "--plan", "--", checked(t))
	c.cmd.Stdin = strings.NewReader(string(crd) + widgetInstallation)
	c.start(t)
	c.end(t, 0)
	// The children are Secrets only if the controller has the environment of its Deployment.
	if out := c.stdout.String(); !strings.Contains(out, "secrets default/demo-first") {
		t.Errorf("no fault is planned at the creation of a Secret:\n%s", out)
	}
	for _, want := range []string{"ServiceMonitor widgets/widgets", "profile gc: no role of the controller allows it to write workloads"} {
		if !strings.Contains(c.stderr.String(), want) {
			t.Errorf("standard error does not contain %q:\n%s", want, c.stderr)
		}
	}
}
