package subject

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// These are the profiles from which Profile chooses, with their names in koboshi up.
const (
	ProfileGC        = "gc"
	ProfileWorkloads = "workloads"
	ProfileFull      = "full"
)

// workloads lists, by API group, the resources on which upstream's controllers, the
// scheduler and the nodes act.
var workloads = map[string][]string{
	"":      {"pods", "replicationcontrollers", "persistentvolumeclaims", "services", "nodes", "nodes/status"},
	"apps":  {"deployments", "replicasets", "statefulsets", "daemonsets"},
	"batch": {"jobs", "cronjobs"},
}

// harmless lists roles that exist in every cluster and do not allow their holder to write
// workloads.
var harmless = []string{
	"view", "extension-apiserver-authentication-reader", "system:auth-delegator", "system:basic-user", "system:discovery",
	"system:public-info-viewer", "system:service-account-issuer-discovery",
}

// writing lists the verbs with which a controller creates or changes a workload. It omits
// deletion, which takes effect without other controllers.
var writing = []string{rbacv1.VerbAll, "create", "update", "patch"}

// Profile returns the profile of the plane that the controller needs, and the reason. It
// returns gc only if the roles of the controller certainly do not allow it to write
// workloads. A controller that writes workloads waits until upstream's controllers have acted
// on them, and one that asks for certificates until they are signed, which only the profile full does.
func (s Subject) Profile() (profile, reason string) {
	if s.Identity.Name == "" {
		return ProfileWorkloads, "the controller runs as an administrator"
	}
	for _, role := range s.Roles {
		if role.asksForCertificates() {
			return ProfileFull, fmt.Sprintf("the role %s allows it to create %s, which only this profile signs", role.Name, requests)
		}
	}
	for _, name := range s.UnknownRoles {
		if !slices.Contains(harmless, name) {
			return ProfileWorkloads, fmt.Sprintf("the rules of the role %s are unknown", name)
		}
	}
	for _, role := range s.Roles {
		if may := role.mayWrite(); may != "" {
			return ProfileWorkloads, fmt.Sprintf("the role %s %s", role.Name, may)
		}
	}
	return ProfileGC, "no role of the controller allows it to write workloads"
}

// requests is the resource of requests for certificates.
const requests = "certificatesigningrequests"

// asksForCertificates reports whether a role names the permission to request certificates. A role that
// allows everything does not show that the controller does so.
func (r Role) asksForCertificates() bool {
	var role rbacv1.ClusterRole
	return runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object.Object, &role) == nil && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, "certificates.k8s.io") && slices.Contains(rule.Resources, requests) &&
			(slices.Contains(rule.Verbs, "create") || slices.Contains(rule.Verbs, rbacv1.VerbAll))
	})
}

// mayWrite describes how a role allows its holder to write workloads, or returns "".
func (r Role) mayWrite() string {
	var role rbacv1.ClusterRole // the rules of a Role have the same type
	if runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object.Object, &role) != nil {
		return "cannot be read"
	}
	if role.AggregationRule != nil {
		return "takes its rules from other roles"
	}
	for _, rule := range role.Rules {
		if !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(writing, verb) }) {
			continue
		}
		for _, resource := range rule.Resources {
			if isWorkload(rule.APIGroups, resource) {
				return fmt.Sprintf("allows it to %s %s", strings.Replace(firstWriting(rule.Verbs), rbacv1.VerbAll, "write", 1), strings.Replace(resource, rbacv1.ResourceAll, "every resource", 1))
			}
		}
	}
	return ""
}

func firstWriting(verbs []string) string {
	return verbs[slices.IndexFunc(verbs, func(verb string) bool { return slices.Contains(writing, verb) })]
}

// IsWorkload reports whether upstream's controllers, the scheduler or the nodes act on the
// resource.
func IsWorkload(group, resource string) bool { return slices.Contains(workloads[group], resource) }

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
