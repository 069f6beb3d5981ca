package lab

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestWorkloadsAreRecognizedByTheirCreation(t *testing.T) {
	for name, test := range map[string]struct {
		call trace.Call
		want bool
	}{
		"a created Deployment": {trace.Call{Verb: "create", Code: 201, Target: trace.Target{Group: "apps", Resource: "deployments"}}, true},
		"an applied Pod":       {trace.Call{Verb: "patch", Code: 201, Target: trace.Target{Resource: "pods"}}, true},
		"a changed Deployment": {trace.Call{Verb: "update", Code: 200, Target: trace.Target{Group: "apps", Resource: "deployments"}}, false},
		"a refused Deployment": {trace.Call{Verb: "create", Code: 403, Target: trace.Target{Group: "apps", Resource: "deployments"}}, false},
		"an eviction":          {trace.Call{Verb: "create", Code: 201, Target: trace.Target{Resource: "pods", Subresource: "eviction"}}, false},
		"a custom resource":    {trace.Call{Verb: "create", Code: 201, Target: trace.Target{Group: "example.com", Resource: "jobs"}}, false},
		"a created ConfigMap":  {trace.Call{Verb: "create", Code: 201, Target: trace.Target{Resource: "configmaps"}}, false},
	} {
		if got := makesWorkloads(&evidence.Run{Entries: []trace.Entry{{}, {Call: &test.call}}}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
