package subject

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Grants returns the permissions that the roles of the controller grant, in the form that a trace
// contains. A role that takes its rules from other roles, or cannot be read, is unknown.
func (s Subject) Grants() trace.Grants {
	if s.Identity.Name == "" {
		return trace.Grants{}
	}
	g := trace.Grants{Account: s.Identity.Namespace + "/" + s.Identity.Name}
	g.Unknown = append(g.Unknown, s.UnknownRoles...)
	for _, role := range s.Roles {
		var typed rbacv1.ClusterRole // the rules of a Role have the same type
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object.Object, &typed)
		if err != nil || typed.AggregationRule != nil {
			g.Unknown = append(g.Unknown, role.Name)
			continue
		}
		g.Roles = append(g.Roles, trace.Role{
			Kind: role.Object.GetKind(), Name: role.Name, Namespace: role.Namespace, File: role.File, Rules: typed.Rules, Idle: role.Idle,
		})
	}
	return g
}
