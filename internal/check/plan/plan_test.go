package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func expect(t *testing.T, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryEffectiveWriteIsAPoint(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.KillLost), []string{
		"killed after POST configmaps default/a (the answer was lost), in step create",
		"killed after POST deployments.apps default/a (the answer was lost), in step create",
		"killed after PUT widgets.example.com/status default/a (the answer was lost), in step create",
		"killed after PUT deployments.apps default/a (the answer was lost), in step up",
		"killed after PUT deployments.apps default/a (the answer was lost), in step back",
		"killed after POST configmaps default/a (the answer was lost), in step again",
		"killed after POST deployments.apps default/a (the answer was lost), in step again",
		"killed after PUT widgets.example.com/status default/a (the answer was lost), in step again",
	})
}

func TestAWriteThatChangesNothingIsNoPoint(t *testing.T) {
	p := Make(life().input())
	got := why(p, "", "PUT deployments.apps default/a in step create")
	expect(t, got, []string{"it changed nothing (the resourceVersion stayed the same)"})
}

func TestAWriteWithTheRevisionOfSomebodyElseChangedNothing(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.commit(ref("deployments", "a"), deployment(1)) // by another client
	s.add(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{Type: "ADDED", ResourceVersion: fmt.Sprint(s.rev)}})
	s.repeats("patch", "deployments", "a")
	if p := Make(s.input()); len(find(p, fault.KillLost)) != 0 {
		t.Errorf("planned %v", find(p, fault.KillLost))
	}
}

func TestAnEventThatOvertakesItsAnswerDoesNotMakeTheWriteIdle(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.commit(ref("deployments", "a"), deployment(1))
	s.add(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{Type: "ADDED", ResourceVersion: fmt.Sprint(s.rev)}})
	s.does("create", target("deployments", "a"), func(c *trace.Call) {
		c.Took = 5 * time.Millisecond // it arrived before the event
		c.ResourceVersion = fmt.Sprint(s.rev)
	})
	if p := Make(s.input()); len(find(p, fault.KillLost)) != 1 {
		t.Errorf("planned %v, skipped %v", find(p, fault.KillLost), p.Skipped)
	}
}

func TestTheWriteThatTakesOffTheLastFinalizerIsAPoint(t *testing.T) {
	s := newStory("s")
	held := widget(1, map[string]any{"finalizers": []any{"example.com/x"}})
	s.step(apply("create"))
	s.commit(ref("widgets", "a"), held)
	s.step(remove("delete"))
	going := widget(1, map[string]any{"finalizers": []any{"example.com/x"}, "deletionTimestamp": "2026-01-01T00:00:00Z"})
	s.commit(ref("widgets", "a"), going)
	old := fmt.Sprint(s.rev)
	s.commit(ref("widgets", "a"), nil)
	s.does("patch", target("widgets", "a"), func(c *trace.Call) {
		c.ResourceVersion = old // the server answers with the object of the request
		c.Response = encode(widget(1, map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}))
	})
	expect(t, find(Make(s.input()), fault.KillLost),
		[]string{"killed after PATCH widgets.example.com default/a (the answer was lost), in step delete"})
}

func TestADeletionIsFoundByItsObject(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.commit(ref("configmaps", "a"), state.Object{})
	s.commit(ref("configmaps", "b"), state.Object{})
	s.step(apply("change"))
	s.writes("delete", "configmaps", "a", nil)                                                      // answered only with a Status
	s.does("delete", target("configmaps", "a"), func(c *trace.Call) { c.Code = 404 })               // gone
	s.does("delete", target("configmaps", "b"), func(c *trace.Call) { c.Path = "/x?dryRun=All" })   // only a dry run
	s.does("delete", target("deployments", "a"), nil)                                               // it changed nothing
	s.does("create", target("pods/eviction", "p"), func(c *trace.Call) { c.Request = encode("x") }) // its answer shows no effect
	p := Make(s.input())
	expect(t, find(p, fault.KillLost), []string{
		"killed after DELETE configmaps default/a (the answer was lost), in step change",
		"killed after POST pods/eviction default/p (the answer was lost), in step change",
	})
	expect(t, why(p, "", "DELETE"), []string{
		"it was refused with 404 in the run without a fault",
		"it is a dry run",
		"it changed nothing (the object was already being deleted, or gone)",
	})
}

func TestOneCommitIsOfOneDeletionOnly(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.commit(ref("configmaps", "a"), state.Object{})
	s.writes("delete", "configmaps", "a", nil)
	s.does("delete", target("configmaps", "a"), nil) // answered with 200, and too late
	p := Make(s.input())
	expect(t, find(p, fault.KillLost), []string{"killed after DELETE configmaps default/a (the answer was lost), in step create"})
	if len(why(p, "", "DELETE")) != 1 {
		t.Errorf("skipped %v, want the second", p.Skipped)
	}
}

func TestRequestsAreNumberedAsTheyArrive(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.does("update", target("configmaps", "a"), func(c *trace.Call) { c.Code = 409 })
	s.commit(ref("configmaps", "a"), state.Object{})
	s.does("update", target("configmaps", "a"), func(c *trace.Call) {
		c.Took = 5 * time.Millisecond // it arrived before the first request, but was answered after it
		c.ResourceVersion = fmt.Sprint(s.rev)
	})
	expect(t, find(Make(s.input()), fault.KillLost),
		[]string{"killed after PUT configmaps default/a (the answer was lost), in step create"})
}

func TestTheIDIsOfWhatAFaultMeans(t *testing.T) {
	f := fault.Fault{Kind: fault.StaleRestart, Point: fault.Point{Step: "s", Resource: "pods"}, Revision: 2, Behind: 3}
	later, older := f, f
	later.Behind, older.Revision = 4, 1
	if idOf("a", f) != idOf("a", later) {
		t.Error("the field Behind changes the ID")
	}
	if idOf("a", f) == idOf("a", older) || idOf("a", f) == idOf("b", f) {
		t.Error("another list or scenario has the same ID")
	}
}

func TestTheMachineryAroundAControllerIsNoPoint(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	for _, target := range []trace.Target{
		{Resource: "events", Namespace: "d"}, {Group: "events.k8s.io", Resource: "events", Namespace: "d"},
		{Group: "coordination.k8s.io", Resource: "leases", Namespace: "d", Name: "l"},
		{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
		{Group: "authentication.k8s.io", Resource: "tokenreviews"},
		{Resource: "serviceaccounts", Subresource: "token", Namespace: "d", Name: "x"},
	} {
		for _, verb := range []string{"create", "get", "list"} {
			s.does(verb, target, nil)
		}
	}
	s.does("get", trace.Target{}, func(c *trace.Call) { c.Path = "/apis" })
	s.does("watch", target("pods", ""), nil)
	in := s.input()
	for _, f := range Make(in).Faults {
		if f.Phase == fault.PhaseWrites {
			t.Errorf("planned %s", f)
		}
	}
}

func TestACustomResourceNamedLikeTheMachineryIsAPoint(t *testing.T) {
	for _, target := range []trace.Target{
		{Group: "example.com", Resource: "leases", Namespace: "d", Name: "l"},
		{Group: "example.com", Resource: "events", Namespace: "d", Name: "e"},
		{Group: "example.com", Resource: "customresourcedefinitions", Name: "c"},
		{Resource: "nodes", Name: "n"},
	} {
		s := newStory("s")
		s.step(apply("create"))
		s.does("get", target, nil)
		if got := find(Make(s.input()), fault.Error500); len(got) != 1 {
			t.Errorf("%s.%s: planned %v, want one fault", target.Resource, target.Group, got)
		}
	}
}

func TestReadsFailOnceEach(t *testing.T) {
	s := newStory("s")
	s.does("list", target("pods", ""), nil)
	s.step(apply("create"))
	for range 5 {
		s.does("get", target("pods", "p"), nil)
	}
	in := s.input()
	in.Occurrences = 2
	p := Make(in)
	expect(t, find(p, fault.Error500), []string{
		"500 on LIST pods default/, at startup",
		"500 on GET pods default/p, in step create",
		"500 on the 2nd GET pods default/p, in step create",
	})
	if len(p.Skipped) == 0 || p.Skipped[0].Times != 3 {
		t.Errorf("the three reads beyond the second are not counted: %v", p.Skipped)
	}
}

func TestOfOneRequestOnlyTheFirstOccurrencesAreDone(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	for i := range 5 {
		s.commit(ref("configmaps", "a"), state.Object{"n": i})
		s.does("update", target("configmaps", "a"), func(c *trace.Call) { c.ResourceVersion = fmt.Sprint(s.rev) })
	}
	p := Make(s.input())
	if got := find(p, fault.LoseResponse); len(got) != 3 || !strings.Contains(got[2], "the 3rd PUT") {
		t.Errorf("planned %v, want the first three", got)
	}
	expect(t, why(p, "", "PUT"), []string{"it is the same as 3 earlier requests in this step"})
}

func TestWritesAtRestAreNoPoints(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.rest()
	s.writes("create", "configmaps", "a", state.Object{})
	p := Make(s.input())
	if got := find(p, fault.KillLost); len(got) != 0 {
		t.Errorf("planned %v", got)
	}
	expect(t, why(p, "", "POST"), []string{"it was sent after the step had come to rest"})
}

func TestConflictsAreForWritesWithAVersion(t *testing.T) {
	p := Make(life().input())
	for _, f := range find(p, fault.Conflict) {
		if !strings.Contains(f, "PUT") {
			t.Errorf("planned %s", f)
		}
	}
	if len(find(p, fault.Conflict)) != 4 {
		t.Errorf("planned %v, want the four updates", find(p, fault.Conflict))
	}
}

func TestTheLastKillBeforeRestIsARestart(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.KillAfter), []string{
		"killed after POST configmaps default/a, in step create",
		"killed after POST deployments.apps default/a, in step create",
		"killed after POST configmaps default/a, in step again",
		"killed after POST deployments.apps default/a, in step again",
	})
	expect(t, why(p, fault.KillAfter, "PUT"), slices.Repeat([]string{"no write follows it in the step, so this fault equals a restart at rest"}, 4))
	in := life().input()
	in.Scenario.Endpoints = []scenario.Endpoint{{Name: "s3"}}
	if got := len(find(Make(in), fault.KillAfter)); got != 8 {
		t.Errorf("with an endpoint %d kills after a write are planned, want all 8", got)
	}
}

func TestAKillBeforeAWriteIsOnlyForWhatTheClusterDoesNotKnow(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.writes("create", "configmaps", "a", state.Object{})
	s.writes("create", "configmaps", "b", state.Object{})
	s.does("put", trace.Target{}, func(c *trace.Call) { c.Endpoint, c.Path = "s3", "/bucket" })
	s.writes("create", "configmaps", "c", state.Object{})
	s.does("get", trace.Target{}, func(c *trace.Call) { c.Endpoint, c.Path = "s3", "/bucket" })
	s.writes("create", "configmaps", "d", state.Object{}) // the read before it changed nothing
	p := Make(s.input())
	expect(t, find(p, fault.KillBefore), []string{"killed before POST configmaps default/c, in step create"})
	expect(t, why(p, fault.KillBefore, ""), []string{
		"no write precedes it in the step, so this fault equals being down during the step",
		"this fault equals kill-lost at the previous write",
		"this fault equals kill-lost at the previous write",
	})
}

func TestEndpointsFailLikeTheCluster(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	s.does("get", trace.Target{}, func(c *trace.Call) { c.Endpoint, c.Path, c.Code = "s3", "/bucket", 404 })
	s.does("put", trace.Target{}, func(c *trace.Call) { c.Endpoint, c.Path = "s3", "/bucket" })
	s.does("delete", trace.Target{}, func(c *trace.Call) { c.Endpoint, c.Path, c.Code = "s3", "/other", 409 })
	var kinds []string
	for _, f := range Make(s.input()).Faults {
		if f.Fault.Point.AtEndpoint() {
			kinds = append(kinds, f.Fault.Point.Verb+" "+string(f.Fault.Kind))
			if f.Phase != fault.PhaseOthers {
				t.Errorf("%s is in phase %d", f, f.Phase)
			}
		}
	}
	expect(t, kinds, []string{
		"get error-500", "get error-503",
		"put kill-lost", "put lose-response", "put error-500", "put kill-after", "put error-503", "put error-429", "put terminate", "put hang",
	})
}

func TestTheControllerIsAskedToExitOnceForEachTypeAndVerbOfAStep(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	for _, name := range []string{"a", "b", "c"} {
		s.writes("create", "configmaps", name, state.Object{})
	}
	s.writes("update", "widgets/status", "a", widget(1, nil))
	s.writes("create", "deployments", "a", deployment(1))
	s.writes("patch", "widgets/status", "a", widget(2, nil))
	s.step(apply("more"))
	s.writes("create", "configmaps", "d", state.Object{})
	p := Make(s.input())
	expect(t, find(p, fault.Terminate), []string{
		"asked to exit (SIGTERM) during POST configmaps default/a, in step create",
		"asked to exit (SIGTERM) during PUT widgets.example.com/status default/a, in step create",
		"asked to exit (SIGTERM) during POST deployments.apps default/a, in step create",
		"asked to exit (SIGTERM) during POST configmaps default/d, in step more",
	})
	expect(t, why(p, fault.Terminate, "PATCH"), []string{"no write follows this status in the step, so no work is interrupted"})
}

func TestARefusedWriteIsPlannedOnceForEachTypeAndOnlyCreationsMeetAQuota(t *testing.T) {
	p := Make(life().input())
	expect(t, find(p, fault.Forbid), []string{
		"403 (exceeded quota) on POST configmaps default/a, in step create",
		"403 (exceeded quota) on POST deployments.apps default/a, in step create",
		"403 (exceeded quota) on POST configmaps default/a, in step again",
		"403 (exceeded quota) on POST deployments.apps default/a, in step again",
	})
	expect(t, find(p, fault.Revoke), []string{
		"403 (permission revoked) on PUT widgets.example.com/status default/a, in step create",
		"403 (permission revoked) on PUT deployments.apps default/a, in step up",
	})
	expect(t, find(p, fault.Hang), []string{
		"no answer to POST configmaps default/a (nothing was written), in step create",
		"no answer to POST deployments.apps default/a (nothing was written), in step create",
		"no answer to PUT widgets.example.com/status default/a (nothing was written), in step create",
	})
}

func TestWebhooksAreDownOnceForEachReviewedTypeOfAStep(t *testing.T) {
	s := newStory("s")
	s.writes("create", "configmaps", "early", state.Object{}) // when the API server does not call the webhooks yet
	one := scenario.Step{Name: "create", Apply: []scenario.Manifest{{Object: widget(1, nil)}}}
	s.step(one)
	s.writes("create", "configmaps", "a", state.Object{})
	s.writes("create", "configmaps", "b", state.Object{})
	s.writes("create", "deployments", "a", deployment(1)) // no webhook reviews it
	s.step(remove("delete"))
	s.writes("delete", "configmaps", "a", nil)
	s.step(scenario.Step{Name: "several", Apply: slices.Repeat(one.Apply, 2)})
	s.writes("create", "configmaps", "c", state.Object{})
	in := s.input()
	if got := find(Make(in), fault.WebhookDown); len(got) != 0 {
		t.Errorf("planned %v for a controller without webhooks", got)
	}
	in.Subject.Webhook.Port = 9443
	in.Subject.Webhooks = reviewing(t, "configmaps")
	p := Make(in)
	expect(t, find(p, fault.WebhookDown), []string{
		"webhooks unreachable at POST configmaps default/a, in step create",
		"webhooks unreachable at DELETE configmaps default/a, in step delete",
	})
	expect(t, why(p, fault.WebhookDown, ""), []string{
		"the API server does not call the webhooks before the first step",
		"the same fault is planned at a similar request",
		"the step may change several objects, and the later changes would be refused as well",
	})
	in.Subject.Webhooks = append(in.Subject.Webhooks, unstructured.Unstructured{Object: map[string]any{
		"kind": "MutatingWebhookConfiguration", "webhooks": []any{map[string]any{"failurePolicy": "Ignore"}},
	}})
	if got := find(Make(in), fault.WebhookDown); len(got) != 0 {
		t.Errorf("planned %v, although an object may be created without the changes of a webhook", got)
	}
}

// reviewing returns the configuration of a webhook that reviews all writes of a built-in resource.
func reviewing(t *testing.T, resource string) []unstructured.Unstructured {
	t.Helper()
	rule := map[string]any{"apiGroups": []any{""}, "resources": []any{resource}, "operations": []any{"*"}}
	return []unstructured.Unstructured{{Object: map[string]any{
		"kind": "ValidatingWebhookConfiguration", "webhooks": []any{map[string]any{"failurePolicy": "Fail", "rules": []any{rule}}},
	}}}
}

func TestACreationThatNoQuotaRefusesDoesNotHideALaterOne(t *testing.T) {
	s := newStory("s")
	s.step(apply("create"))
	// An update that creates the object is answered like any other update.
	s.commit(ref("configmaps", "a"), object("ConfigMap", "a", nil, nil))
	s.does("update", target("configmaps", "a"), func(c *trace.Call) {
		c.Code, c.Request, c.ResourceVersion = http.StatusCreated, encode(object("ConfigMap", "a", nil, nil)), strconv.FormatInt(s.rev, 10)
	})
	s.writes("create", "configmaps", "b", state.Object{})
	p := Make(s.input())
	expect(t, find(p, fault.Forbid), []string{"403 (exceeded quota) on POST configmaps default/b, in step create"})
	expect(t, why(p, fault.Forbid, "PUT"), []string{"a quota counts objects, and the request creates none"})
}

func TestWhatChanceDecidesComesLate(t *testing.T) {
	in := life().input()
	other := newStory("life") // it made none of the writes
	other.does("get", target("configmaps", "a"), nil)
	other.rest()
	in.All = append(in.All, other.run)
	for _, f := range Make(in).Faults {
		if f.Phase == fault.PhaseWrites && f.Rank < 40 {
			t.Errorf("%s has rank %d", f, f.Rank)
		}
	}
	if got := find(Make(in), fault.Error500); len(got) != 8 {
		t.Errorf("planned %v, want no reads, because some runs lack them", got)
	}
}

func TestABodyThatIsNeverTheSameIsNotAskedFor(t *testing.T) {
	in := life().input()
	random := life()
	for _, e := range random.run.Entries {
		if e.Call != nil && e.Call.Verb == "create" {
			e.Call.Request = json.RawMessage(`{"metadata":{"name":"a"},"random":"value"}`)
		}
	}
	in.All = append(in.All, random.run)
	for _, f := range Make(in).Faults {
		p := f.Fault.Point
		if (p.Verb == "create") != (p.Change == "") && p.Verb != "" && p.Verb != "get" {
			t.Errorf("%s asks for the body %q", f, p.Change)
		}
		if f.Rank >= 40 {
			t.Errorf("%s comes late", f)
		}
	}
}

func TestMakeIsTheSameForTheSame(t *testing.T) {
	first, second := Make(life().input()), Make(life().input())
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	if first.Points < 20 || first.Points > len(first.Faults)+len(first.Skipped) {
		t.Errorf("%d points for %d faults and %d skipped", first.Points, len(first.Faults), len(first.Skipped))
	}
}

func TestNoFaultIsPlannedTwiceAndEachIsLegal(t *testing.T) {
	in := life().input()
	p := Make(in)
	facts := fault.FactsOf(in.Reference.Entries, in.Canonical, in.Change)
	seen := map[string]bool{}
	for _, f := range p.Faults {
		if seen[f.ID] {
			t.Errorf("%s is planned twice", f)
		}
		seen[f.ID] = true
		if ok, why := fault.Legal(f.Fault, facts); !ok {
			t.Errorf("%s is not legal: %s", f, why)
		}
		if f.Phase < 1 || f.Phase > 4 || f.Cost <= 0 {
			t.Errorf("%s has phase %d and costs %d", f, f.Phase, f.Cost)
		}
	}
	for _, s := range p.Skipped {
		if s.Why == "" || s.Times < 1 || s.Scenario != "life" {
			t.Errorf("skipped without a reason: %+v", s)
		}
	}
}

func TestEveryRequestOfThePlanIsFoundAgain(t *testing.T) {
	in := life().input()
	for _, f := range Make(in).Faults {
		if f.Fault.Point.Verb == "" {
			continue
		}
		m, n := fault.NewMatcher(f.Fault, in.Canonical, in.Change), 0
		for at := range fault.Calls(life().run.Entries) {
			if m.Match(at.Entry.Call, at.Step) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s matches %d requests of the same run", f, n)
		}
	}
}

func TestAPlanReadsAsItWasWritten(t *testing.T) {
	want := Make(life().input())
	var buf bytes.Buffer
	if err := want.Write(&buf); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Read(strings.NewReader("{")); err == nil {
		t.Error("an incomplete plan is read without an error")
	}
}

func TestAScenarioWithoutRunsHasAnEmptyPlan(t *testing.T) {
	p := Make(Input{Scenario: &scenario.Scenario{Name: "s"}, Reference: &evidence.Run{}})
	if len(p.Faults) != 0 {
		t.Errorf("planned %v", p.Faults)
	}
}
