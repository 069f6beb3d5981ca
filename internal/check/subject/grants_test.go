package subject_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestGrantsAreTheRulesOfRolesThatAreKnown(t *testing.T) {
	role := func(kind string, fields map[string]any) unstructured.Unstructured {
		fields["kind"] = kind
		return unstructured.Unstructured{Object: fields}
	}
	rules := []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "verbs": []any{"get"}, "resourceNames": []any{"web"}}}
	s := subject.Subject{
		Identity: pilot,
		Roles: []subject.Role{
			{Name: "own", Namespace: "a", File: "role.yaml", Object: role("Role", map[string]any{"rules": rules}), Idle: map[string]string{"leases.coordination.k8s.io": "no election"}},
			{Name: "collected", Object: role("ClusterRole", map[string]any{"aggregationRule": map[string]any{}})},
			{Name: "broken", Object: role("ClusterRole", map[string]any{"rules": "all"})},
		},
		UnknownRoles: []string{"cluster-admin"},
	}
	want := trace.Grants{
		Account: pilot.Namespace + "/" + pilot.Name,
		Roles: []trace.Role{{
			Kind: "Role", Name: "own", Namespace: "a", File: "role.yaml", Idle: map[string]string{"leases.coordination.k8s.io": "no election"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}, ResourceNames: []string{"web"}}},
		}},
		Unknown: []string{"cluster-admin", "collected", "broken"},
	}
	if diff := cmp.Diff(want, s.Grants()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (subject.Subject{Roles: s.Roles}).Grants(); got.Account != "" || got.Roles != nil {
		t.Errorf("an administrator has %+v", got)
	}
}
