package olm

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// grant moves the rules of the ServiceAccounts of Deployments to the permissions of the
// ClusterServiceVersion. OLM makes ServiceAccounts, roles and bindings from them, so these objects are
// left out, unless others need them, too.
func (m *maker) grant() error {
	accounts := m.accountsOfDeployments()
	moved, needed := map[string]bool{}, map[string]bool{} // roles, by roleKey
	for _, b := range m.bindings {
		role := m.roleOf(b)
		own, others := m.subjects(b, accounts)
		if role == nil || len(own) == 0 {
			needed[roleKeyOf(b)] = true
			m.held = append(m.held, b)
			continue
		}
		moved[roleKeyOf(b)] = true
		to := m.clusterPermissions
		if b.GetKind() == "RoleBinding" {
			to = m.permissions
		}
		rules, _ := role.Object["rules"].([]any)
		for _, account := range own {
			to[account] = append(to[account], rules...)
		}
		if len(others) > 0 {
			needed[roleKeyOf(b)] = true
			b.Object["subjects"] = others
			m.held = append(m.held, b)
		}
	}
	for _, r := range m.roles {
		if key := r.GetKind() + "/" + r.GetName(); !moved[key] || needed[key] {
			m.held = append(m.held, r)
		}
	}
	m.makeAccounts(accounts)
	return nil
}

// defaultAccount is the ServiceAccount of Pods that name none.
const defaultAccount = "default"

// makeAccounts lets OLM make the ServiceAccounts of Deployments. It makes an account only if the
// account has permissions, which may be empty. The account "default" exists anyway.
func (m *maker) makeAccounts(accounts []string) {
	for _, account := range accounts {
		_, some := m.permissions[account]
		_, more := m.clusterPermissions[account]
		if !some && !more && account != defaultAccount {
			m.permissions[account] = []any{}
		}
	}
	for _, a := range m.accounts {
		if !slices.Contains(accounts, a.GetName()) {
			m.held = append(m.held, a)
			continue
		}
		if fields := lostOfAccount(a); len(fields) > 0 {
			m.note("OLM makes ServiceAccount %s itself, without its %s", a.GetName(), strings.Join(fields, ", "))
		}
	}
}

// lostOfAccount lists the fields of a ServiceAccount that have an effect and that OLM does not know.
func lostOfAccount(account unstructured.Unstructured) (fields []string) {
	for _, field := range slices.Sorted(maps.Keys(account.Object)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, field) {
			fields = append(fields, field)
		}
	}
	if len(account.GetAnnotations()) > 0 {
		fields = append(fields, "annotations")
	}
	return fields
}

// accountsOfDeployments returns the names of the ServiceAccounts that Deployments use.
func (m *maker) accountsOfDeployments() (names []string) {
	for _, d := range m.deployments {
		if name := accountOf(d); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func accountOf(deployment unstructured.Unstructured) string {
	if name := textAt(deployment.Object, "spec", "template", "spec", "serviceAccountName"); name != "" {
		return name
	}
	return defaultAccount
}

// subjects splits the subjects of a binding into accounts of Deployments and others.
func (m *maker) subjects(binding unstructured.Unstructured, accounts []string) (own []string, others []any) {
	for _, subject := range listAt(binding.Object, "subjects") {
		name := textAt(subject, "name")
		if textAt(subject, "kind") == "ServiceAccount" && textAt(subject, "namespace") == m.namespace && slices.Contains(accounts, name) {
			own = append(own, name)
		} else {
			others = append(others, subject)
		}
	}
	return own, others
}

// roleOf returns the role of a binding if its rules are known: it belongs to the installation, and its
// rules are not collected from other roles.
func (m *maker) roleOf(binding unstructured.Unstructured) *unstructured.Unstructured {
	for i, r := range m.roles {
		if r.GetKind()+"/"+r.GetName() == roleKeyOf(binding) && r.Object["aggregationRule"] == nil {
			return &m.roles[i]
		}
	}
	return nil
}

func roleKeyOf(binding unstructured.Unstructured) string {
	return textAt(binding.Object, "roleRef", "kind") + "/" + textAt(binding.Object, "roleRef", "name")
}

// permissionList returns permissions in the form of a ClusterServiceVersion.
func permissionList(of map[string][]any) []any {
	var all []any
	for _, account := range slices.Sorted(maps.Keys(of)) {
		all = append(all, map[string]any{"serviceAccountName": account, "rules": of[account]})
	}
	return all
}
