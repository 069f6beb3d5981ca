package project

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// identity is the service account of the manager, or of the only one that
// anything is bound to. Where config/rbac has no more than the role that
// controller-gen writes, an account is made up for it.
func (p *Project) identity(parts *parts) subject.ServiceAccount {
	if p.manager != nil {
		return subject.ServiceAccount{
			Namespace: namespaceOf(p.manager.workload.Object), Name: cmp.Or(p.manager.template.Spec.ServiceAccountName, "default"),
		}
	}
	var bound []subject.ServiceAccount
	for _, b := range bindings(*parts) {
		for _, s := range b.Subjects {
			account := subject.ServiceAccount{Namespace: cmp.Or(s.Namespace, b.namespace, "default"), Name: s.Name}
			if s.Kind == "ServiceAccount" && !slices.Contains(bound, account) {
				bound = append(bound, account)
			}
		}
	}
	switch len(bound) {
	case 1:
		return bound[0]
	case 0:
		return p.madeUp(parts)
	}
	p.note("roles are bound to %d service accounts and no Deployment says which is the controller's: it runs as an administrator, and nothing is said of RBAC (%s names the folder of its own)", len(bound), flagRBAC)
	return subject.ServiceAccount{}
}

// madeUp binds a role that is bound to nobody to an account of our own.
func (p *Project) madeUp(parts *parts) subject.ServiceAccount {
	var unbound []document
	for _, d := range parts.install {
		if d.is(groupRBAC, "ClusterRole", "Role") && strings.HasSuffix(d.Object.GetName(), "manager-role") {
			unbound = append(unbound, d)
		}
	}
	if len(unbound) == 0 {
		p.note("there is no Deployment, service account or role in config/: the controller runs as an administrator, and nothing is said of RBAC (%s says where they are)", flagRBAC)
		return subject.ServiceAccount{}
	}
	account := subject.ServiceAccount{Namespace: "default", Name: "controller-manager"}
	for _, d := range unbound {
		if d.is(groupRBAC, "Role") {
			account.Namespace = namespaceOf(d.Object)
		}
	}
	for _, d := range unbound {
		kind, namespace := d.Object.GetKind()+"Binding", d.Object.GetNamespace()
		binding := object(groupRBAC+"/v1", kind, namespace, d.Object.GetName()+"-made-up")
		binding.Object["roleRef"] = map[string]any{"apiGroup": groupRBAC, "kind": d.Object.GetKind(), "name": d.Object.GetName()}
		binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account.Name, "namespace": account.Namespace}}
		parts.install = append(parts.install, document{File: d.File, Object: binding})
		p.note("%s of %s is bound to nobody: the controller runs as a service account made up for it (%s says where the real one is)", d, d.File, flagRBAC)
	}
	return account
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	rbacv1.RoleBinding
	namespace string // empty for the whole cluster
}

func bindings(parts parts) []binding {
	var all []binding
	for _, d := range parts.install {
		if !d.is(groupRBAC, "RoleBinding", "ClusterRoleBinding") {
			continue
		}
		var b binding
		// What is wrong with it, the API server says when it is created.
		if runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, &b.RoleBinding) != nil {
			continue
		}
		if d.Object.GetKind() == "RoleBinding" {
			b.namespace = namespaceOf(d.Object)
		}
		all = append(all, b)
	}
	return all
}

// binds reports whether the binding is for the account, by name or by group.
func (b binding) binds(account subject.ServiceAccount) bool {
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case "ServiceAccount":
			return s.Name == account.Name && cmp.Or(s.Namespace, b.namespace) == account.Namespace
		case "Group":
			return slices.Contains([]string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"}, s.Name)
		}
		return false
	})
}

// roles are what is bound to the account, of what is shipped.
func (p *Project) roles(parts parts, account subject.ServiceAccount) []subject.Role {
	if account.Name == "" {
		return nil
	}
	var roles []subject.Role
	for _, b := range bindings(parts) {
		if !b.binds(account) {
			continue
		}
		in := "" // a ClusterRole's
		if b.RoleRef.Kind == "Role" {
			in = b.namespace
		}
		d := parts.find(b.RoleRef.Kind, in, b.RoleRef.Name)
		if d == nil {
			p.note("%s %s is bound to the controller by %s but is not in config/: what it grants is used, but not checked", b.RoleRef.Kind, b.RoleRef.Name, b.Name)
			continue
		}
		roles = append(roles, subject.Role{
			Name: b.RoleRef.Name, Namespace: b.namespace, File: d.File, Object: d.Object, Idle: idle(d.Object),
		})
	}
	if len(roles) == 0 {
		p.note("no role in config/ is bound to the controller's service account %s/%s: %s says where they are, if it should have any", account.Namespace, account.Name, flagRBAC)
	}
	return roles
}

// Why a controller does not use here what it would use in a cluster.
const (
	metricsOff  = "metrics are off here"
	electionOff = "a leader is elected only where two instances run"
)

// idle are those resources of a role that serve what is off here.
func idle(role unstructured.Unstructured) map[string]string {
	reasons := map[string]string{
		"tokenreviews.authentication.k8s.io":        metricsOff,
		"subjectaccessreviews.authorization.k8s.io": metricsOff,
		"leases.coordination.k8s.io":                electionOff,
	}
	if strings.Contains(role.GetName(), "leader-election") {
		// Who is elected says so by an event; once it was written to a ConfigMap.
		for _, resource := range []string{"events", "events.events.k8s.io", "configmaps", "configmaps/status"} {
			reasons[resource] = electionOff
		}
	}
	var typed rbacv1.ClusterRole
	if runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed) != nil {
		return nil
	}
	var found map[string]string
	for _, rule := range typed.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				key := strings.TrimSuffix(resource+"."+group, ".")
				if reason, ok := reasons[key]; ok {
					if found == nil {
						found = map[string]string{}
					}
					found[key] = reason
				}
			}
		}
	}
	return found
}
