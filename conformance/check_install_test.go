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

func TestControllerCanLookUpItsOwnPodAndDeployment(t *testing.T) {
	t.Parallel()
	crd, err := os.ReadFile(filepath.Join("testdata", "check", "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	installation := strings.NewReplacer(
		"- {apiGroups: [\"\"], resources: [secrets], verbs: [\"*\"]}", "- {apiGroups: [\"\", apps], resources: [secrets, pods, deployments], verbs: [\"*\"]}",
		"spec:\n  template:\n", "spec:\n  selector: {matchLabels: {app: widgets}}\n  template:\n    metadata: {labels: {app: widgets}}\n",
	).Replace(widgetInstallation)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "own.sh"), `set -e
program=$1 kubectl="$2 kubectl --namespace=widgets get"
[ "$($kubectl pod "$HOSTNAME" --output=jsonpath='{.status.phase} {.metadata.labels.app}')" = "Running widgets" ]
$kubectl deployment widgets
exec "$program"
`)
	c := checkIn(t, dir, "--manifests=-", "--scenario=secret.yaml", "--workers=1", "--seed=7", "--plan", "--", "sh", "own.sh", checked(t), koboshi)
	c.cmd.Stdin = strings.NewReader(string(crd) + installation)
	c.start(t)
	c.end(t, 0)
	if out := c.stdout.String(); !strings.Contains(out, "secrets default/demo-first") {
		t.Errorf("no fault is planned at the creation of a Secret:\n%s", out)
	}
}

// TestControllerSeesItsVolumesAtTheirPaths checks a program whose file paths are fixed: no argument
// or variable sets them. Without its files, the program would end at once.
func TestControllerSeesItsVolumesAtTheirPaths(t *testing.T) {
	t.Parallel()
	if !namespaces() {
		t.Skip("this system allows no user namespaces")
	}
	crd, err := os.ReadFile(filepath.Join("testdata", "check", "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	installation := strings.Replace(widgetInstallation, `        env:
        - {name: SECRET, value: "${SOURCE:=source}"}
`, `        volumeMounts:
        - {name: settings, mountPath: /etc/koboshi-widgets}
        - {name: state, mountPath: /koboshi-widgets/state}
      volumes:
      - {name: settings, configMap: {name: settings}}
      - {name: state, emptyDir: {}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: widgets}
data: {secret: source}
`, 1)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "fixed.sh"), `set -e
SECRET=$(cat /etc/koboshi-widgets/secret)
echo started >>/koboshi-widgets/state/log
if echo x 2>/dev/null >/etc/koboshi-widgets/new; then echo "a ConfigMap is writable" >&2; exit 1; fi
export SECRET
exec "$@"
`)
	c := checkIn(t, dir, "--manifests=-", "--scenario=secret.yaml", "--workers=1", "--seed=7", "--plan", "--", "sh", "fixed.sh", checked(t))
	c.cmd.Stdin = strings.NewReader(string(crd) + installation)
	c.start(t)
	c.end(t, 0)
	if out := c.stdout.String(); !strings.Contains(out, "secrets default/demo-first") {
		t.Errorf("no fault is planned at the creation of a Secret:\n%s", out)
	}
	if _, err := os.Stat("/etc/koboshi-widgets"); !os.IsNotExist(err) {
		t.Errorf("the machine itself was changed: %v", err)
	}
}
