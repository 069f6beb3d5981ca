package plan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// story builds the evidence of a run by hand: a small store, and the actions of a
// controller on it. Each action takes a millisecond.
type story struct {
	run   *evidence.Run
	said  *scenario.Scenario
	store state.Snapshot
	rev   int64
	now   time.Duration
	call  int64
	agent string
}

var plurals = map[string]schema.GroupKind{
	"widgets":     {Group: "example.com", Kind: "Widget"},
	"configmaps":  {Kind: "ConfigMap"},
	"deployments": {Group: "apps", Kind: "Deployment"},
	"leases":      {Group: "coordination.k8s.io", Kind: "Lease"},
	"pods":        {Kind: "Pod"},
	"secrets":     {Kind: "Secret"},
}

func newStory(name string) *story {
	return &story{
		run:   &evidence.Run{Scenario: name},
		said:  &scenario.Scenario{Name: name},
		store: state.Snapshot{}, rev: 100, agent: "python-requests/2",
	}
}

func ref(resource, name string) state.Ref {
	return state.Ref{GroupKind: plurals[resource], Namespace: "default", Name: name}
}

func target(resource, name string) trace.Target {
	resource, sub, _ := strings.Cut(resource, "/")
	return trace.Target{Group: plurals[resource].Group, Version: "v1", Resource: resource, Subresource: sub, Namespace: "default", Name: name}
}

func (s *story) add(e trace.Entry) {
	s.now += time.Millisecond
	e.Seq, e.At = int64(len(s.run.Entries)+1), s.now
	s.run.Entries = append(s.run.Entries, e)
}

// commit writes to the store. If after is nil, commit deletes the object.
func (s *story) commit(r state.Ref, after state.Object) {
	s.rev++
	before := s.store[r]
	c := state.Change{Revision: s.rev, At: s.now, Ref: r, Op: state.Updated, Before: before, After: after}
	switch {
	case after == nil:
		c.Op = state.Deleted
		delete(s.store, r)
	case before == nil:
		c.Op = state.Created
	}
	if after != nil {
		s.store[r] = after
	}
	s.run.History.Changes = append(s.run.History.Changes, c)
}

// step begins a step after the previous one has come to rest.
func (s *story) step(say scenario.Step) {
	s.rest()
	s.said.Steps = append(s.said.Steps, say)
	s.run.Steps = append(s.run.Steps, evidence.Step{Name: say.Name, Began: s.rev, BeganAt: s.now})
	s.add(trace.Entry{Step: &trace.Step{Name: say.Name, What: "started", Revision: s.rev}})
}

func (s *story) rest() {
	if n := len(s.run.Steps); n > 0 && s.run.Steps[n-1].RestedAt == 0 {
		last := &s.run.Steps[n-1]
		s.add(trace.Entry{Step: &trace.Step{Name: last.Name, What: "settled", Revision: s.rev}})
		last.Rested, last.RestedAt = s.rev, s.now
	}
}

// does records a request of the controller without changing the store.
func (s *story) does(verb string, t trace.Target, change func(*trace.Call)) {
	s.call++
	c := &trace.Call{
		ID: s.call, Verb: verb, Target: t, Path: "/x", UserAgent: s.agent, Code: 200,
		ContentType: "application/json", Took: 100 * time.Microsecond,
	}
	if change != nil {
		change(c)
	}
	s.add(trace.Entry{Instance: "controller-1", Call: c})
}

// writes records an effective write of the controller: the commit, then the answer with
// its revision.
func (s *story) writes(verb, resource, name string, after state.Object) {
	plain, _, _ := strings.Cut(resource, "/")
	s.commit(ref(plain, name), after)
	s.does(verb, target(resource, name), func(c *trace.Call) {
		c.Request = encode(after)
		if after != nil {
			c.ResourceVersion = strconv.FormatInt(s.rev, 10)
			c.Response = encode(after)
		}
	})
}

// repeats records a write that changes nothing.
func (s *story) repeats(verb, resource, name string) {
	s.does(verb, target(resource, name), func(c *trace.Call) {
		c.Request = encode(s.store[ref(resource, name)])
		c.ResourceVersion = strconv.FormatInt(s.rev, 10)
	})
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func (s *story) input() Input {
	s.rest()
	return Input{
		Scenario: s.said, Reference: s.run, All: []*evidence.Run{s.run},
		Change:  func(c *trace.Call) string { return fmt.Sprintf("%08x", mix(0, string(c.Request)))[:8] },
		Subject: &subject.Subject{Primary: []string{"Widget.example.com"}},
	}
}

// object returns an object with a spec and additional metadata.
func object(kind, name string, spec map[string]any, metadata map[string]any) state.Object {
	m := map[string]any{"name": name, "namespace": "default"}
	for k, v := range metadata {
		m[k] = v
	}
	return state.Object{"kind": kind, "metadata": m, "spec": spec}
}

func widget(replicas int, metadata map[string]any) state.Object {
	return object("Widget", "a", map[string]any{"replicas": replicas}, metadata)
}

func deployment(replicas int) state.Object {
	return object("Deployment", "a", map[string]any{"replicas": replicas, "selector": map[string]any{}},
		map[string]any{"resourceVersion": "7"})
}

func apply(name string) scenario.Step {
	return scenario.Step{Name: name, Apply: []scenario.Manifest{{}}}
}

func remove(name string) scenario.Step {
	return scenario.Step{Name: name, Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{
		APIVersion: "example.com/v1", Kind: "Widget", Namespace: "default", Name: "a"}}}
}

// life returns a complete scenario: create, scale up and back, delete, create again. The
// controller makes a ConfigMap and a Deployment and writes the status.
func life() *story {
	s := newStory("life")
	s.does("watch", target("widgets", ""), nil)
	s.does("watch", target("deployments", ""), nil)
	s.step(apply("create"))
	s.commit(ref("widgets", "a"), widget(1, nil))
	s.makes()
	s.step(apply("up"))
	s.commit(ref("widgets", "a"), widget(2, map[string]any{"generation": 2}))
	s.writes("update", "deployments", "a", deployment(2))
	back := apply("back")
	back.SameAs = "create"
	s.step(back)
	s.commit(ref("widgets", "a"), widget(1, map[string]any{"generation": 3}))
	s.writes("update", "deployments", "a", deployment(1))
	s.step(remove("delete"))
	s.commit(ref("widgets", "a"), nil)
	s.commit(ref("deployments", "a"), nil) // the garbage collector
	s.commit(ref("configmaps", "a"), nil)
	s.step(apply("again"))
	s.commit(ref("widgets", "a"), widget(1, nil))
	s.makes()
	s.rest()
	return s
}

// makes adds the actions of the controller for a new Widget.
func (s *story) makes() {
	s.does("get", target("configmaps", "a"), func(c *trace.Call) { c.Code = 404 })
	s.writes("create", "configmaps", "a", state.Object{"kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}})
	s.writes("create", "deployments", "a", deployment(1))
	s.repeats("update", "deployments", "a")
	s.writes("update", "widgets/status", "a", widget(1, map[string]any{"resourceVersion": "3"}))
}

// find returns the planned faults of a kind, each as a human reader sees it.
func find(p Plan, kind fault.Kind) []string {
	var found []string
	for _, f := range p.Faults {
		if f.Fault.Kind == kind {
			s := f.String()
			found = append(found, s[strings.Index(s, ": ")+2:])
		}
	}
	return found
}

// why returns the reasons why faults of a kind were skipped, limited to faults whose line
// contains the text. The empty kind selects skipped points.
func why(p Plan, kind fault.Kind, text string) []string {
	var reasons []string
	for _, s := range p.Skipped {
		if s.Fault.Kind == kind && strings.Contains(s.String(), text) {
			reasons = append(reasons, s.Why)
		}
	}
	return reasons
}
