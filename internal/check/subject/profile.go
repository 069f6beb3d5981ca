package subject

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// These are the profiles from which Profile chooses, with their names in koboshi up.
const (
	ProfileGC        = "gc"
	ProfileWorkloads = "workloads"
)

// workloads lists, by API group, the resources on which upstream's controllers, the
// scheduler and the nodes act.
var workloads = map[string][]string{
	"":      {"pods", "replicationcontrollers"},
	"apps":  {"deployments", "replicasets", "statefulsets", "daemonsets"},
	"batch": {"jobs", "cronjobs"},
}

// writing lists the verbs with which a controller creates or changes a workload. It omits
// deletion, which takes effect without other controllers.
var writing = []string{rbacv1.VerbAll, "create", "update", "patch"}

// Profile returns the profile of the plane that the controller needs. It returns workloads
// if the roles of the controller allow it to write workloads; otherwise, it returns gc. A
// controller that writes workloads waits until upstream's controllers have acted on them. A
// controller that runs as an administrator has no roles, so Profile returns gc for it as
// well.
func (s Subject) Profile() string {
	if slices.ContainsFunc(s.Roles, Role.writesWorkloads) {
		return ProfileWorkloads
	}
	return ProfileGC
}

func (r Role) writesWorkloads() bool {
	var role rbacv1.ClusterRole // the rules of a Role have the same type
	if runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object.Object, &role) != nil {
		return false
	}
	return slices.ContainsFunc(role.Rules, writesWorkloads)
}

func writesWorkloads(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(writing, verb) }) &&
		slices.ContainsFunc(rule.Resources, func(resource string) bool { return isWorkload(rule.APIGroups, resource) })
}

// isWorkload reports whether a rule for the resource in these groups covers a workload or
// the scale subresource of a workload.
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
