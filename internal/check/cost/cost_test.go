package cost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// runOf makes a run from lines such as "get pods/a", "list pods?limit=5", "list pods -> 7" with the
// version of the answer, "list pods ! 403" with the status, and "step NAME".
func runOf(t *testing.T, story string) *evidence.Run {
	t.Helper()
	run := &evidence.Run{}
	for line := range strings.Lines(story) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "":
			continue
		case "step":
			run.Steps = append(run.Steps, evidence.Step{Name: rest})
			run.Entries = append(run.Entries, trace.Entry{Step: &trace.Step{Name: rest, What: "started"}})
			continue
		}
		run.Entries = append(run.Entries, trace.Entry{Instance: "controller-1", Call: call(t, verb, rest)})
	}
	return run
}

func call(t *testing.T, verb, rest string) *trace.Call {
	t.Helper()
	c := &trace.Call{Verb: verb, Code: 200}
	if before, code, found := strings.Cut(rest, " ! "); found {
		rest = before
		if _, err := fmt.Sscan(code, &c.Code); err != nil {
			t.Fatal(err)
		}
	}
	rest, c.ResourceVersion, _ = strings.Cut(rest, " -> ")
	where, query, _ := strings.Cut(rest, "?")
	c.Path = "/x?" + query
	where, in, _ := strings.Cut(where, "@")
	c.Target.Namespace = in
	where, c.Target.Name, _ = strings.Cut(where, ":")
	where, c.Target.Subresource, _ = strings.Cut(where, "/")
	c.Target.Resource, c.Target.Group, _ = strings.Cut(where, ".")
	return c
}

const start = "step start\nlist widgets.x -> 3\nwatch widgets.x?resourceVersion=3\n"

func TestOnlyRequestsThatTheScenarioCausesAreCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		story string
		want  Budget
	}{
		"by verb, resource and subresource": {
			"get pods:a\nget pods:b\nupdate widgets.x/status:w\npatch deployments.apps:d\nlist pods?labelSelector=a",
			Budget{"get pods": 2, "list pods": 1, "update widgets.x/status": 1, "patch deployments.apps": 1}},
		"a read of what does not exist":       {"get pods:a ! 404", Budget{"get pods": 1}},
		"Events":                              {"create events:a\npatch events:a\ncreate events.events.k8s.io:b\nget events:a", Budget{"create events": 1, "patch events": 1, "create events.events.k8s.io": 1}},
		"a kind that is only named like them": {"create events.x:a", Budget{"create events.x": 1}},
		"the start":                           {"", Budget{}},
		"an election":                         {"get leases.coordination.k8s.io:a\nupdate leases.coordination.k8s.io:a", Budget{}},
		"a review":                            {"create subjectaccessreviews.authorization.k8s.io", Budget{}},
		"a new watch":                         {"list pods -> 5\nwatch pods?resourceVersion=5", Budget{}},
		"a new watch in pages":                {"list pods?limit=2 -> 5\nlist pods?limit=2&continue=x -> 5\nwatch pods?resourceVersion=5", Budget{}},
		"a watch of something else":           {"list pods -> 5\nwatch nodes?resourceVersion=5", Budget{"list pods": 1}},
		"a watch in another namespace":        {"list pods@a -> 5\nwatch pods@b?resourceVersion=5", Budget{"list pods": 1}},
		"lists before and after a new watch":  {"list pods -> 4\nlist pods -> 5\nwatch pods?resourceVersion=5\nlist pods -> 6", Budget{"list pods": 2}},
		"lists that are refused":              {"list pods ! 403\nlist pods ! 403", Budget{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Of([]*evidence.Run{runOf(t, start+"step create\n"+tt.story)}).Budget(nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheReadsOfAControllerThatPollsAreNotCounted(t *testing.T) {
	u := Of([]*evidence.Run{runOf(t, "step start\nlist widgets.x\nstep create\nlist widgets.x\nget pods:a\ncreate pods:a")})
	if diff := cmp.Diff(Usage{Requests: []Requests{{"create pods", 1, 1}}, Steps: 1}, u); diff != "" {
		t.Error(diff)
	}
}

func TestTheRequestsOfAnotherClientOrAnEndpointAreNotCounted(t *testing.T) {
	run := runOf(t, start+"step create\nget pods:a\nget pods:a")
	run.Entries[len(run.Entries)-1].Instance = ""
	run.Entries[len(run.Entries)-2].Call.Endpoint = "cloud"
	if got := Of([]*evidence.Run{run}).Requests; got != nil {
		t.Errorf("%+v", got)
	}
}

func TestTheLargestNumberIsTheBudgetAndTheSmallestIsCompared(t *testing.T) {
	u := Of([]*evidence.Run{
		runOf(t, start+"step create\n"+strings.Repeat("get pods:a\n", 30)),
		runOf(t, start+"step create\n"+strings.Repeat("get pods:a\n", 12)+"get nodes:a"),
	})
	want := []Requests{{"get nodes", 0, 1}, {"get pods", 12, 30}}
	if diff := cmp.Diff(want, u.Requests); diff != "" {
		t.Error(diff)
	}
}

func TestABudgetKeepsNumbersThatFitAndOmitsWhatOnlySomeRunsSend(t *testing.T) {
	u := Usage{Requests: []Requests{{"get nodes", 0, 3}, {"get pods", 12, 14}, {"list pods", 4, 5}, {"patch pods", 50, 60}, {"update pods", 3, 4}}}
	old := Budget{"get nodes": 3, "get pods": 11, "patch pods": 30, "update pods": 20, "delete pods": 1}
	want := Budget{"get pods": 11, "list pods": 5, "patch pods": 60, "update pods": 4}
	got := u.Budget(old)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if over := u.Over(got); over != nil {
		t.Errorf("the new budget is exceeded at once: %+v", over)
	}
}

func TestRequestsAboveTheBudgetNeedARatioAndADistance(t *testing.T) {
	for _, tt := range []struct {
		budget int32
		now    int
		over   bool
	}{
		{14, 14, false}, {14, 23, false}, {14, 24, true}, {0, 9, false}, {0, 10, true}, {100, 150, false}, {100, 151, true}, {20, 30, false}, {20, 31, true}, {50, 3, false},
	} {
		u := Usage{Requests: []Requests{{"get pods", tt.now, tt.now + 100}}}
		want := []Excess(nil)
		if tt.over {
			want = []Excess{{"get pods", int(tt.budget), tt.now}}
		}
		if diff := cmp.Diff(want, u.Over(Budget{"get pods": tt.budget})); diff != "" {
			t.Errorf("%d with a budget of %d: %s", tt.now, tt.budget, diff)
		}
	}
	if got := (Usage{Requests: []Requests{{"get pods", 10, 10}}}).Over(nil); len(got) != 1 {
		t.Errorf("a request that no budget has: %+v", got)
	}
}

func TestAResourceThatEachReconcileListsIsFound(t *testing.T) {
	lists := func(n int, what string) string { return strings.Repeat(what+"\n", n) }
	for name, tt := range map[string]struct {
		story string
		found bool
	}{
		"in each step":                      {"step a\n" + lists(3, "list pods") + "step b\n" + lists(3, "list pods"), true},
		"in one namespace":                  {"step a\n" + lists(3, "list pods@n") + "step b\n" + lists(3, "list pods@n"), true},
		"custom resources":                  {"step a\n" + lists(3, "list boats.sea") + "step b\n" + lists(3, "list boats.sea"), true},
		"too few":                           {"step a\n" + lists(2, "list pods") + "step b\n" + lists(2, "list pods"), false},
		"in one step of two":                {"step a\n" + lists(9, "list pods") + "step b\n", false},
		"in half of the steps":              {"step a\n" + lists(3, "list pods") + "step b\n" + lists(3, "list pods") + "step c\nstep d", false},
		"in most steps":                     {"step a\n" + lists(3, "list pods") + "step b\n" + lists(3, "list pods") + "step c", true},
		"in a scenario with one step":       {"step a\n" + lists(9, "list pods"), false},
		"in two namespaces, few in each":    {"step a\n" + lists(3, "list pods@n") + "step b\n" + lists(3, "list pods@m"), false},
		"with a limit":                      {"step a\n" + lists(3, "list pods?limit=500") + "step b\n" + lists(3, "list pods?limit=500"), false},
		"with a selector of labels":         {"step a\n" + lists(3, "list pods?labelSelector=a") + "step b\n" + lists(3, "list pods?labelSelector=a"), false},
		"with a selector of fields":         {"step a\n" + lists(3, "list pods?fieldSelector=a") + "step b\n" + lists(3, "list pods?fieldSelector=a"), false},
		"from the server's cache":           {"step a\n" + lists(3, "list pods?resourceVersion=0") + "step b\n" + lists(3, "list pods?resourceVersion=0"), false},
		"a resource with few objects":       {"step a\n" + lists(3, "list storageclasses.storage.k8s.io") + "step b\n" + lists(3, "list storageclasses.storage.k8s.io"), false},
		"a group with few objects":          {"step a\n" + lists(3, "list infrastructures.config.openshift.io") + "step b\n" + lists(3, "list infrastructures.config.openshift.io"), false},
		"followed by a watch each time":     {"step a\n" + lists(3, "list pods\nwatch pods") + "step b\n" + lists(3, "list pods\nwatch pods"), false},
		"beside a watch of the same":        {"step a\nlist pods -> 7\nwatch pods?resourceVersion=7\n" + lists(3, "list pods -> 8") + "step b\n" + lists(3, "list pods -> 8"), true},
		"only Events":                       {"step a\n" + lists(3, "list events") + "step b\n" + lists(3, "list events"), false},
		"objects with an empty limit query": {"step a\n" + lists(3, "list pods?limit=") + "step b\n" + lists(3, "list pods?limit="), true},
	} {
		t.Run(name, func(t *testing.T) {
			u := Of([]*evidence.Run{runOf(t, start+tt.story), runOf(t, start+tt.story)})
			if got := Again(map[string]Usage{"s": u}); (len(got) == 1) != tt.found {
				t.Errorf("found %+v in %+v", got, u)
			}
		})
	}
}

func TestListsMustBeRepeatedInEveryRun(t *testing.T) {
	often := start + "step a\nlist pods\nlist pods\nlist pods\nstep b\nlist pods\nlist pods\n"
	once := start + "step a\nlist pods\nstep b\nlist pods\n"
	none := start + "step a\nstep b\n"
	for _, stories := range [][]string{{often, once}, {once, often}, {often, none}, {none, often}} {
		u := Of([]*evidence.Run{runOf(t, stories[0]), runOf(t, stories[1])})
		if got := Again(map[string]Usage{"s": u}); got != nil {
			t.Errorf("found %+v in %q", got, stories)
		}
	}
}

func TestOneResourceIsFoundOnceAndTheOtherScenariosAreNamed(t *testing.T) {
	usage := func(times int, resources ...string) Usage {
		u := Usage{Steps: 3}
		for _, r := range resources {
			u.Lists = append(u.Lists, Lists{Resource: r, Namespace: "n", Times: times, Steps: 3})
		}
		return u
	}
	got := Again(map[string]Usage{"c": usage(7, "pods"), "a": usage(6, "pods", "nodes"), "b": usage(9, "pods"), "d": usage(2, "pods")})
	want := []Whole{
		{Resource: "nodes", Namespace: "n", Scenario: "a", Times: 6, InSteps: 3, Steps: 3},
		{Resource: "pods", Namespace: "n", Scenario: "b", Times: 9, InSteps: 3, Steps: 3, AlsoIn: []string{"a", "c"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
