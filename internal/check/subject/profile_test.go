package subject_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestControllersThatMayWriteWorkloadsNeedTheWorkloadsProfile(t *testing.T) {
	list := func(texts ...string) (all []any) {
		for _, text := range texts {
			all = append(all, text)
		}
		return all
	}
	rule := func(group, resource string, verbs ...string) map[string]any {
		return map[string]any{"apiGroups": list(group), "resources": list("configmaps", resource), "verbs": list(verbs...)}
	}
	for name, test := range map[string]struct {
		rules []any
		want  string
	}{
		"no rules":                           {nil, "gc"},
		"reading only":                       {[]any{rule("apps", "deployments", "get", "list", "watch")}, "gc"},
		"deleting only":                      {[]any{rule("", "pods", "list", "delete", "deletecollection")}, "gc"},
		"Deployments":                        {[]any{rule("apps", "deployments", "create")}, "workloads"},
		"Jobs":                               {[]any{rule("batch", "jobs", "patch")}, "workloads"},
		"Pods":                               {[]any{rule("", "pods", "create")}, "workloads"},
		"every verb":                         {[]any{rule("apps", "statefulsets", "*")}, "workloads"},
		"every resource":                     {[]any{rule("*", "*", "*")}, "workloads"},
		"every resource of apps":             {[]any{rule("apps", "*", "update")}, "workloads"},
		"every group":                        {[]any{rule("*", "daemonsets", "update")}, "workloads"},
		"every resource of another group":    {[]any{rule("example.com", "*", "*")}, "gc"},
		"a custom resource of that name":     {[]any{rule("example.com", "jobs", "create", "update")}, "gc"},
		"in the wrong group":                 {[]any{rule("", "deployments", "create")}, "gc"},
		"the scale of Deployments":           {[]any{rule("apps", "deployments/scale", "patch")}, "workloads"},
		"the finalizers of Deployments":      {[]any{rule("apps", "deployments/finalizers", "update")}, "gc"},
		"one rule of several":                {[]any{rule("example.com", "jobs", "*"), rule("batch", "cronjobs", "create")}, "workloads"},
		"a verb and a resource of two rules": {[]any{rule("apps", "deployments", "get"), rule("", "secrets", "create")}, "gc"},
		"rules that cannot be read":          {[]any{"deployments"}, "workloads"},
		"Services":                           {[]any{rule("", "services", "create")}, "workloads"},
		"claims":                             {[]any{rule("", "persistentvolumeclaims", "patch")}, "workloads"},
		"Secrets":                            {[]any{rule("", "secrets", "*")}, "gc"},
		"the labels of Nodes":                {[]any{rule("", "nodes", "get", "patch")}, "workloads"},
		"the status of Nodes":                {[]any{rule("", "nodes/status", "update")}, "workloads"},
		"reading Nodes":                      {[]any{rule("", "nodes", "get", "list")}, "gc"},
		"requests for certificates":          {[]any{rule("", "pods", "create"), rule("certificates.k8s.io", "certificatesigningrequests", "create")}, "full"},
		"reading requests for certificates":  {[]any{rule("certificates.k8s.io", "certificatesigningrequests", "get")}, "gc"},
		"everything about certificates":      {[]any{rule("certificates.k8s.io", "*", "*")}, "gc"},
	} {
		role := unstructured.Unstructured{Object: map[string]any{"kind": "ClusterRole", "rules": test.rules}}
		if test.rules == nil {
			delete(role.Object, "rules")
		}
		got, reason := subject.Subject{Identity: pilot, Roles: []subject.Role{{Name: "other"}, {Name: "pilot", Object: role}}}.Profile()
		if got != test.want || reason == "" {
			t.Errorf("%s: profile %s because %q, want %s", name, got, reason, test.want)
		}
	}
}

var pilot = subject.ServiceAccount{Namespace: "sea", Name: "pilot"}

func TestUnknownPermissionsNeedTheWorkloadsProfile(t *testing.T) {
	aggregated := unstructured.Unstructured{Object: map[string]any{"kind": "ClusterRole", "aggregationRule": map[string]any{}}}
	for _, c := range []struct {
		subject      subject.Subject
		want, reason string
	}{
		{subject.Subject{}, "workloads", "the controller runs as an administrator"},
		{subject.Subject{Identity: pilot}, "gc", "no role of the controller allows it to write workloads"},
		{subject.Subject{Identity: pilot, UnknownRoles: []string{"view", "cluster-admin"}}, "workloads", "the rules of the role cluster-admin are unknown"},
		{subject.Subject{Identity: pilot, UnknownRoles: []string{"view", "system:auth-delegator"}}, "gc", "no role of the controller allows it to write workloads"},
		{subject.Subject{Identity: pilot, Roles: []subject.Role{{Name: "all", Object: aggregated}}}, "workloads", "the role all takes its rules from other roles"},
	} {
		if got, reason := c.subject.Profile(); got != c.want || reason != c.reason {
			t.Errorf("profile %s because %q, want %s because %q", got, reason, c.want, c.reason)
		}
	}
}
