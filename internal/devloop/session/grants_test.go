package session

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestGrantsAreRecordedWhenTheyChange(t *testing.T) {
	role := func(verbs ...any) *project.Project {
		rules := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": verbs}}
		return &project.Project{Subject: subject.Subject{
			Identity: subject.ServiceAccount{Namespace: "a", Name: "manager"},
			Roles: []subject.Role{{
				Name: "r", Idle: map[string]string{"pods": "it is off"},
				Object: unstructured.Unstructured{Object: map[string]any{"kind": "ClusterRole", "rules": rules}},
			}},
		}}
	}
	log := trace.NewLog(time.Now())
	s := &Session{o: Options{Recording: Recording{Log: log}}}
	for _, p := range []*project.Project{role("get"), role("get"), role("get", "list"), {}} {
		s.recordGrants(p)
	}
	entries := log.Entries()
	if len(entries) != 3 {
		t.Fatalf("%d entries, want 3", len(entries))
	}
	if r := entries[1].Grants.Roles[0]; len(r.Rules[0].Verbs) != 2 || r.Idle["pods"] == "" || entries[2].Grants.Account != "" {
		t.Errorf("the second is %+v, and the third %+v", r, entries[2].Grants)
	}
	s.o.Project.Command = []string{"python3"}
	s.recordGrants(role("get"))
	if e := log.Entries()[3]; e.Grants.Roles[0].Idle != nil {
		t.Errorf("a command has permissions that are idle: %v", e.Grants.Roles[0].Idle)
	}
}
