package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestWatchesAreDelayedFromEachOwnWriteAndFromEachStep(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.DelayWatch), []string{
		"watch of deployments.apps delayed, starting with POST deployments.apps default/a, in step create",
		"watch of widgets.example.com delayed, starting with PUT widgets.example.com/status default/a, in step create",
		"watch of deployments.apps delayed, starting with PUT deployments.apps default/a, in step up",
		"watch of deployments.apps delayed, starting with PUT deployments.apps default/a, in step back",
		"watch of deployments.apps delayed, starting with POST deployments.apps default/a, in step again",
		"watch of widgets.example.com delayed, starting with PUT widgets.example.com/status default/a, in step again",
		"watch of widgets.example.com delayed, starting with step create",
		"watch of deployments.apps delayed, starting with step create",
		"watch of widgets.example.com delayed, starting with step up",
		"watch of deployments.apps delayed, starting with step up",
		"watch of widgets.example.com delayed, starting with step back",
		"watch of deployments.apps delayed, starting with step back",
		"watch of widgets.example.com delayed, starting with step delete",
		"watch of deployments.apps delayed, starting with step delete",
		"watch of widgets.example.com delayed, starting with step again",
		"watch of deployments.apps delayed, starting with step again",
	})
	expect(t, why(p, fault.DelayWatch, "configmaps"), []string{
		"the controller does not watch configmaps", "the controller does not watch configmaps",
	})
}

func TestStatesAreLostWhereTheWorldComesBack(t *testing.T) {
	expect(t, find(Make(life().input()), fault.LoseStates), []string{
		"watch of widgets.example.com missed what happened from step up to step back",
		"watch of deployments.apps missed what happened from step up to step back",
		"watch of widgets.example.com missed what happened in step delete",
		"watch of deployments.apps missed what happened in step delete",
		"watch of widgets.example.com missed what happened from step delete to step again",
		"watch of deployments.apps missed what happened from step delete to step again",
	})
}

// held returns a story in which a Widget with the finalizer is created and deleted.
func held(finalizer string) *story {
	s := newStory("held")
	s.does("watch", target("widgets", ""), nil)
	with := func(more map[string]any) state.Object {
		metadata := map[string]any{"finalizers": []any{finalizer}}
		for k, v := range more {
			metadata[k] = v
		}
		return widget(1, metadata)
	}
	s.step(apply("create"))
	s.commit(ref("widgets", "a"), with(nil))
	s.step(remove("delete"))
	s.commit(ref("widgets", "a"), with(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}))
	s.commit(ref("widgets", "a"), nil)
	s.step(apply("again"))
	s.commit(ref("widgets", "a"), with(nil))
	return s
}

func TestADeletionThatWaitsForTheControllerCannotBeMissed(t *testing.T) {
	p := Make(held("example.com/cleanup").input())
	if got := find(p, fault.LoseStates); len(got) != 0 {
		t.Errorf("planned %v", got)
	}
	if got := why(p, fault.LoseStates, "delete"); len(got) != 2 || !strings.Contains(got[0], "finalizer") {
		t.Errorf("skipped because %q", got)
	}
	if got := find(Make(held("foregroundDeletion").input()), fault.LoseStates); len(got) != 2 {
		t.Errorf("Kubernetes itself removes this finalizer, so two faults are expected, but the plan has %v", got)
	}
}

func TestItIsRestartedAtEachRestAndDownInEachStepThatActs(t *testing.T) {
	s := newStory("s")
	s.does("watch", target("widgets", ""), nil)
	s.step(apply("create"))
	s.step(scenario.Step{Name: "look"})
	asleep := apply("asleep")
	asleep.WhileDown = true
	s.step(asleep)
	s.commit(ref("widgets", "a"), widget(1, nil))
	p := Make(s.input())
	expect(t, find(p, fault.Restart), []string{
		"restarted at rest after step create", "restarted at rest after step look", "restarted at rest after step asleep",
	})
	expect(t, find(p, fault.DownDuring), []string{"down during step create"})
	expect(t, why(p, fault.DownDuring, ""), []string{
		"the step changes nothing", "the scenario performs the step while the controller is down anyway",
	})
	expect(t, find(p, fault.Outage), nil)
	expect(t, why(p, fault.Outage, ""), []string{
		"the controller writes nothing in the step", "the step changes nothing", "the scenario performs the step while the controller is down anyway",
	})
	if got := find(p, fault.DelayWatch); len(got) != 0 {
		t.Errorf("planned while no watch is open: %v", got)
	}
}

func TestTheServerIsAwayInEachStepWithWork(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.Outage), []string{
		"unable to reach the API server for the first 5 s of step create",
		"unable to reach the API server for the first 5 s of step up",
		"unable to reach the API server for the first 5 s of step back",
		"unable to reach the API server for the first 5 s of step again",
	})
}

func TestAServerThatIsNotReadyIsMetOnceBeforeAStepWithWork(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.OfflineStart), []string{"restarted at rest after step create, while the API server could not be reached"})
	expect(t, find(p, fault.FailingStart), []string{"restarted at rest after step create, while the API server answered with 500"})

	s := newStory("s")
	s.step(apply("create"))
	s.step(scenario.Step{Name: "look"})
	asleep := apply("asleep")
	asleep.WhileDown = true
	s.step(asleep)
	s.writes("create", "configmaps", "a", state.Object{})
	s.step(apply("change"))
	s.writes("update", "configmaps", "a", state.Object{"n": 1})
	expect(t, find(Make(s.input()), fault.OfflineStart), []string{"restarted at rest after step asleep, while the API server could not be reached"})

	s = newStory("s")
	s.run.Steps = append(s.run.Steps, evidence.Step{Name: "(start)", Began: s.rev, BeganAt: s.now})
	s.step(apply("create"))
	s.writes("create", "configmaps", "a", state.Object{})
	s.step(remove("delete"))
	expect(t, find(Make(s.input()), fault.OfflineStart), []string{"restarted at rest after step (start), while the API server could not be reached"})
}

func TestOldListsAreShownAtTheirOwnRestAndAtTheNext(t *testing.T) {
	s := newStory("s")
	s.does("list", target("widgets", ""), func(c *trace.Call) { c.Path = "/apis/example.com/v1/widgets?resourceVersion=0" })
	s.does("watch", target("widgets", ""), nil)
	s.step(apply("one"))
	s.commit(ref("widgets", "a"), widget(1, nil))
	s.step(apply("two"))
	s.commit(ref("widgets", "a"), widget(2, nil))
	s.commit(ref("widgets", "a"), widget(3, nil))
	s.step(apply("else"))
	s.commit(ref("configmaps", "x"), state.Object{})
	s.step(remove("three"))
	s.commit(ref("widgets", "a"), nil)
	var got []string
	for _, f := range Make(s.input()).Faults {
		if f.Fault.Kind == fault.StaleRestart {
			got = append(got, fmt.Sprintf("%s %d", f.Fault.Point.Step, f.Fault.Revision))
			if f.Phase != fault.PhaseStale {
				t.Errorf("%s is in phase %d", f, f.Phase)
			}
		}
	}
	expect(t, got, []string{"two 0", "two 1", "three 2"})
}

func TestStaleRestartsGrowWithTheCommitsAndNotWithTheirSquare(t *testing.T) {
	const commits = 200
	s := newStory("s")
	s.does("list", target("widgets", ""), func(c *trace.Call) { c.Path = "/x?resourceVersion=0" })
	s.does("watch", target("widgets", ""), nil)
	for i := range commits {
		s.step(apply(fmt.Sprint("step", i)))
		s.commit(ref("widgets", "a"), widget(i, nil))
	}
	if n := len(find(Make(s.input()), fault.StaleRestart)); n > 2*commits {
		t.Errorf("%d stale restarts for %d commits", n, commits)
	}
}

func TestAClientThatAsksForTheLatestGetsNoOldLists(t *testing.T) {
	p := Make(life().input())
	if got := find(p, fault.StaleRestart); len(got) != 0 {
		t.Errorf("planned %v", got)
	}
	if got := why(p, fault.StaleRestart, "widgets"); len(got) != 1 || !strings.Contains(got[0], "latest") {
		t.Errorf("skipped because %q", got)
	}
}

func TestOneObjectOfEachKindIsMeddledWith(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.DeleteChild), []string{
		"another client deleted ConfigMap default/a at rest after step create",
		"another client deleted Deployment.apps default/a at rest after step create",
	})
	expect(t, find(p, fault.EditChild), []string{
		"another client changed data of ConfigMap default/a at rest after step create",
		"another client changed spec.replicas of Deployment.apps default/a at rest after step create",
	})
	expect(t, why(p, fault.EditChild, "spec.selector"), []string{"the API server refuses to change this field"})
	expect(t, find(p, fault.AddFinalizer), []string{
		"another client added a finalizer to Widget.example.com default/a at rest after step back, and removed it later",
		"another client added a finalizer to ConfigMap default/a at rest after step back, and removed it later",
		"another client added a finalizer to Deployment.apps default/a at rest after step back, and removed it later",
	})
}

func TestADeletionThatNamesNoNamespaceIsOfTheObjectOfTheRun(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.commit(ref("widgets", "a"), widget(1, nil))
	going := remove("delete")
	going.Delete.Namespace = ""
	s.step(going)
	s.commit(ref("widgets", "a"), nil)
	expect(t, find(Make(s.input()), fault.AddFinalizer), []string{
		"another client added a finalizer to Widget.example.com default/a at rest after step create, and removed it later",
	})
}

func TestWhatOthersMadeIsLeftAloneUnlessThePrimaryControlsIt(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	owner := func(kind string) map[string]any {
		return map[string]any{"ownerReferences": []any{map[string]any{
			"apiVersion": "example.com/v1", "kind": kind, "name": "a", "controller": true}}}
	}
	s.commit(ref("configmaps", "free"), object("ConfigMap", "free", nil, nil))
	s.commit(ref("pods", "other"), object("Pod", "other", nil, owner("Gadget")))
	s.commit(ref("deployments", "mine"), object("Deployment", "mine", nil, owner("Widget")))
	expect(t, find(Make(s.input()), fault.DeleteChild),
		[]string{"another client deleted Deployment.apps default/mine at rest after step create"})
}

func TestWhatIsAboutToGoIsLeftAlone(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.writes("create", "configmaps", "a", object("ConfigMap", "a", nil, nil))
	s.commit(ref("configmaps", "a"), object("ConfigMap", "a", nil, map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}))
	if got := find(Make(s.input()), fault.DeleteChild); len(got) != 0 {
		t.Errorf("planned %v", got)
	}
}

func TestFieldsAreThoseThatTheControllerSet(t *testing.T) {
	s := newStory("s")
	s.agent = "widget-operator/v1 (linux)"
	s.step(apply("create"))
	fields := func(text string) (set map[string]any) {
		if err := json.Unmarshal([]byte(text), &set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	d := deployment(1)
	d["metadata"].(map[string]any)["managedFields"] = []any{
		map[string]any{"manager": "widget-operator", "fieldsV1": fields(`{"f:spec":{".":{},"f:replicas":{}}}`)},
		map[string]any{"manager": "kube-controller-manager", "fieldsV1": fields(`{"f:spec":{"f:paused":{}}}`)},
		map[string]any{"manager": "widget-operator", "subresource": "status", "fieldsV1": fields(`{"f:spec":{"f:odd":{}}}`)},
	}
	s.writes("create", "deployments", "a", d)
	expect(t, find(Make(s.input()), fault.EditChild),
		[]string{"another client changed spec.replicas of Deployment.apps default/a at rest after step create"})
}

func TestADefaultOfTheServerIsNotTheControllersToKeep(t *testing.T) {
	s := newStory("s")
	s.agent = "widget-operator/v1 (linux)"
	s.step(apply("create"))
	fields := map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}, "f:strategy": map[string]any{}, "f:revisionHistoryLimit": map[string]any{}, "f:paused": map[string]any{}}}
	metadata := map[string]any{"managedFields": []any{map[string]any{"manager": "widget-operator", "fieldsV1": fields}}}
	spec := map[string]any{"replicas": 1, "revisionHistoryLimit": 10, "strategy": map[string]any{"type": "RollingUpdate"}}
	s.commit(ref("deployments", "a"), object("Deployment", "a", spec, metadata))
	s.does("create", target("deployments", "a"), func(c *trace.Call) {
		c.Request = encode(object("Deployment", "a", map[string]any{"replicas": 1, "strategy": map[string]any{}}, nil))
		c.ResourceVersion = strconv.FormatInt(s.rev, 10)
	})
	spec = maps.Clone(spec)
	spec["paused"] = true
	s.writes("update", "deployments", "a", object("Deployment", "a", spec, metadata))
	expect(t, find(Make(s.input()), fault.EditChild), []string{
		"another client changed spec.paused of Deployment.apps default/a at rest after step create",
		"another client changed spec.replicas of Deployment.apps default/a at rest after step create",
	})
}

func TestMetadataOfAnObjectWithAGeneratedNameIsNotChanged(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	metadata := map[string]any{"generateName": "a-", "labels": map[string]any{"b": "c"}}
	s.commit(ref("deployments", "a-x1z9q"), object("Deployment", "a-x1z9q", nil, metadata))
	s.does("create", target("deployments", "a-x1z9q"), func(c *trace.Call) {
		c.Request = encode(object("Deployment", "", nil, metadata))
		c.ResourceVersion = strconv.FormatInt(s.rev, 10)
	})
	in := s.input()
	in.Canonical = func(namespace, name, _ string) string {
		return namespace + "/" + strings.Replace(name, "x1z9q", "*", 1)
	}
	p := Make(in)
	expect(t, find(p, fault.EditChild), nil)
	expect(t, why(p, fault.EditChild, "metadata.labels"), []string{"its name is generated, so it cannot be told from its replacement"})
}

func TestOnlyMetadataThatTheControllerHasSetIsChanged(t *testing.T) {
	metadata := func(labels, owners any) map[string]any {
		return map[string]any{"labels": labels, "ownerReferences": owners}
	}
	owner := []any{map[string]any{"kind": "Widget", "name": "a", "uid": "u"}}
	for name, tt := range map[string]struct {
		said, has map[string]any
		want      []string
	}{
		"both": {metadata(map[string]any{"a.b/c": "d"}, owner), metadata(map[string]any{"a.b/c": "d"}, owner), []string{
			"another client changed metadata.labels of Deployment.apps default/a at rest after step create",
			"another client removed metadata.ownerReferences of Deployment.apps default/a at rest after step create",
		}},
		"neither":          {nil, metadata(map[string]any{"a": "b"}, owner), nil},
		"one label of two": {metadata(map[string]any{"a": "b"}, nil), metadata(map[string]any{"a": "b", "c": "d"}, nil), nil},
		"nothing is there": {nil, nil, nil},
	} {
		s := newStory("s")
		s.step(apply("create"))
		s.commit(ref("deployments", "a"), object("Deployment", "a", nil, tt.has))
		s.does("create", target("deployments", "a"), func(c *trace.Call) {
			c.Request = encode(object("Deployment", "a", nil, tt.said))
			c.ResourceVersion = strconv.FormatInt(s.rev, 10)
		})
		t.Log(name)
		expect(t, find(Make(s.input()), fault.EditChild), tt.want)
	}
}

func TestTheSeedChoosesAmongObjectsOfAKind(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	for i := range 8 {
		s.writes("create", "configmaps", fmt.Sprint("c", i), state.Object{})
	}
	in := s.input()
	chosen := map[string]bool{}
	for seed := range uint64(20) {
		in.Seed = seed
		got := find(Make(in), fault.DeleteChild)
		if len(got) != 1 {
			t.Fatalf("planned %v, want one of the kind", got)
		}
		chosen[got[0]] = true
	}
	if len(chosen) < 3 {
		t.Errorf("20 seeds chose only %v", chosen)
	}
}

func TestALeaseIsLostWhereThereIsStillSomethingToWrite(t *testing.T) {
	if p := Make(life().input()); len(find(p, fault.LoseLease)) != 0 || len(why(p, fault.LoseLease, "")) != 1 {
		t.Errorf("without election: %v, %v", find(p, fault.LoseLease), why(p, fault.LoseLease, ""))
	}
	in := life().input()
	in.Subject = &subject.Subject{Election: []string{"--leader-elect"}}
	expect(t, find(Make(in), fault.LoseLease), []string{
		"lost its Lease to a second instance at rest after step create",
		"lost its Lease to a second instance at rest after step up",
	})
}

func TestOddPluralsAreLearntFromDefinitions(t *testing.T) {
	s := newStory("s")
	s.does("watch", trace.Target{Group: "example.com", Resource: "widgetry"}, nil)
	s.step(apply("create"))
	s.commit(ref("widgets", "a"), widget(1, nil))
	in := s.input()
	in.Subject.Install = []unstructured.Unstructured{{Object: map[string]any{
		"kind": "CustomResourceDefinition",
		"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Widget", "plural": "widgetry"}},
	}}}
	expect(t, find(Make(in), fault.DelayWatch),
		[]string{"watch of widgetry.example.com delayed, starting with step create"})
}
