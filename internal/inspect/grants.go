package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Unused is a permission that a role grants, and that no request has used since. Verb, Group,
// Resource and Path are as in the role, so each can be a wildcard.
type Unused struct {
	Permission
	// Names are the resourceNames of the rule; none means all objects.
	Names []string `json:"resourceNames,omitempty"`
	// Role is the kind and the name of the role, and File its file in the project.
	Role string `json:"role"`
	File string `json:"file,omitempty"`
	// Namespace is the namespace in which the role is bound; it is empty for the complete
	// cluster.
	Namespace string `json:"namespace,omitempty"`
	// Since is the time from which the permission has been known to be granted.
	Since time.Duration `json:"since"`
	// Unseen is the reason why the controller can need the permission although this session
	// shows no use of it. It is empty if a use would be seen.
	Unseen string `json:"unseen,omitempty"`
}

// grant is a granted permission.
type grant struct {
	Unused
	used bool
}

// same reports whether two grants are the same permission of the same role.
func (g *grant) same(o *grant) bool {
	return g.Permission == o.Permission && g.Role == o.Role && g.Namespace == o.Namespace && slices.Equal(g.Names, o.Names)
}

// addGrants replaces the permissions that the roles grant. Permissions that were granted before
// keep their uses.
func (s *Session) addGrants(e *trace.Entry) {
	before := s.granted
	s.grants, s.granted = e, nil
	for _, role := range e.Grants.Roles {
		for _, rule := range role.Rules {
			for _, g := range grantsOf(role, rule) {
				g.Since = e.At
				if i := slices.IndexFunc(before, g.same); i >= 0 {
					g.used, g.Since = before[i].used, before[i].Since
				}
				if !slices.ContainsFunc(s.granted, g.same) {
					s.granted = append(s.granted, g)
				}
			}
		}
	}
}

// grantsOf splits a rule into its verbs and resources. A rule about paths has an effect only in
// the complete cluster.
func grantsOf(role trace.Role, rule rbacv1.PolicyRule) (all []*grant) {
	add := func(p Permission) {
		g := &grant{Unused: Unused{Permission: p, Names: rule.ResourceNames, Role: strings.TrimSpace(role.Kind + " " + role.Name), File: role.File, Namespace: role.Namespace}}
		g.Unseen = cmp.Or(unseen(p), role.Idle[strings.TrimSuffix(p.Resource+"."+p.Group, ".")])
		all = append(all, g)
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				add(Permission{Verb: verb, Group: group, Resource: resource})
			}
		}
		for _, path := range rule.NonResourceURLs {
			if role.Namespace == "" {
				add(Permission{Verb: verb, Path: path})
			}
		}
	}
	return all
}

// requestVerbs lists the verbs of requests for resources. The API server checks other verbs in
// addition to these.
var requestVerbs = []string{rbacv1.VerbAll, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// unseen returns why no request shows the use of a permission, or "".
func unseen(p Permission) string {
	if p.Path != "" {
		return ""
	}
	if _, sub, _ := strings.Cut(p.Resource, "/"); sub == "finalizers" {
		return "the API server can check it when the controller sets an owner reference"
	}
	if !slices.Contains(requestVerbs, p.Verb) {
		return fmt.Sprintf("the API server checks %s together with another verb", p.Verb)
	}
	return ""
}

// useGrants marks the grants that a request needed.
func (s *Session) useGrants(c *trace.Call, p Permission) {
	asked, target := []Permission{p}, c.Target
	if p.Verb == "create" && target.Subresource == "" {
		target.Name = "" // the path of the request has no name, so no resourceNames match
	}
	if (p.Verb == "patch" || p.Verb == "update") && c.Code == 201 {
		// An apply that creates an object needs both permissions.
		p.Verb = "create"
		asked = append(asked, p)
	}
	for _, g := range s.granted {
		g.used = g.used || slices.ContainsFunc(asked, func(p Permission) bool { return g.allows(p, target) })
	}
	if p.Group == rbacv1.GroupName && request.IsWrite(c) && !strings.HasPrefix(p.Verb, "delete") && c.Code/100 == 2 {
		s.confer(c)
	}
}

// allows reports whether the grant includes a permission for an object, by the rules of
// Kubernetes' authorizer.
func (g *grant) allows(p Permission, t trace.Target) bool {
	if g.Verb != rbacv1.VerbAll && g.Verb != p.Verb {
		return false
	}
	if p.Resource == "" || g.Resource == "" {
		return p.Resource == "" && g.Resource == "" && matchesPath(g.Path, p.Path)
	}
	namespace := t.Namespace
	if t.Group == "" && t.Resource == "namespaces" {
		namespace = t.Name // a role in a namespace can allow reading this Namespace
	}
	return (g.Namespace == "" || g.Namespace == namespace) &&
		(g.Group == rbacv1.APIGroupAll || g.Group == p.Group) && matchesResource(g.Resource, p.Resource) &&
		(len(g.Names) == 0 || t.Name != "" && slices.Contains(g.Names, t.Name))
}

func matchesPath(pattern, path string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	return pattern == path || isPrefix && strings.HasPrefix(path, prefix)
}

// matchesResource reports whether a resource in a rule includes a resource, possibly with a
// subresource.
func matchesResource(pattern, resource string) bool {
	_, sub, _ := strings.Cut(resource, "/")
	return pattern == rbacv1.ResourceAll || pattern == resource || sub != "" && pattern == "*/"+sub
}

// confer marks the grants that the controller needed because it granted them to others. An
// account can grant only what it has.
func (s *Session) confer(c *trace.Call) {
	object, err := c.ResponseObject()
	if err != nil {
		return
	}
	rules := rulesOf(object)
	if ref, isBinding := object["roleRef"].(map[string]any); isBinding {
		kind, _ := ref["kind"].(string)
		name, _ := ref["name"].(string)
		role := Ref{Group: rbacv1.GroupName, Kind: kind, Name: name}
		if kind == "Role" {
			role.Namespace = c.Target.Namespace
		}
		rules = append(rules, rulesOf(s.Content(role, 0))...)
	}
	for _, rule := range rules {
		for _, passed := range grantsOf(trace.Role{}, rule) {
			for _, g := range s.granted {
				g.used = g.used || g.overlaps(passed.Permission)
			}
		}
	}
}

// overlaps reports whether a grant and a permission, both with possible wildcards, have
// something in common.
func (g *grant) overlaps(p Permission) bool {
	either := func(a, b string) bool { return a == b || a == "*" || b == "*" }
	if (g.Path == "") != (p.Path == "") {
		return false
	}
	if g.Path != "" {
		return either(g.Verb, p.Verb) && (matchesPath(g.Path, p.Path) || matchesPath(p.Path, g.Path))
	}
	return either(g.Verb, p.Verb) && either(g.Group, p.Group) && (matchesResource(g.Resource, p.Resource) || matchesResource(p.Resource, g.Resource))
}

// rulesOf returns the rules of a role, or none if the object is no role.
func rulesOf(object map[string]any) []rbacv1.PolicyRule {
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"rules": object["rules"]}, &role); err != nil {
		return nil
	}
	return role.Rules
}

// unused returns the grants that no request has used, sorted by role and resource.
func (s *Session) unused() []Unused {
	all := []Unused{}
	for _, g := range s.granted {
		if !g.used && !s.revealed(g) {
			all = append(all, g.Unused)
		}
	}
	slices.SortFunc(all, func(a, b Unused) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), strings.Compare(a.Namespace, b.Namespace),
			comparePermissions(a.Permission, b.Permission), slices.Compare(a.Names, b.Names))
	})
	return all
}

// revealed reports whether an unused get or list allows nothing that the used watch of the same
// role does not allow. Clients also need list if the server does not stream lists.
func (s *Session) revealed(g *grant) bool {
	if g.Verb != "get" && g.Verb != "list" {
		return false
	}
	watch := *g
	watch.Verb = "watch"
	i := slices.IndexFunc(s.granted, watch.same)
	return i >= 0 && s.granted[i].used
}
