package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestClaimsAndTheInstallationAreNeitherDeletedNorChanged(t *testing.T) {
	for resource, kind := range map[string]schema.GroupKind{
		"namespaces": {Kind: "Namespace"}, "persistentvolumeclaims": {Kind: "PersistentVolumeClaim"}, "persistentvolumes": {Kind: "PersistentVolume"},
		"customresourcedefinitions":       {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		"validatingwebhookconfigurations": {Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		"mutatingwebhookconfigurations":   {Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		"controllerrevisions":             {Group: "apps", Kind: "ControllerRevision"},
	} {
		plurals[resource] = kind
		s := newStory("s")
		s.step(apply("create"))
		s.writes("create", resource, "a", object(kind.Kind, "a", map[string]any{"x": "y"}, nil))
		s.writes("create", "deployments", "a", deployment(1))
		p := Make(s.input())
		for _, faults := range [][]string{find(p, fault.DeleteChild), find(p, fault.EditChild)} {
			if len(faults) != 1 {
				t.Errorf("%s: planned %v, want only a fault of the Deployment", resource, faults)
			}
		}
		if got := why(p, fault.DeleteChild, kind.Kind); len(got) != 1 {
			t.Errorf("%s was skipped for %q", resource, got)
		}
		// A kind of the same name in another group is an ordinary kind.
		plurals[resource] = schema.GroupKind{Group: "example.com", Kind: kind.Kind}
		s = newStory("s")
		s.step(apply("create"))
		s.writes("create", resource, "a", object(kind.Kind, "a", map[string]any{"x": "y"}, nil))
		if got := find(Make(s.input()), fault.DeleteChild); len(got) != 1 {
			t.Errorf("%s.example.com: planned %v", resource, got)
		}
		delete(plurals, resource)
	}
}

func TestOnlyAJobThatStillRunsIsDeleted(t *testing.T) {
	plurals["jobs"] = schema.GroupKind{Group: "batch", Kind: "Job"}
	defer delete(plurals, "jobs")
	job := func(name, condition string) state.Object {
		o := object("Job", name, map[string]any{"backoffLimit": int64(6)}, nil)
		if condition != "" {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
		}
		return o
	}
	for condition, want := range map[string][]string{
		"": {"another client deleted Job.batch default/one at rest after step create"}, "Suspended": {"another client deleted Job.batch default/one at rest after step create"},
		"Complete": nil, "Failed": nil,
	} {
		s := newStory("s")
		s.step(apply("create"))
		s.writes("create", "jobs", "done", job("done", "Complete"))
		s.writes("create", "jobs", "one", job("one", condition))
		expect(t, find(Make(s.input()), fault.DeleteChild), want)
	}
	s := newStory("s")
	s.step(apply("create"))
	pod := object("Pod", "p", map[string]any{}, nil)
	pod["status"] = map[string]any{"phase": "Succeeded"}
	s.writes("create", "pods", "p", pod)
	expect(t, find(Make(s.input()), fault.DeleteChild), nil)
}

func TestARecordOfTheLastActionIsNeitherDeletedNorChanged(t *testing.T) {
	for kind, resource := range map[string]string{"Secret": "secrets", "ConfigMap": "configmaps"} {
		for value, record := range map[string]bool{"2026-11-26T09:15:00Z": true, "2026-11-26": false, "on": false} {
			s := newStory("s")
			s.step(apply("create"))
			o := object(kind, "a", nil, nil)
			o["data"] = map[string]any{"last": value, "operation": "SLEEP"}
			s.writes("create", resource, "a", o)
			p := Make(s.input())
			if planned := len(find(p, fault.DeleteChild)) > 0; planned == record {
				t.Errorf("%s with %s: planned %v", kind, value, find(p, fault.DeleteChild))
			}
			if got := why(p, fault.DeleteChild, kind); record && (len(got) != 1 || got[0] != history) {
				t.Errorf("%s with %s was skipped for %q", kind, value, got)
			}
		}
	}
}
