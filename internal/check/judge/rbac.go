package judge

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// refusal matches the messages with which the API server refuses a request because of
// RBAC. Quotas, admission and a terminating namespace also answer 403, but with other
// messages.
var refusal = regexp.MustCompile(`User ".*" cannot |attempting to grant RBAC permissions|cannot set blockOwnerDeletion`)

// Permissions compares the controller's requests with the permissions of its service
// account. It returns findings for refused requests and, as remarks, the permissions that
// were never used. Without a service account, it returns nothing.
func Permissions(s *subject.Subject, runs []*evidence.Run) (missing []Finding, unused []string) {
	if s == nil || s.Identity == (subject.ServiceAccount{}) {
		return nil, nil
	}
	return refused403(runs), unusedRules(s, runs)
}

// permission is a verb on a resource.
type permission struct{ verb, resource, subresource, group, path string }

func (p permission) String() string {
	if p.resource == "" {
		return p.verb + " " + p.path
	}
	name := p.resource
	if p.group != "" {
		name += "." + p.group
	}
	if p.subresource != "" {
		name += "/" + p.subresource
	}
	return p.verb + " " + name
}

// asked is one request of a controller, with the run it belongs to.
type asked struct {
	permission
	call *trace.Call
	step string
	run  *evidence.Run
}

// creates reports whether the API server also required the permission to create. The server
// requires this permission for an apply, or for an update that may create objects, if the
// object did not exist.
func (a asked) creates() bool {
	return (a.verb == "patch" || a.verb == "update") && a.call.Code == http.StatusCreated
}

// allRequests returns all requests of the controller in all runs.
func allRequests(runs []*evidence.Run) []asked {
	var all []asked
	for _, run := range runs {
		step := ""
		for i := range run.Entries {
			e := &run.Entries[i]
			if e.Step != nil {
				step = e.Step.Name
			}
			if e.Call == nil || e.Instance == "" || e.Call.Endpoint != "" {
				continue
			}
			t := e.Call.Target
			p := permission{verb: e.Call.Verb, resource: t.Resource, subresource: t.Subresource, group: t.Group}
			if t.Resource == "" {
				p.path, _, _ = strings.Cut(e.Call.Path, "?")
			}
			all = append(all, asked{p, e.Call, step, run})
		}
	}
	return all
}

// refused403 makes one finding for each verb and resource that was refused.
func refused403(runs []*evidence.Run) []Finding {
	times := map[permission]int{}
	first := map[permission]asked{}
	for _, a := range allRequests(runs) {
		if a.call.Code != 403 || a.call.Injected || !refusal.MatchString(a.call.Message) {
			continue
		}
		if times[a.permission]++; times[a.permission] == 1 {
			first[a.permission] = a
		}
	}
	var findings []Finding
	for p, n := range times {
		a := first[p]
		f := Finding{
			Verdict: RBACMissing, Scenario: a.run.Scenario, Step: a.step, Seed: a.run.Seed,
			Sentence:   shorten(fmt.Sprintf("the service account is not allowed to %s, but the controller tried %s", p, count(n)), longestSentence),
			LastAction: p.String(), Detail: a.call.Message, Reproduced: 1, Attempts: 1,
		}
		// A missing permission is one finding, no matter where it was first needed.
		f.ID = Finding{Verdict: RBACMissing}.identity(p.String())
		findings = append(findings, f)
	}
	sort.Slice(findings, func(i, j int) bool { return findings[i].LastAction < findings[j].LastAction })
	return findings
}

func count(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// rule is one rule of a role.
type rule struct {
	verbs, groups, resources, names []string
}

// unusedRules returns the permissions that no run used, with one line per resource of a
// rule.
func unusedRules(s *subject.Subject, runs []*evidence.Run) []string {
	all := allRequests(runs)
	if len(all) == 0 {
		return nil
	}
	var unused []string
	for _, role := range s.Roles {
		for _, r := range rulesOf(role) {
			for _, group := range r.groups {
				for _, resource := range r.resources {
					if role.Idle[strings.TrimSuffix(resource+"."+group, ".")] != "" {
						continue
					}
					if verbs := r.unusedVerbs(group, resource, role.Namespace, all); len(verbs) > 0 {
						unused = append(unused, unusedLine(role, group, resource, verbs))
					}
				}
			}
		}
	}
	sort.Strings(unused)
	return slices.Compact(unused)
}

func unusedLine(role subject.Role, group, resource string, verbs []string) string {
	if group != "" {
		name, sub, _ := strings.Cut(resource, "/")
		resource = name + "." + group
		if sub != "" {
			resource += "/" + sub
		}
	}
	where := role.Name
	if role.File != "" {
		where += " in " + role.File
	}
	return fmt.Sprintf("%s: %s on %s was never used", where, strings.Join(verbs, ", "), resource)
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

func (r rule) unusedVerbs(group, resource, namespace string, all []asked) []string {
	if notSeen(group, resource) {
		return nil
	}
	var unused []string
	for _, verb := range r.verbs {
		used := slices.ContainsFunc(all, func(a asked) bool {
			return (matches(verb, a.verb) || verb == "create" && a.creates()) && matches(group, a.group) && matchesResource(resource, a) &&
				(namespace == "" || a.call.Target.Namespace == namespace) &&
				(len(r.names) == 0 || a.call.Target.Name == "" || slices.Contains(r.names, a.call.Target.Name))
		})
		if !used {
			unused = append(unused, verb)
		}
	}
	if slices.Contains(r.verbs, "watch") && !slices.Contains(unused, "watch") {
		// If watch is used, get and list are not reported: watching reveals everything that
		// getting and listing would, and clients need list if the server does not stream
		// lists.
		unused = slices.DeleteFunc(unused, func(verb string) bool { return verb == "get" || verb == "list" })
	}
	return unused
}

func matches(pattern, value string) bool { return pattern == "*" || pattern == value }

func matchesResource(pattern string, a asked) bool {
	if a.resource == "" {
		return false
	}
	name, sub, found := strings.Cut(pattern, "/")
	if pattern == "*" {
		return true
	}
	return matches(name, a.resource) && (found && matches(sub, a.subresource) || !found && a.subresource == "")
}

func rulesOf(role subject.Role) []rule {
	list, _ := role.Object.Object["rules"].([]any)
	var rules []rule
	for _, item := range list {
		m, _ := item.(map[string]any)
		rules = append(rules, rule{
			verbs: words(m["verbs"]), groups: words(m["apiGroups"]), resources: words(m["resources"]),
			names: words(m["resourceNames"]),
		})
	}
	return rules
}

func words(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
