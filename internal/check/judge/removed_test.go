package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestAVersionThatKubernetesHasRemovedIsFoundUnlessAnotherOneIsUsed(t *testing.T) {
	t.Parallel()
	call := func(group, version, resource, verb string, code int, message string) trace.Entry {
		return trace.Entry{Instance: "controller-1", Call: &trace.Call{
			Verb: verb, Code: code, Message: message, Target: trace.Target{Group: group, Version: version, Resource: resource, Name: "web"},
		}}
	}
	const none, unknown = "the server could not find the requested resource", `no matches for kind \"PodDisruptionBudget\" in version \"policy/v1beta1\"`
	for name, of := range map[string]struct {
		entries []trace.Entry
		logs    string
		want    string
	}{
		"a request":                  {[]trace.Entry{call("policy", "v1beta1", "poddisruptionbudgets", "create", 404, none)}, "", "poddisruptionbudgets policy/v1beta1"},
		"a list":                     {[]trace.Entry{call("batch", "v1beta1", "cronjobs", "list", 404, "")}, "", "cronjobs batch/v1beta1"},
		"an error of the client":     {nil, unknown, "PodDisruptionBudget policy/v1beta1"},
		"the object does not exist":  {[]trace.Entry{call("policy", "v1beta1", "poddisruptionbudgets", "get", 404, `poddisruptionbudgets.policy "web" not found`)}, "", ""},
		"a version that is served":   {[]trace.Entry{call("policy", "v1", "poddisruptionbudgets", "create", 404, none)}, "", ""},
		"a custom kind":              {[]trace.Entry{call("sea.example.com", "v1beta1", "boats", "list", 404, none)}, "", ""},
		"then the version after it":  {[]trace.Entry{call("policy", "v1", "poddisruptionbudgets", "create", 201, "")}, unknown, ""},
		"another kind of the group":  {[]trace.Entry{call("batch", "v1", "jobs", "create", 201, ""), call("batch", "v1beta1", "cronjobs", "list", 404, "")}, "", "cronjobs batch/v1beta1"},
		"a kind with another plural": {[]trace.Entry{call("networking.k8s.io", "v1", "networkpolicies", "list", 200, "")}, `no matches for kind "NetworkPolicy" in version "networking.k8s.io/v1beta1"`, ""},
	} {
		in := newInput(&Reference{Scenario: &scenario.Scenario{Name: "boat-life"}}, &evidence.Run{Entries: of.entries, Logs: of.logs}, nil)
		got := ""
		found := removedAPIs([]*input{in})
		if len(found) == 1 {
			got = found[0].Differences[0].Object
		}
		if got != of.want || len(found) > 1 {
			t.Errorf("%s: %q, want %q", name, got, of.want)
		}
	}
}
