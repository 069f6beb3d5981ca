package judge

import (
	"fmt"
	"net/http"
	"regexp"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// refusal matches the messages with which the API server refuses a request because of
// RBAC. Quotas, admission and a terminating namespace also answer 403, but with other
// messages.
var refusal = regexp.MustCompile(`User ".*" cannot |attempting to grant RBAC permissions|cannot set blockOwnerDeletion`)

// A Permission is a verb on a resource, or on a path outside the API.
type Permission struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource includes the subresource, as in a role: pods/log.
	Resource string `json:"resource,omitempty"`
	Path     string `json:"path,omitempty"`
}

func (p Permission) String() string {
	if p.Resource == "" {
		return p.Verb + " " + p.Path
	}
	return p.Verb + " " + qualified(p.Group, p.Resource)
}

// qualified returns a resource with its group, such as deployments.apps/status.
func qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	name, sub, _ := strings.Cut(resource, "/")
	if sub != "" {
		sub = "/" + sub
	}
	return name + "." + group + sub
}

// checksPermissions reports whether the controller has a service account, whose permissions
// can be compared with the controller's requests.
func checksPermissions(s *subject.Subject) bool {
	return s != nil && s.Identity != subject.ServiceAccount{}
}

// MissingPermissions returns findings for the requests that were refused because the service
// account lacked a permission. Without a service account, it returns nothing.
func MissingPermissions(s *subject.Subject, runs []*evidence.Run) []Finding {
	if !checksPermissions(s) {
		return nil
	}
	return refused403(runs)
}

// asked is one request of a controller, with the run it belongs to.
type asked struct {
	Permission
	call *trace.Call
	step string
	run  *evidence.Run
}

// creates reports whether the API server also required the permission to create. The server
// requires this permission for an apply, or for an update that may create objects, if the
// object did not exist.
func (a asked) creates() bool {
	return (a.Verb == "patch" || a.Verb == "update") && a.call.Code == http.StatusCreated
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
			p := Permission{Verb: e.Call.Verb, Group: t.Group, Resource: t.Resource}
			if t.Subresource != "" {
				p.Resource += "/" + t.Subresource
			}
			if t.Resource == "" {
				p.Path, _, _ = strings.Cut(e.Call.Path, "?")
			}
			all = append(all, asked{p, e.Call, step, run})
		}
	}
	return all
}

// refused403 makes one finding for each verb and resource that was refused.
func refused403(runs []*evidence.Run) []Finding {
	times := map[Permission]int{}
	first := map[Permission]asked{}
	for _, a := range allRequests(runs) {
		if a.call.Code != 403 || a.call.Injected || !refusal.MatchString(a.call.Message) {
			continue
		}
		a.Permission = denied(a.Permission, a.call.Message)
		if times[a.Permission]++; times[a.Permission] == 1 {
			first[a.Permission] = a
		}
	}
	var findings []Finding
	for p, n := range times {
		a := first[p]
		f := Finding{
			Verdict: RBACMissing, Scenario: a.run.Scenario, Step: a.step, Seed: a.run.Seed,
			Sentence:   condense(fmt.Sprintf("the service account is not allowed to %s, but the controller tried %s", p, count(n)), longestSentence),
			LastAction: p.String(), Detail: a.call.Message, Reproduced: 1, Attempts: 1, Missing: lacking(p, a.call.Message),
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

// cannot matches the message of upstream's authorizer. The resource includes the subresource.
var cannot = regexp.MustCompile(`User ".*?" cannot (\S+) (?:resource "(\S+?)" in API group "(\S*?)"|path "(\S+?)")`)

// denied returns the permission that the message names. This permission can differ from the
// permission for the request's own verb: an apply that creates an object needs the permission to
// create, too.
func denied(asked Permission, message string) Permission {
	if m := cannot.FindStringSubmatch(message); m != nil {
		return Permission{Verb: m[1], Resource: m[2], Group: m[3], Path: m[4]}
	}
	return asked
}

// blocked matches the message about an owner reference, which does not name the permission.
const blocked = "cannot set blockOwnerDeletion"

// notHeld matches a permission in the message about a role that grants more than the
// service account has. Upstream prints such a permission in Go's syntax.
var notHeld = regexp.MustCompile(`\{(?:APIGroups:\[(.*?)\], Resources:\[(.*?)\](?:, ResourceNames:\[.*?\])?|NonResourceURLs:\[(.*?)\]), Verbs:\[(.*?)\]\}`)

// lacking returns the permissions that a refused request needed. lacking returns none if the
// message does not name the permissions.
func lacking(asked Permission, message string) []Permission {
	if strings.Contains(message, blocked) {
		return nil
	}
	granted := notHeld.FindAllStringSubmatch(message, -1)
	if len(granted) == 0 {
		return []Permission{asked}
	}
	var all []Permission
	for _, m := range granted {
		for _, verb := range quoted(m[4]) {
			for _, path := range quoted(m[3]) {
				all = append(all, Permission{Verb: verb, Path: path})
			}
			for _, group := range quoted(m[1]) {
				for _, resource := range quoted(m[2]) {
					all = append(all, Permission{Verb: verb, Group: group, Resource: resource})
				}
			}
		}
	}
	return all
}

// quoted returns the strings of a list such as "get", "list".
func quoted(list string) (words []string) {
	for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(list, -1) {
		words = append(words, m[1])
	}
	return words
}
