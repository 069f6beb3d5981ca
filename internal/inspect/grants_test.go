package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func rule(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names,
	}
}

func granting(roles ...trace.Role) trace.Entry {
	return trace.Entry{Grants: &trace.Grants{Account: "system/manager", Roles: roles}}
}

func everywhere(rules ...rbacv1.PolicyRule) trace.Role {
	return trace.Role{Kind: "ClusterRole", Name: "manager", Rules: rules}
}

// request records a request of a controller.
func (s *story) request(verb string, t trace.Target, change func(*trace.Call)) *story {
	c := &trace.Call{Verb: verb, Target: t, Code: 200}
	if change != nil {
		change(c)
	}
	return s.add(trace.Entry{Instance: "controller-1", Call: c})
}

// left returns the permissions that are not used.
func left(s *Session) string {
	var all []string
	for _, u := range s.Permissions().Unused {
		all = append(all, strings.Trim(u.Verb+" "+u.Resource+"."+u.Group+u.Path, "."))
	}
	return strings.Join(all, ", ")
}

func TestAGrantIsUsedByTheRequestsThatTheAuthorizerWouldAllowWithIt(t *testing.T) {
	pods := trace.Target{Version: "v1", Resource: "pods", Namespace: "a", Name: "p"}
	collection := trace.Target{Version: "v1", Resource: "pods", Namespace: "a"}
	log := trace.Target{Version: "v1", Resource: "pods", Subresource: "log", Namespace: "a", Name: "p"}
	deployment := trace.Target{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Name: "d"}
	here := func(namespace string, rules ...rbacv1.PolicyRule) trace.Role {
		return trace.Role{Kind: "Role", Name: "manager", Namespace: namespace, Rules: rules}
	}
	path := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics", "/healthz/*"}, Verbs: []string{"get"}}
	asks := func(p string) func(*trace.Call) { return func(c *trace.Call) { c.Path = p } }
	for name, c := range map[string]struct {
		role trace.Role
		ask  func(*story)
		left string
	}{
		"nothing is asked":            {everywhere(rule("", "pods", "get,delete")), func(*story) {}, "delete pods, get pods"},
		"the same verb":               {everywhere(rule("", "pods", "get,delete")), func(s *story) { s.request("get", pods, nil) }, "delete pods"},
		"another group":               {everywhere(rule("apps", "pods", "get")), func(s *story) { s.request("get", pods, nil) }, "get pods.apps"},
		"every verb":                  {everywhere(rule("", "pods", "*")), func(s *story) { s.request("get", pods, nil) }, ""},
		"every group":                 {everywhere(rule("*", "deployments,pods", "get")), func(s *story) { s.request("get", deployment, nil) }, "get pods.*"},
		"every resource":              {everywhere(rule("", "*", "get")), func(s *story) { s.request("get", log, nil) }, ""},
		"a subresource":               {everywhere(rule("", "pods,pods/log,pods/exec", "get")), func(s *story) { s.request("get", log, nil) }, "get pods, get pods/exec"},
		"a subresource of everything": {everywhere(rule("", "*/log,*/scale,pods/*", "get")), func(s *story) { s.request("get", log, nil) }, "get */scale, get pods/*"},
		"in the namespace":            {here("a", rule("", "pods", "get")), func(s *story) { s.request("get", pods, nil) }, ""},
		"in another namespace":        {here("b", rule("", "pods", "get")), func(s *story) { s.request("get", pods, nil) }, "get pods"},
		"the Namespace itself":        {here("a", rule("", "namespaces", "get")), func(s *story) { s.request("get", trace.Target{Resource: "namespaces", Name: "a"}, nil) }, ""},
		"the named object":            {everywhere(rule("", "pods", "get", "q", "p")), func(s *story) { s.request("get", pods, nil) }, ""},
		"another object":              {everywhere(rule("", "pods", "get", "q")), func(s *story) { s.request("get", pods, nil) }, "get pods"},
		"a collection, by names":      {everywhere(rule("", "pods", "list", "p")), func(s *story) { s.request("list", collection, nil) }, "list pods"},
		"a path":                      {everywhere(path), func(s *story) { s.request("get", trace.Target{}, asks("/metrics?x=1")) }, "get ./healthz/*"},
		"a path below another":        {everywhere(path), func(s *story) { s.request("get", trace.Target{}, asks("/healthz/ready")) }, "get ./metrics"},
		"a path in a namespace":       {here("a", path), func(*story) {}, ""},
		"a resource is no path":       {everywhere(rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}), func(s *story) { s.request("get", pods, nil) }, "* .*"},
		"watching reveals all":        {everywhere(rule("", "pods", "get,list,watch,delete")), func(s *story) { s.request("watch", collection, nil) }, "delete pods"},
		"an apply that creates":       {everywhere(rule("", "pods", "create,patch")), func(s *story) { s.request("patch", pods, func(c *trace.Call) { c.Code = 201 }) }, ""},
		"an apply that changes":       {everywhere(rule("", "pods", "create,patch")), func(s *story) { s.request("patch", pods, nil) }, "create pods"},
		"a create has no name":        {everywhere(rule("", "pods", "create", "p")), func(s *story) { s.request("create", pods, func(c *trace.Call) { c.Code = 201 }) }, "create pods"},
		"a Namespace that is created": {here("a", rule("", "namespaces", "create")), func(s *story) { s.request("create", trace.Target{Resource: "namespaces", Name: "a"}, nil) }, "create namespaces"},
		"an eviction has a name": {everywhere(rule("", "pods/eviction", "create", "p")), func(s *story) {
			s.request("create", trace.Target{Version: "v1", Resource: "pods", Subresource: "eviction", Namespace: "a", Name: "p"}, nil)
		}, ""},
		"a refused request":   {everywhere(rule("", "pods", "get")), func(s *story) { s.request("get", pods, func(c *trace.Call) { c.Code = 403 }) }, "get pods"},
		"the same rule twice": {everywhere(rule("", "pods", "get"), rule("", "pods", "get")), func(*story) {}, "get pods"},
	} {
		s := (&story{}).add(granting(c.role))
		c.ask(s)
		if got := left(s.session()); got != c.left {
			t.Errorf("%s: unused is %q, want %q", name, got, c.left)
		}
	}
}

func TestWhatAControllerGrantsToOthersIsUsed(t *testing.T) {
	roles := trace.Target{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles", Name: "r"}
	bindings := trace.Target{Group: rbacv1.GroupName, Version: "v1", Resource: "rolebindings", Namespace: "a", Name: "b"}
	answer := func(body string) func(*trace.Call) {
		return func(c *trace.Call) { c.Code, c.Response = 201, []byte(body) }
	}
	start := func() *story {
		return (&story{}).add(granting(everywhere(rule("", "pods", "get,delete"), rule("apps", "deployments", "get"))))
	}
	written := start().request("create", roles, answer(`{"kind":"ClusterRole","metadata":{"name":"r","resourceVersion":"1"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["delete"]}]}`))
	if got := left(written.session()); got != "get pods, get deployments.apps" {
		t.Errorf("after a role was written, unused is %q", got)
	}
	deleted := start().request("delete", roles, answer(`{"kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`))
	if got := left(deleted.session()); got != "delete pods, get pods, get deployments.apps" {
		t.Errorf("after a role was deleted, unused is %q", got)
	}
	paths := start().request("create", roles, answer(`{"kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"nonResourceURLs":["*"],"verbs":["*"]}]}`))
	if got := left(paths.session()); got != "delete pods, get pods, get deployments.apps" {
		t.Errorf("after a role about paths was written, unused is %q", got)
	}
	bound := start().add(trace.Entry{Commit: &trace.Commit{Revision: 1, Op: "created", Group: rbacv1.GroupName, Kind: "Role", Namespace: "a", Name: "given", Object: map[string]any{
		"kind": "Role", "metadata": map[string]any{"name": "given", "namespace": "a", "resourceVersion": "1"},
		"rules": []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"*"}, "verbs": []any{"*"}}},
	}}}).request("create", bindings, answer(`{"kind":"RoleBinding","metadata":{"name":"b","namespace":"a","resourceVersion":"2"},"roleRef":{"kind":"Role","name":"given"}}`))
	if got := left(bound.session()); got != "delete pods, get pods" {
		t.Errorf("after a role was bound, unused is %q", got)
	}
}

func TestAChangeOfRolesKeepsTheUsesOfWhatStays(t *testing.T) {
	pods := trace.Target{Version: "v1", Resource: "pods", Namespace: "a", Name: "p"}
	s := (&story{}).add(granting(everywhere(rule("", "pods", "get,delete,update")))).request("get", pods, nil).
		add(granting(everywhere(rule("", "pods", "get,delete,patch"))))
	unused := s.session().Permissions().Unused
	if got := left(s.session()); got != "delete pods, patch pods" || unused[0].Since != time.Millisecond || unused[1].Since != 3*time.Millisecond {
		t.Errorf("unused is %q, %+v", got, unused)
	}
}

func TestAGrantNamesTheFileInWhichItIsNow(t *testing.T) {
	here, there := everywhere(rule("", "pods", "get")), everywhere(rule("", "pods", "get"))
	here.File, there.File = "config/rbac/a.yaml", "config/rbac/b.yaml"
	if unused := (&story{}).add(granting(here)).add(granting(there)).session().Permissions().Unused; unused[0].File != "config/rbac/b.yaml" {
		t.Errorf("%+v", unused)
	}
}

func TestAPermissionWhoseUseNoRequestShowsIsMarked(t *testing.T) {
	role := everywhere(rule("x.io", "widgets/finalizers", "update"), rule(rbacv1.GroupName, "roles", "escalate"), rule("coordination.k8s.io", "leases", "create"), rule("", "pods", "get"))
	role.Idle = map[string]string{"leases.coordination.k8s.io": "no election"}
	marked := map[string]string{}
	for _, u := range (&story{}).add(granting(role)).session().Permissions().Unused {
		marked[u.Resource] = u.Unseen
	}
	for resource, want := range map[string]string{"widgets/finalizers": "owner reference", "roles": "together with another verb", "leases": "no election"} {
		if !strings.Contains(marked[resource], want) {
			t.Errorf("%s: %q", resource, marked[resource])
		}
	}
	if marked["pods"] != "" {
		t.Errorf("pods: %q", marked["pods"])
	}
}

func TestTheNoteOfPermissionsStatesWhatIsKnown(t *testing.T) {
	if r := (&story{}).session().Permissions(); !strings.Contains(r.Note, "does not contain the roles") || r.Account != "" {
		t.Errorf("without roles: %+v", r)
	}
	if r := (&story{}).add(trace.Entry{Grants: &trace.Grants{}}).session().Permissions(); !strings.Contains(r.Note, "administrator") {
		t.Errorf("of an administrator: %+v", r)
	}
	known := trace.Entry{Grants: &trace.Grants{Account: "system/manager", Unknown: []string{"view"}}}
	if r := (&story{}).add(known).session().Permissions(); !strings.Contains(r.Note, "in this session") || !slices.Equal(r.Unknown, []string{"view"}) {
		t.Errorf("with roles: %+v", r)
	}
}

func TestGrantsSurviveTheEndOfOldEntries(t *testing.T) {
	s := (&story{}).add(granting(everywhere(rule("", "pods", "get,delete"))))
	s.request("get", trace.Target{Version: "v1", Resource: "pods", Namespace: "a", Name: "p"}, nil)
	for range 10 {
		s.request("list", trace.Target{Version: "v1", Resource: "secrets"}, nil)
	}
	short := s.session().trimmed(5)
	if got := left(short); got != "delete pods" {
		t.Errorf("unused is %q", got)
	}
	if e := short.entries[0]; e.Grants == nil || e.At != short.entries[1].At || len(short.entries) != 6 {
		t.Errorf("the first of %d entries is %+v", len(short.entries), e)
	}
}
