package lab

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestStepNeedsTheWebhooksThatCoverItsObjects(t *testing.T) {
	s := &subject.Subject{Webhooks: []unstructured.Unstructured{*fromYAML(t, `{webhooks: [
	  {rules: [{apiGroups: [apps], resources: [deployments], operations: [CREATE]}]},
	  {rules: [{apiGroups: [apps], resources: [deployments/scale], operations: [UPDATE]}]},
	  {rules: [{apiGroups: [apps], resources: [statefulsets], operations: [DELETE]}]}]}`)}}
	ref := func(kind string) scenario.ObjectRef {
		return scenario.ObjectRef{APIVersion: "apps/v1", Kind: kind, Namespace: "default", Name: "x"}
	}
	apply := func(kind string) []scenario.Manifest {
		return []scenario.Manifest{{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind}}}
	}
	for name, test := range map[string]struct {
		step scenario.Step
		want bool
	}{
		"an apply may create":      {scenario.Step{Apply: apply("Deployment")}, true},
		"an apply of another kind": {scenario.Step{Apply: apply("StatefulSet")}, false},
		"a patch updates":          {scenario.Step{Patch: &scenario.Patch{ObjectRef: ref("Deployment")}}, false},
		"a scale":                  {scenario.Step{Scale: &scenario.Scale{ObjectRef: ref("Deployment")}}, true},
		"a deletion":               {scenario.Step{Delete: &scenario.Delete{ObjectRef: ref("StatefulSet")}}, true},
		"a file":                   {scenario.Step{Apply: []scenario.Manifest{{File: "x.yaml"}}}, true},
		"a command":                {scenario.Step{Run: []string{"kubectl"}}, true},
	} {
		if got := NeedsWebhooks(s, &test.step); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if NeedsWebhooks(&subject.Subject{}, &test.step) {
			t.Errorf("%s: there are no webhooks", name)
		}
	}
}
