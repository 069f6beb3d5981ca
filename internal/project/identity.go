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

// clusterAdmin is the role with all permissions that every cluster has.
const clusterAdmin = "cluster-admin"

// identity returns the service account of the manager, or the only service account with
// bindings. If config/rbac has only the role that controller-gen writes, identity adds an
// account for that role.
func (p *Project) identity(parts *parts) (subject.ServiceAccount, error) {
	if p.manager != nil {
		account := accountOf(p.manager.workload)
		return account, p.supplyAccount(parts, account)
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
		return bound[0], nil
	case 0:
		return p.madeUp(parts), nil
	}
	p.note("roles are bound to %d service accounts, and no Deployment shows which of them the controller uses, so it runs as an administrator and RBAC is not checked (use %s to name a folder with only the controller's objects)", len(bound), flagRBAC)
	return subject.ServiceAccount{}, nil
}

// supplyAccount supplies the permissions of an account that the installation names but does not
// contain, because another tool creates it: Operator Lifecycle Manager, for example. Without these
// permissions, every request would be forbidden, and the check would blame the controller.
func (p *Project) supplyAccount(parts *parts, account subject.ServiceAccount) error {
	if account.Name == "default" || parts.has("ServiceAccount", account.Namespace, account.Name) {
		return nil
	}
	if all := bindings(*parts); slices.ContainsFunc(all, func(b binding) bool { return b.binds(account) }) {
		return nil
	}
	if moved := parts.rebind(account); len(moved) > 0 {
		p.note("the service account %s/%s is not in the installation; bindings that name it in another namespace were changed to this namespace: %s", account.Namespace, account.Name, strings.Join(moved, ", "))
		return nil
	}
	if err := p.notWhole(account.Namespace + "/" + account.Name); err != nil {
		return err
	}
	b := object(groupRBAC+"/v1", "ClusterRoleBinding", "", account.Name+"-made-up")
	b.Object["roleRef"] = map[string]any{"apiGroup": groupRBAC, "kind": "ClusterRole", "name": clusterAdmin}
	b.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account.Name, "namespace": account.Namespace}}
	parts.install = append(parts.install, document{Object: b})
	p.note("the service account %s/%s and its roles are not in the installation, so the controller has all permissions and RBAC is not checked (use %s to name their file or folder)", account.Namespace, account.Name, flagRBAC)
	return nil
}

// rebind changes bindings that name an account of the same name in another namespace, so that they
// bind the given account, unless the other account exists. It returns the changed bindings.
func (ps *parts) rebind(account subject.ServiceAccount) (changed []string) {
	for _, d := range ps.install {
		if !d.is(groupRBAC, "RoleBinding", "ClusterRoleBinding") {
			continue
		}
		subjects, _, _ := unstructured.NestedSlice(d.Object.Object, "subjects")
		found := false
		for _, s := range subjects {
			s, ok := s.(map[string]any)
			if !ok || s["kind"] != "ServiceAccount" || s["name"] != account.Name {
				continue
			}
			if in, _ := s["namespace"].(string); !ps.has("ServiceAccount", cmp.Or(in, namespaceOf(d.Object)), account.Name) {
				s["namespace"], found = account.Namespace, true
			}
		}
		if found {
			d.Object.Object["subjects"] = subjects // NestedSlice returns a copy
			changed = append(changed, d.Object.GetKind()+" "+d.Object.GetName())
		}
	}
	return changed
}

// madeUp binds unbound manager roles to an account that it adds.
func (p *Project) madeUp(parts *parts) subject.ServiceAccount {
	var unbound []document
	for _, d := range parts.install {
		if d.is(groupRBAC, "ClusterRole", "Role") && strings.HasSuffix(d.Object.GetName(), "manager-role") {
			unbound = append(unbound, d)
		}
	}
	if len(unbound) == 0 {
		p.note("there is no Deployment, service account or role in the installation, so the controller runs as an administrator and RBAC is not checked (use %s to name their file or folder)", flagRBAC)
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
		p.note("%s in %s has no binding, so the controller runs as a service account that is created for it (use %s to name the file of the real account)", d, d.File, flagRBAC)
	}
	return account
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	rbacv1.RoleBinding
	namespace string // empty for the entire cluster
}

func bindings(parts parts) []binding {
	var all []binding
	for _, d := range parts.install {
		if !d.is(groupRBAC, "RoleBinding", "ClusterRoleBinding") {
			continue
		}
		var b binding
		// A malformed binding is skipped here, because the API server reports the mistake
		// when the binding is created.
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

// binds reports whether the binding applies to the account, by name or by group.
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

// roles returns the project's roles that are bound to the account, and the names of bound
// roles that the project does not have.
func (p *Project) roles(parts parts, account subject.ServiceAccount) (roles []subject.Role, unknown []string) {
	if account.Name == "" {
		return nil, nil
	}
	for _, b := range bindings(parts) {
		if !b.binds(account) {
			continue
		}
		in := "" // for a ClusterRole
		if b.RoleRef.Kind == "Role" {
			in = b.namespace
		}
		d := parts.find(b.RoleRef.Kind, in, b.RoleRef.Name)
		if d == nil {
			unknown = append(unknown, b.RoleRef.Name)
			if strings.HasSuffix(b.Name, "-made-up") {
				continue // already noted
			}
			p.note("%s %s is bound to the controller by %s but is not in the installation, so it is not checked for unused permissions", b.RoleRef.Kind, b.RoleRef.Name, b.Name)
			continue
		}
		roles = append(roles, subject.Role{
			Name: b.RoleRef.Name, Namespace: b.namespace, File: d.File, Object: d.Object, Idle: idle(d.Object),
		})
	}
	if len(roles)+len(unknown) == 0 {
		p.note("no role in the installation is bound to the controller's service account %s/%s; if it needs any, use %s to name their file or folder", account.Namespace, account.Name, flagRBAC)
	}
	return roles, unknown
}

// These constants give the reasons why a controller does not use a permission in a check, although
// it would use it in a cluster.
const (
	metricsOff  = "Koboshi turns metrics off"
	electionOff = "a leader is elected only when two instances run"
)

// idle returns the resources of a role that are not used here, because Koboshi turns off the
// features that need them. The values of the map are the reasons.
func idle(role unstructured.Unstructured) map[string]string {
	reasons := map[string]string{
		"tokenreviews.authentication.k8s.io":        metricsOff,
		"subjectaccessreviews.authorization.k8s.io": metricsOff,
		"leases.coordination.k8s.io":                electionOff,
	}
	if strings.Contains(role.GetName(), "leader-election") {
		// A new leader writes an event, and older releases of controller-runtime used a
		// ConfigMap as the lock.
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
