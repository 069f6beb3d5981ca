package subject

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The profiles that Profile chooses between, by the names of koboshi up.
const (
	ProfileGC        = "gc"
	ProfileWorkloads = "workloads"
)

// workloads lists the resources, by API group, that upstream's controllers, the
// scheduler and the nodes act on.
var workloads = map[string][]string{
	"":      {"pods", "replicationcontrollers"},
	"apps":  {"deployments", "replicasets", "statefulsets", "daemonsets"},
	"batch": {"jobs", "cronjobs"},
}

// writing lists the verbs with which a controller makes or changes a workload. It
// leaves out deletion, which needs no other controller to take effect.
var writing = []string{rbacv1.VerbAll, "create", "update", "patch"}

// Profile returns the profile of the plane that the controller needs: workloads
// if its roles let it write workloads, because it then waits for what upstream's
// controllers do with them; otherwise gc. An administrator has no roles, and gets
// gc too.
func (s Subject) Profile() string {
	if slices.ContainsFunc(s.Roles, Role.writesWorkloads) {
		return ProfileWorkloads
	}
	return ProfileGC
}

func (r Role) writesWorkloads() bool {
	var role rbacv1.ClusterRole // whose rules are those of a Role too
	if runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object.Object, &role) != nil {
		return false
	}
	return slices.ContainsFunc(role.Rules, writesWorkloads)
}

func writesWorkloads(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(writing, verb) }) &&
		slices.ContainsFunc(rule.Resources, func(resource string) bool { return isWorkload(rule.APIGroups, resource) })
}

// isWorkload reports whether the resource, as a rule names it, is or includes a
// workload, or the scale of one, in any of the groups.
func isWorkload(groups []string, resource string) bool {
	for group, names := range workloads {
		if !slices.Contains(groups, group) && !slices.Contains(groups, rbacv1.APIGroupAll) {
			continue
		}
		if resource == rbacv1.ResourceAll || resource == "*/scale" {
			return true
		}
		if slices.ContainsFunc(names, func(name string) bool { return resource == name || resource == name+"/scale" }) {
			return true
		}
	}
	return false
}
