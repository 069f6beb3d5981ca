package report

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	user       = "" // the client that performs the scenario
	controller = "controller-1"
	writeTime  = 10 * time.Millisecond
)

// recorder builds the evidence of a run write by write.
type recorder struct {
	run      evidence.Run
	now      state.Snapshot
	revision int64
}

func record(scenario string) *recorder {
	return &recorder{run: evidence.Run{Scenario: scenario}, now: state.Snapshot{}, revision: 1}
}

func refTo(group, kind, name string) state.Ref {
	return state.Ref{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Namespace: "default", Name: name}
}

var viewer = refTo("apps.example.com", "Viewer", "viewer-a")

func (r *recorder) at() time.Duration { return time.Duration(r.revision) * writeTime }

func (r *recorder) entry(e trace.Entry) {
	e.Seq, e.At = int64(len(r.run.Entries)+1), r.at()
	r.run.Entries = append(r.run.Entries, e)
}

func (r *recorder) step(name string) {
	r.run.Steps = append(r.run.Steps, evidence.Step{Name: name, Began: r.revision, BeganAt: r.at()})
	r.entry(trace.Entry{Step: &trace.Step{Name: name, What: "started"}})
}

// put creates or updates the object with these fields. Without fields, it deletes the
// object.
func (r *recorder) put(who, verb string, ref state.Ref, fields state.Object) {
	r.revision++
	change := state.Change{Revision: r.revision, At: r.at(), Ref: ref, Op: state.Updated, Before: r.now[ref]}
	if fields == nil {
		change.Op = state.Deleted
		delete(r.now, ref)
	} else {
		if change.Before == nil {
			change.Op = state.Created
		}
		u := unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(ref.WithVersion("v1"))
		u.SetNamespace(ref.Namespace)
		u.SetName(ref.Name)
		change.After, r.now[ref] = u.Object, u.Object
	}
	r.run.History.Changes = append(r.run.History.Changes, change)
	if who != user {
		r.entry(trace.Entry{Instance: who, Call: r.call(verb, ref)})
	}
}

func (r *recorder) call(verb string, ref state.Ref) *trace.Call {
	return &trace.Call{
		ID: r.revision, Verb: verb, Path: "/apis/" + strings.ToLower(ref.Kind) + "s/" + ref.Name, Code: http.StatusOK, ResourceVersion: strconv.FormatInt(r.revision, 10),
		Target: trace.Target{Group: ref.Group, Version: "v1", Resource: strings.ToLower(ref.Kind) + "s", Namespace: ref.Namespace, Name: ref.Name},
	}
}

// rest ends the step, and records the stage of healing after which the state was right.
func (r *recorder) rest(healed evidence.Stage) *evidence.Step {
	last := &r.run.Steps[len(r.run.Steps)-1]
	last.Rested, last.RestedAt, last.Healed = r.revision, r.at(), healed
	return last
}

func (r *recorder) with(f *fault.Fault) *evidence.Run {
	r.run.Fault, r.run.Applied = f, true
	r.run.Steps[len(r.run.Steps)-1].Faulty = true
	return &r.run
}

// creation records the scenario life: a Viewer gets two Secrets and a status. If complete
// is not set, the controller forgets the second Secret.
func creation(complete bool) *recorder {
	r := record("life")
	r.step("create")
	r.put(user, "", viewer, state.Object{"spec": map[string]any{"title": "A"}})
	tls := func() state.Object { return state.Object{"type": "kubernetes.io/tls"} }
	r.put(controller, "create", refTo("", "Secret", "viewer-a-ca"), tls())
	phase := "Pending"
	if complete {
		phase = "Ready"
		r.put(controller, "create", refTo("", "Secret", "viewer-a-internal"), tls())
	}
	status := map[string]any{"phase": phase}
	if complete {
		status["conditions"] = []any{map[string]any{"type": "Ready", "message": "all Secrets exist"}}
	}
	r.put(controller, "patch", viewer, state.Object{"spec": map[string]any{"title": "A"}, "status": status})
	return r
}

// scaling records the scenario scale: a Viewer gets one Pod. If extra is set, the Pod is
// deleted and recreated.
func scaling(extra bool) *recorder {
	r := record("scale")
	r.step("scale")
	r.put(user, "", viewer, state.Object{"spec": map[string]any{"replicas": int64(1)}})
	r.put(controller, "create", refTo("", "Pod", "viewer-a-0"), state.Object{})
	if extra {
		r.put(controller, "delete", refTo("", "Pod", "viewer-a-0"), nil)
		r.put(controller, "create", refTo("", "Pod", "viewer-a-0"), state.Object{})
	}
	return r
}

func learnt(name string, run func() *recorder) *judge.Reference {
	var runs []*evidence.Run
	for range 3 {
		r := run()
		r.rest(evidence.AtOnce)
		runs = append(runs, &r.run)
	}
	reference, err := judge.NewReference(&scenario.Scenario{Name: name}, runs)
	if err != nil {
		panic(err)
	}
	return reference
}

// the returns the finding with the given verdict, and replaces its ID with the ID in the
// golden files.
func the(v judge.Verdict, id string, findings []judge.Finding) judge.Finding {
	i := slices.IndexFunc(findings, func(f judge.Finding) bool { return f.Verdict == v })
	if i < 0 {
		panic(fmt.Sprintf("judge finds %+v, not %s", findings, v))
	}
	findings[i].ID = id
	return findings[i]
}

// diverged returns a finding of package judge: after a kill, a Secret is missing.
func diverged(f *fault.Fault) judge.Finding {
	run := creation(false)
	run.rest(evidence.Never)
	return the(judge.Diverged, "1a2b3c4d5e6f",
		judge.Judge(learnt("life", func() *recorder { return creation(true) }), run.with(f), &subject.Subject{}))
}

// looping returns a finding of package judge: without a fault, the controller writes its
// status again and again.
func looping() judge.Finding {
	run := creation(true)
	step := run.rest(evidence.AtOnce)
	step.Watched = 2 * time.Second
	for i := range 40 {
		e := trace.Entry{
			Seq: int64(1000 + i), At: step.RestedAt + time.Duration(i+1)*step.Watched/41, Instance: controller, Call: run.call("update", viewer),
		}
		e.Call.Target.Subresource = "status"
		step.Idle = append(step.Idle, e)
		run.run.Entries = append(run.run.Entries, e)
	}
	reference := learnt("life", func() *recorder { return creation(true) })
	return the(judge.HotLoop, "99aa00ff11ee", judge.Faultless(reference, []*evidence.Run{&run.run}, &subject.Subject{}))
}

// blip returns a finding of package judge: a Pod is deleted and created again.
func blip(f *fault.Fault) judge.Finding {
	run := scaling(true)
	run.rest(evidence.AtOnce)
	return the(judge.DestructiveBlip, "777777777777",
		judge.Judge(learnt("scale", func() *recorder { return scaling(false) }), run.with(f), &subject.Subject{}))
}

// unused returns the findings of package judge about a role that also allows the deletion
// of nodes.
func unused() []judge.Unused {
	run := creation(true)
	role := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "viewer-operator"},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"delete"}}},
	}}
	return judge.UnusedPermissions(&subject.Subject{
		Identity: subject.ServiceAccount{Namespace: "default", Name: "viewer-operator"},
		Roles:    []subject.Role{{Name: "viewer-operator", File: "config/rbac/role.yaml", Object: role}},
	}, []*evidence.Run{&run.run})
}

func TestSampleHasTheSentencesOfJudge(t *testing.T) {
	for _, f := range sample().Findings {
		if f.Sentence == "" || f.Fault != nil && !strings.HasPrefix(f.Sentence, f.Fault.String()) {
			t.Errorf("%s: %q does not begin with its fault", f.Verdict, f.Sentence)
		}
	}
}
