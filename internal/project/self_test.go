package project

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAControllerThatIsNoDeploymentHasOnlyItsPod(t *testing.T) {
	for _, c := range []struct {
		kind, account string
		want          []string
	}{
		{"Deployment", "pilot", []string{"Namespace harbour", "Deployment pilot", "Pod pilot-0"}},
		{"Deployment", "", []string{"Namespace harbour", "ServiceAccount default", "Deployment pilot", "Pod pilot-0"}},
		{"StatefulSet", "pilot", []string{"Namespace harbour", "Pod pilot-0"}},
		{"DaemonSet", "default", []string{"Namespace harbour", "ServiceAccount default", "Pod pilot-0"}},
	} {
		m := &manager{
			workload: document{Object: object("apps/v1", c.kind, "harbour", "pilot")},
			template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: c.account}},
		}
		self, err := m.self()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range self {
			got = append(got, o.GetKind()+" "+o.GetName())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s with the account %q, -want +got:\n%s", c.kind, c.account, diff)
		}
	}
}
