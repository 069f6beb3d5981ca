package project_test

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestAServiceAccountThatAnotherToolCreatesKeepsItsRoles(t *testing.T) {
	// kustomize renames an account in a binding only if the account is one of its resources.
	dir := boats(t, map[string]string{
		"config/rbac/kustomization.yaml":   "resources: [role.yaml, bindings.yaml]\n",
		"config/rbac/service_account.yaml": "",
	})
	p := load(t, project.Options{Dir: dir})
	account := p.Subject.Identity
	if account.Namespace != "boats-system" {
		t.Fatalf("identity %v", account)
	}
	if len(p.Subject.Roles) == 0 {
		t.Errorf("the account has no roles")
	}
	wantNotes(t, p, "bindings that name it in another namespace were changed to this namespace: ClusterRoleBinding boats-manager-rolebinding")
	for _, note := range p.Notes {
		if strings.Contains(note, "all permissions") {
			t.Errorf("the account is an administrator, although it has roles: %s", note)
		}
	}
}

func TestWithoutItsServiceAccountAControllerIsNotBlamedForMissingPermissions(t *testing.T) {
	dir := boats(t, map[string]string{
		"config/rbac/kustomization.yaml":   "resources: [role.yaml]\n",
		"config/rbac/service_account.yaml": "", "config/rbac/bindings.yaml": "",
	})
	p := load(t, project.Options{Dir: dir})
	wantNotes(t, p, "RBAC is not checked (use --rbac")
	if got := p.Subject.UnknownRoles; len(got) != 1 || got[0] != "cluster-admin" {
		t.Errorf("roles %q", got)
	}
	if profile, _ := p.Subject.Profile(); profile != subject.ProfileWorkloads {
		t.Errorf("profile %s", profile)
	}
}

func TestAKustomizationThatIsOnlyAPartNamesThoseThatIncludeIt(t *testing.T) {
	dir := boats(t, map[string]string{
		"config/rbac/kustomization.yaml":   "resources: [role.yaml]\n",
		"config/rbac/service_account.yaml": "", "config/rbac/bindings.yaml": "",
		"config/whole/kustomization.yaml":    "resources: [../default]\n",
		"config/outside/kustomization.yaml":  "bases: [../whole]\n",
		"tests/kustomization.yaml":           "resources: [../config/whole]\n",
		"config/separate/kustomization.yaml": "resources: [../rbac]\n",
	})
	_, err := project.Load(t.Context(), project.Options{Dir: dir})
	if err == nil || !strings.HasSuffix(err.Error(), "with --kustomization: config/outside, config/whole") {
		t.Errorf("the error is %v", err)
	}
	if _, err := project.Load(t.Context(), project.Options{Dir: dir, Kustomization: "config/default"}); err != nil {
		t.Errorf("a kustomization that the user names is refused: %v", err)
	}
}
