package project_test

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestAConfigurationFileElectsNoLeader(t *testing.T) {
	config := strings.NewReplacer("\n", "\n    ").Replace(`
apiVersion: controller-runtime.sigs.k8s.io/v1alpha1
kind: ControllerManagerConfig
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: "127.0.0.1:8080"}
webhook: {port: 9443}
internalCertManagement: {enable: true}
leaderElection: {leaderElect: true, resourceName: x}`)
	p, told, err := fromManifests(t, installation(t, `  depth.yaml: "depth: 7"`, "  depth.yaml: |"+config), project.Options{Env: []string{"FLEET_NAME=x"}})
	if err != nil {
		t.Fatal(err)
	}
	got := string(p.Subject.Files[0].Files["depth.yaml"])
	for _, want := range []string{"leaderElect: false", "resourceName: x", `bindAddress: "0"`, `healthProbeBindAddress: :0`, "port: 9443", "enable: false"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the file:\n%s", want, got)
		}
	}
	if !told.has("note: leader election, metrics, probes and generated certificates are turned off in /etc/chart/depth.yaml") {
		t.Errorf("it is not told:\n%s", strings.Join(*told, "\n"))
	}
}
