package upgrade

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var (
	boat    = state.Ref{GroupKind: schema.GroupKind{Group: "sea.example.com", Kind: "Boat"}, Namespace: "default", Name: "ellen"}
	web     = state.Ref{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "default", Name: "ellen"}
	service = state.Ref{GroupKind: schema.GroupKind{Kind: "Service"}, Namespace: "default", Name: "ellen"}
	pod     = state.Ref{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "default", Name: "ellen"}
	config  = state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: "ellen"}
	role    = state.Ref{GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, Name: "manager"}
)

const (
	gvk      = "sea.example.com/v1"
	manifest = `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"namespace":"default","name":"ellen"},"spec":{"masts":2}}`
	pods     = `{"metadata":{"uid":"1"},"spec":{"replicas":2,"selector":{"app":"ellen"},"template":{"metadata":{"labels":{"app":"ellen"}},"spec":{"containers":[{"name":"c","image":"v1"}]}}}}`
	newPods  = `{"metadata":{"uid":"1"},"spec":{"replicas":2,"selector":{"app":"ellen"},"template":{"metadata":{"labels":{"app":"ellen"}},"spec":{"containers":[{"name":"c","image":"v2"}]}}}}`
)

// story builds the record of an upgrade. It begins with a step in which a user creates a Boat and the old
// version a Deployment.
type story struct {
	in       Input
	who      string // who makes the next changes
	revision int64
	now      time.Duration
}

func newStory() *story {
	s := &story{who: Old}
	s.in = Input{Record: Record{
		Run: &evidence.Run{Scenario: "life"}, Installed: func(ref state.Ref) bool { return ref == role },
		Declared: []map[string]any{object(manifest)}, Readings: map[string]Reading{},
	}}
	s.step("create").write(boat, "", manifest, "user").write(web, "", pods, Old)
	return s
}

func object(text string) (o state.Object) {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// step ends the last step, and begins another one.
func (s *story) step(name string) *story {
	s.rest()
	s.in.Run.Steps = append(s.in.Run.Steps, evidence.Step{Name: name, Began: s.revision, BeganAt: s.now})
	s.who = New
	if name == Down {
		s.who = Old
	}
	return s
}

func (s *story) rest() {
	s.now += time.Second
	if n := len(s.in.Run.Steps); n > 0 {
		last := &s.in.Run.Steps[n-1]
		last.Rested, last.RestedAt = s.revision, s.now
	}
	s.now += time.Second
}

// write records a change of an object by a version of the controller or by another client.
func (s *story) write(ref state.Ref, before, after, who string) *story {
	s.revision++
	s.now += time.Millisecond
	c := state.Change{Revision: s.revision, At: s.now, Ref: ref, Op: state.Updated, Before: object(before), After: object(after)}
	verb := "update"
	switch {
	case before == "":
		c.Op, verb = state.Created, "create"
	case after == "":
		c.Op, verb = state.Deleted, "delete"
	}
	s.in.Run.History.Changes = append(s.in.Run.History.Changes, c)
	if who == Old || who == New {
		s.call(trace.Call{Verb: verb, Target: target(ref), Code: 200, ResourceVersion: fmt.Sprint(s.revision)})
		s.in.Run.Entries[len(s.in.Run.Entries)-1].Instance = who + "-1"
	}
	return s
}

func target(ref state.Ref) trace.Target {
	return trace.Target{Group: ref.Group, Version: "v1", Resource: map[state.Ref]string{web: "deployments", service: "services", config: "configmaps"}[ref], Namespace: ref.Namespace, Name: ref.Name}
}

func (s *story) call(c trace.Call) *story {
	c.Took = time.Millisecond
	s.in.Run.Entries = append(s.in.Run.Entries, trace.Entry{At: s.now, Instance: s.who + "-1", Call: &c})
	return s
}

// reads records what the API server serves in one version after a step.
func (s *story) reads(step, version string, texts ...string) *story {
	reading := Reading{Versions: map[string]map[state.Ref]state.Object{version: {}}, Failed: map[string]string{}, Storage: map[string]string{boat.String(): version}}
	for _, text := range texts {
		reading.Versions[version][boat] = object(text)
	}
	s.in.Readings[step] = reading
	return s
}

// judge judges the story. The reference has what the new version makes in an empty cluster.
func (s *story) judge(t *testing.T, fresh map[state.Ref]string) Result {
	t.Helper()
	s.rest()
	snapshot := state.Snapshot{boat: object(manifest)}
	for ref, text := range fresh {
		snapshot[ref] = object(text)
	}
	mask := &state.Mask{}
	s.in.Reference = &judge.Reference{
		Scenario: &scenario.Scenario{Name: "life", Steps: []scenario.Step{{Name: "create"}}}, Mask: mask,
		Steps: []judge.StepReference{{Name: "create", World: mask.CanonicalAfter("create", snapshot)}},
	}
	return Judge(s.in)
}

// brief is a finding in short.
type brief struct {
	Verdict      judge.Verdict
	Step, Places string
}

func short(findings []judge.Finding) (all []brief) {
	for _, f := range findings {
		places := ""
		for _, d := range f.Differences {
			places += d.Object + " " + d.Path + ";"
		}
		all = append(all, brief{f.Verdict, f.Step, places})
	}
	return all
}

func TestEachVerdictNeedsItsEvidence(t *testing.T) {
	const serviceOf = `{"metadata":{"uid":"2"},"spec":{"selector":{%q:"ellen"}}}`
	app, other := fmt.Sprintf(serviceOf, "app"), fmt.Sprintf(serviceOf, "name")
	invalid := trace.Call{Verb: "update", Target: target(web), Code: 422, Message: "field is immutable"}
	tests := []struct {
		name  string
		tell  func(s *story)
		fresh map[state.Ref]string
		want  []brief
	}{
		{"an upgrade that changes nothing", func(s *story) { s.step(Up) }, map[state.Ref]string{web: pods}, nil},
		{"a changed template replaces Pods", func(s *story) { s.step(Up).write(web, pods, newPods, New) }, map[state.Ref]string{web: newPods},
			[]brief{{judge.UpgradeChurn, Up, "Deployment.apps default/ellen spec.template.spec.containers[c].image;"}}},
		{"a template that only the way back changes", func(s *story) { s.step(Up).step(Down).write(web, pods, newPods, Old) }, map[state.Ref]string{web: pods},
			[]brief{{judge.DowngradeBroken, Down, "Deployment.apps default/ellen spec.template.spec.containers[c].image;"}}},
		{"the template of an object that a user made", func(s *story) {
			s.in.Run.Entries = nil // no version wrote it
			s.step(Up).write(web, pods, newPods, "user")
		}, map[state.Ref]string{web: newPods}, nil},
		{"a deleted ConfigMap disturbs nobody", func(s *story) {
			s.write(config, "", `{"data":{}}`, Old).step(Up).write(config, `{"data":{}}`, "", New)
		}, map[state.Ref]string{web: pods}, nil},
		{"a Deployment that is deleted and created again", func(s *story) {
			s.step(Up).write(web, pods, "", New).write(web, "", pods, New)
		}, map[state.Ref]string{web: pods}, []brief{{judge.UpgradeChurn, Up, "Deployment.apps default/ellen ;"}}},
		{"a Service that loses its Pods", func(s *story) {
			s.write(service, "", app, Old).step(Up).write(service, app, other, New)
		}, map[state.Ref]string{web: pods, service: other}, []brief{{judge.UpgradeChurn, Up, "Service default/ellen spec.selector.app;Service default/ellen spec.selector.name;"}}},
		{"a Service that is switched to other Pods", func(s *story) {
			s.write(service, "", app, Old).step(Up).write(pod, "", `{"metadata":{"labels":{"name":"ellen"}}}`, "user").write(service, app, other, New)
		}, map[state.Ref]string{web: pods, service: other, pod: `{"metadata":{"labels":{"name":"ellen"}}}`}, nil},
		{"a write that is rejected until the end", func(s *story) { s.step(Up).call(invalid).call(invalid) }, map[state.Ref]string{web: newPods},
			[]brief{{judge.Wedged, Up, ""}}},
		{"a write that is rejected and then accepted", func(s *story) { s.step(Up).call(invalid).write(web, pods, newPods, New) }, map[state.Ref]string{web: newPods},
			[]brief{{judge.UpgradeChurn, Up, "Deployment.apps default/ellen spec.template.spec.containers[c].image;"}}},
		{"a write that the old version could not make either", func(s *story) {
			s.who = Old
			s.call(invalid)
			s.step(Up).call(invalid)
		}, map[state.Ref]string{web: pods}, nil},
		{"a write that only the way back cannot make", func(s *story) { s.step(Up).step(Down).call(invalid) }, map[state.Ref]string{web: pods},
			[]brief{{judge.DowngradeBroken, Down, ""}}},
		{"a version that keeps exiting", func(s *story) { s.step(Up); s.in.Gone = "it exited 6 times" }, map[state.Ref]string{web: pods},
			[]brief{{judge.Crashed, Up, ""}}},
		{"a CRD without a stored version", func(s *story) {
			s.step(Up)
			s.in.Refusals = []Refusal{{Step: Up, Object: "CustomResourceDefinition boats", CRD: true, Stored: true, Why: "v1alpha1"}}
		}, map[state.Ref]string{web: pods}, []brief{{judge.StoredVersionsStuck, Up, ""}}},
		{"a CRD that the way back cannot install", func(s *story) {
			s.step(Up).step(Down)
			s.in.Refusals = []Refusal{{Step: Down, Object: "CustomResourceDefinition boats", CRD: true, Stored: true, Why: "v2"}}
		}, map[state.Ref]string{web: pods}, []brief{{judge.DowngradeBroken, Down, ""}}},
		{"a field that is pruned", func(s *story) {
			s.reads("", gvk, manifest).step(Up).reads(Up, gvk, `{"spec":{}}`)
		}, map[state.Ref]string{web: pods}, []brief{{judge.DataLost, Up, "Boat.sea.example.com default/ellen spec.masts;"}}},
		{"a field that only the way back loses", func(s *story) {
			s.reads("", gvk, manifest).step(Up).reads(Up, gvk, manifest).step(Down).reads(Down, gvk, `{"spec":{}}`)
		}, map[state.Ref]string{web: pods}, []brief{{judge.DataLost, Down, "Boat.sea.example.com default/ellen spec.masts;"}}},
		{"a default that the new version adds", func(s *story) {
			s.reads("", gvk, manifest).step(Up).reads(Up, gvk, `{"spec":{"masts":2,"sails":4}}`)
		}, map[state.Ref]string{web: pods}, nil},
		{"an object of the old version that is left over", func(s *story) {
			s.write(config, "", `{"data":{}}`, Old).step(Up)
		}, map[state.Ref]string{web: pods}, []brief{{judge.NotAsFresh, Up, "ConfigMap default/ellen ;"}}},
		{"a template that is kept", func(s *story) { s.step(Up) }, map[state.Ref]string{web: newPods}, nil},
		{"a permission of the installation", func(s *story) {
			s.step(Up).write(role, `{"rules":[]}`, `{"rules":[{}]}`, "user")
		}, map[state.Ref]string{web: pods}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			if diff := cmp.Diff(test.want, short(s.judge(t, test.fresh).Findings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnExpectedChangeIsNoFinding(t *testing.T) {
	const line = "Deployment.apps spec.template.spec.containers[c].image"
	tell := func(expected ...string) Result {
		s := newStory()
		s.in.Expected = expected
		return s.step(Up).write(web, pods, newPods, New).judge(t, map[state.Ref]string{web: newPods})
	}
	got := tell("Service spec.selector", line)
	if len(got.Findings) > 0 || len(got.Accepted) != 1 || !cmp.Equal(got.Matched, []string{line}) {
		t.Errorf("%+v", got)
	}
	if got := tell("Deployment.apps default/other *"); len(got.Findings) != 1 || len(got.Matched) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestWhatAFreshInstallationCannotWriteIsFoundThereToo(t *testing.T) {
	invalid := trace.Call{Verb: "create", Target: target(web), Code: 422, Message: "no"}
	upgraded := newStory()
	a := upgraded.step(Up).call(invalid).judge(t, nil).Findings
	s := &story{who: New, in: Input{Fresh: true, Record: Record{
		Run: &evidence.Run{Scenario: "life"}, Installed: func(state.Ref) bool { return false }, Readings: map[string]Reading{},
	}}}
	b := s.step("create").call(invalid).judge(t, nil).Findings
	if len(a) != 1 || len(b) != 1 || a[0].ID != b[0].ID {
		t.Errorf("%+v\n%+v", short(a), short(b))
	}
}

func TestAChangeAtTheEndOfALongValueIsShown(t *testing.T) {
	long := "a long list of arguments, all of which are the same before and after"
	got := fieldDifferences("Deployment.apps default/ellen", "args", []any{long, "--old"}, []any{long, "--new"})
	if len(got) != 1 || got[0].Want == got[0].Got {
		t.Errorf("%+v", got)
	}
}
