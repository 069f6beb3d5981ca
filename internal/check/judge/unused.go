package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// An Unused is a permission that a role grants, and that the controller did not need.
type Unused struct {
	Role string `json:"role"`
	// Namespace is the namespace in which the role is bound; it is empty for the complete
	// cluster.
	Namespace string `json:"namespace,omitempty"`
	File      string `json:"file,omitempty"`
	Permission
}

// UnusedPermissions returns the permissions of the controller's roles that no run needed. A run
// needs a permission for the controller's own requests, or because the controller grants the
// permission to others. UnusedPermissions returns nothing if there is no service account, or no run
// has a request.
func UnusedPermissions(s *subject.Subject, runs []*evidence.Run) (unused []Unused) {
	if !checksPermissions(s) {
		return nil
	}
	all := allRequests(runs)
	if len(all) == 0 {
		return nil
	}
	granted := grants(s, all)
	for _, role := range s.Roles {
		for _, r := range rulesOf(role.Object.Object) {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					if notSeen(group, resource) || role.Idle[strings.TrimSuffix(resource+"."+group, ".")] != "" {
						continue
					}
					for _, verb := range unusedVerbs(r, group, resource, role.Namespace, all, granted) {
						unused = append(unused, Unused{role.Name, role.Namespace, role.File, Permission{Verb: verb, Group: group, Resource: resource}})
					}
				}
			}
		}
	}
	slices.SortFunc(unused, compareUnused)
	return slices.Compact(unused)
}

func compareUnused(a, b Unused) int {
	return cmp.Or(strings.Compare(a.where(), b.where()), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
}

// where names the role and its file.
func (u Unused) where() string {
	if u.File == "" {
		return u.Role
	}
	return u.Role + " in " + u.File
}

// RemarkUnused returns one finding for each resource of a role, with all verbs that were not
// used. The list must be in the order of UnusedPermissions.
func RemarkUnused(unused []Unused) (remarks []Finding) {
	for len(unused) > 0 {
		first, verbs := unused[0], []string(nil)
		for len(unused) > 0 {
			next := unused[0]
			next.Verb = first.Verb
			if next != first {
				break
			}
			verbs, unused = append(verbs, unused[0].Verb), unused[1:]
		}
		f := Finding{
			Verdict: RBACUnused, Unneeded: permissions(first, verbs),
			Sentence: fmt.Sprintf("%s: %s on %s was never used", first.where(), strings.Join(verbs, ", "), qualified(first.Group, first.Resource)),
		}
		f.ID = f.identity(first.where() + first.Namespace + qualified(first.Group, first.Resource))
		remarks = append(remarks, f)
	}
	return remarks
}

// permissions returns one permission for each verb on the resource of a rule.
func permissions(u Unused, verbs []string) (all []Permission) {
	for _, verb := range verbs {
		all = append(all, Permission{Verb: verb, Group: u.Group, Resource: u.Resource})
	}
	return all
}

// notSeen reports whether a resource is used in ways that no run shows: by admission, or
// by leader election and metrics, which are turned off in a check.
func notSeen(group, resource string) bool {
	if _, sub, found := strings.Cut(resource, "/"); found {
		return sub == "finalizers"
	}
	groups := []string{group}
	if group == "*" {
		groups = []string{"", "events.k8s.io", "coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}
	}
	return slices.ContainsFunc(groups, func(group string) bool {
		return request.IsBookkeepingTarget(trace.Target{Group: group, Resource: resource})
	})
}

// unusedVerbs returns the verbs of a rule that were not used on one of its resources.
func unusedVerbs(r rbacv1.PolicyRule, group, resource, namespace string, all []asked, granted []rbacv1.PolicyRule) []string {
	var unused []string
	for _, verb := range r.Verbs {
		used := slices.ContainsFunc(all, func(a asked) bool {
			return (matches(verb, a.Verb) || verb == "create" && a.creates()) && matches(group, a.Group) && matchesResource(resource, a.Resource) &&
				(namespace == "" || a.call.Target.Namespace == namespace) &&
				(len(r.ResourceNames) == 0 || a.call.Target.Name == "" || slices.Contains(r.ResourceNames, a.call.Target.Name))
		})
		if !used && !grantedTo(granted, verb, group, resource) {
			unused = append(unused, verb)
		}
	}
	if slices.Contains(r.Verbs, "watch") && !slices.Contains(unused, "watch") {
		// If watch is used, get and list are not reported: watching reveals everything that
		// getting and listing would, and clients need list if the server does not stream
		// lists.
		unused = slices.DeleteFunc(unused, func(verb string) bool { return verb == "get" || verb == "list" })
	}
	return unused
}

// grants returns the rules that the controller granted to others: the rules of the roles that it
// wrote, and of the roles to which its bindings refer. Kubernetes allows an account to grant only
// the permissions that it has.
func grants(s *subject.Subject, all []asked) (rules []rbacv1.PolicyRule) {
	for _, a := range all {
		if a.Group != rbacv1.GroupName || a.call.Code/100 != 2 || !slices.Contains([]string{"create", "update", "patch"}, a.Verb) {
			continue
		}
		object, err := a.call.ResponseObject()
		if err != nil || object == nil {
			continue
		}
		rules = append(rules, rulesOf(object)...)
		if ref, found := object["roleRef"].(map[string]any); found {
			rules = append(rules, installedRules(s, ref, a.call.Target.Namespace)...)
		}
	}
	return rules
}

// installedRules returns the rules of the role that a binding refers to, if the role was installed
// with the controller.
func installedRules(s *subject.Subject, ref map[string]any, namespace string) []rbacv1.PolicyRule {
	for _, o := range s.Install {
		if o.GroupVersionKind().Group == rbacv1.GroupName && o.GetKind() == ref["kind"] && o.GetName() == ref["name"] &&
			(o.GetNamespace() == "" || o.GetNamespace() == namespace) {
			return rulesOf(o.Object)
		}
	}
	return nil
}

// grantedTo reports whether one of the rules grants the verb on the resource.
func grantedTo(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return anyMatches(r.Verbs, verb) && anyMatches(r.APIGroups, group) &&
			slices.ContainsFunc(r.Resources, func(granted string) bool { return matches(granted, resource) || matches(resource, granted) })
	})
}

// anyMatches reports whether a pattern in the list matches the given pattern, or the given pattern
// matches a pattern in the list.
func anyMatches(list []string, pattern string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return matches(other, pattern) || matches(pattern, other) })
}

func matches(pattern, value string) bool { return pattern == "*" || pattern == value }

// matchesResource reports whether a resource in a role includes the resource of a request.
func matchesResource(pattern, resource string) bool {
	if pattern == "*" {
		return resource != ""
	}
	name, sub, _ := strings.Cut(pattern, "/")
	wanted, wantedSub, _ := strings.Cut(resource, "/")
	if resource == "" || !matches(name, wanted) {
		return false
	}
	return sub == wantedSub || sub == "*" && wantedSub != ""
}

// rulesOf returns the rules of a role, or none if the object is not a role.
func rulesOf(object map[string]any) []rbacv1.PolicyRule {
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"rules": object["rules"]}, &role); err != nil {
		return nil
	}
	return role.Rules
}
