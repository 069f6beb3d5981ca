package fault

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestAFaultReadsAsTheBeginningOfASentence(t *testing.T) {
	patch := Point{Step: "scale", Verb: "patch", Resource: "deployments.apps", Object: "default/viewer-a", Occurrence: 1}
	tests := []struct {
		fault Fault
		want  string
	}{
		{Fault{Kind: KillBefore, Point: patch}, "killed before PATCH deployments.apps default/viewer-a"},
		{Fault{Kind: KillLost, Point: patch}, "killed after PATCH deployments.apps default/viewer-a (the answer was lost)"},
		{Fault{Kind: KillAgain, Point: patch, Again: Point{Step: "scale", Verb: "create", Resource: "pods", Object: "default/a-*", Occurrence: 2}},
			"killed after PATCH deployments.apps default/viewer-a, and again after the 2nd POST pods default/a-* (the answers were lost)"},
		{Fault{Kind: KillAfter, Point: patch}, "killed after PATCH deployments.apps default/viewer-a"},
		{Fault{Kind: LoseResponse, Point: patch}, "the answer to PATCH deployments.apps default/viewer-a was lost (the write succeeded)"},
		{Fault{Kind: WebhookDown, Point: patch}, "webhooks unreachable at PATCH deployments.apps default/viewer-a"},
		{Fault{Kind: Conflict, Point: Point{Step: "scale", Verb: "update", Resource: "widgets.example.com/status", Object: "default/a"}},
			"409 on PUT widgets.example.com/status default/a"},
		{Fault{Kind: Error500, Point: Point{Verb: "list", Resource: "pods", Object: "default/", Occurrence: 2}}, "500 on the 2nd LIST pods default/"},
		{Fault{Kind: ErrorBurst, Point: Point{Verb: "post", Resource: "endpoint:s3", Object: "/bucket?lifecycle"}}, "500 on POST endpoint:s3 /bucket?lifecycle, three times in a row"},
		{Fault{Kind: DelayWatch, Point: Point{Step: "create", Verb: "create", Resource: "pods", Object: "default/a-1"}},
			"watch of pods delayed, starting with POST pods default/a-1"},
		{Fault{Kind: DelayWatch, Point: Point{Step: "create", Resource: "pods"}}, "watch of pods delayed, starting with step create"},
		{Fault{Kind: LoseStates, Point: Point{Step: "up", Resource: "widgets.example.com"}, Until: "down"},
			"watch of widgets.example.com missed what happened from step up to step down"},
		{Fault{Kind: Restart, Point: Point{Step: "create"}}, "restarted at rest after step create"},
		{Fault{Kind: StaleRestart, Point: Point{Step: "again", Resource: "widgets.example.com"}, Revision: 4, Behind: 3},
			"restarted at rest after step again, with a list of widgets.example.com from 3 writes ago"},
		{Fault{Kind: OfflineStart, Point: Point{Step: "create"}}, "restarted at rest after step create, while the API server could not be reached"},
		{Fault{Kind: FailingStart, Point: Point{Step: "create"}}, "restarted at rest after step create, while the API server answered with 500"},
		{Fault{Kind: DownDuring, Point: Point{Step: "scale"}}, "down during step scale"},
		{Fault{Kind: DeleteChild, Point: Point{Step: "create"}, Target: "ConfigMap/default/a"}, "another client deleted ConfigMap default/a at rest after step create"},
		{Fault{Kind: EditChild, Point: Point{Step: "create"}, Target: "Namespace//a", Field: "spec.finalizers"}, "another client changed spec.finalizers of Namespace a at rest after step create"},
		{Fault{Kind: AddFinalizer, Point: Point{Step: "delete"}, Target: "Widget.example.com/default/a"},
			"another client added a finalizer to Widget.example.com default/a at rest after step delete, and removed it later"},
		{Fault{Kind: LoseLease, Point: Point{Step: "create"}}, "lost its Lease to a second instance at rest after step create"},
	}
	for _, tt := range tests {
		if got := tt.fault.String(); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.fault.Kind, got, tt.want)
		}
	}
}

func TestEveryKindSaysWhyAndHasItsOwnSentence(t *testing.T) {
	reasons, sentences := map[string]Kind{}, map[string]Kind{}
	for _, k := range Kinds() {
		f := Fault{Kind: k, Point: Point{Step: "s", Verb: "patch", Resource: "pods", Object: "d/a"}, Target: "Pod/d/a", Field: "spec.x"}
		for text, m := range map[string]map[string]Kind{k.Describe(): reasons, f.String(): sentences} {
			if other, ok := m[text]; ok {
				t.Errorf("%s and %s both say %q", k, other, text)
			}
			m[text] = k
			if strings.Contains(text, "unknown") || strings.Contains(text, "\n") || strings.HasPrefix(text, string(k)+" at") {
				t.Errorf("%s says %q", k, text)
			}
		}
	}
	if len(reasons) != 28 {
		t.Errorf("%d kinds are listed, 28 are defined", len(reasons))
	}
}

func TestAPointTellsItsStep(t *testing.T) {
	tests := map[string]Point{
		"PATCH pods d/a in step s":                     {Step: "s", Verb: "patch", Resource: "pods", Object: "d/a", Occurrence: 1},
		"the 11th LIST pods at startup":                {Verb: "list", Resource: "pods", Occurrence: 11},
		"the 23rd DELETE all pods d/ in step s":        {Step: "s", Verb: "deletecollection", Resource: "pods", Object: "d/", Occurrence: 23},
		"deployments.apps at the beginning of step s":  {Step: "s", Resource: "deployments.apps"},
		"at rest after step s":                         {Step: "s"},
		"at rest":                                      {},
		"the 1002nd PUT pods/status d/a at startup":    {Verb: "update", Resource: "pods/status", Object: "d/a", Occurrence: 1002},
		"the 111th HEAD endpoint:s3 /b?acl in step s2": {Step: "s2", Verb: "head", Resource: "endpoint:s3", Object: "/b?acl", Occurrence: 111},
	}
	for want, p := range tests {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestResourcesReadBackAsWritten(t *testing.T) {
	for _, want := range []trace.Target{
		{Resource: "pods"}, {Resource: "pods", Subresource: "status"},
		{Group: "apps", Resource: "deployments"},
		{Group: "rbac.authorization.k8s.io", Resource: "roles"},
		{Group: "example.com", Resource: "widgets", Subresource: "scale"},
	} {
		s := ResourceOf(&trace.Call{Verb: "get", Target: want})
		if got, endpoint := ParseResource(s); got != want || endpoint != "" {
			t.Errorf("%q reads as %+v at %q, want %+v", s, got, endpoint, want)
		}
	}
	if got, endpoint := ParseResource(ResourceOf(&trace.Call{Endpoint: "s3.local"})); got != (trace.Target{}) || endpoint != "s3.local" {
		t.Errorf("an endpoint reads as %+v at %q", got, endpoint)
	}
}

func TestTargetsAreRefusedIfTheyNameNoObject(t *testing.T) {
	for _, s := range []string{"", "a", "ConfigMap/default", "ConfigMap/default/", "/default/a", "ConfigMap/a/b/c"} {
		if _, _, _, _, ok := ParseTarget(s); ok {
			t.Errorf("%q is accepted as a target", s)
		}
	}
	kind, group, ns, name, ok := ParseTarget("Widget.example.com/default/a.b")
	if !ok || kind != "Widget" || group != "example.com" || ns != "default" || name != "a.b" {
		t.Errorf("read %q %q %q %q %v", kind, group, ns, name, ok)
	}
}

func TestFaultsSurviveJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	word := func() string { return []string{"", "a", "deployments.apps/status", "ü\"\n<>&"}[rng.IntN(4)] }
	for range 500 {
		want := Fault{
			Kind:  Kinds()[rng.IntN(len(Kinds()))],
			Point: Point{Step: word(), Verb: word(), Resource: word(), Object: word(), Change: word(), Occurrence: rng.IntN(3)},
			Until: word(), Revision: rng.IntN(3), Behind: rng.IntN(3), Target: word(), Field: word(),
			Again: Point{Step: word(), Verb: word(), Occurrence: rng.IntN(2)},
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Fault
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", data, diff)
		}
	}
}
