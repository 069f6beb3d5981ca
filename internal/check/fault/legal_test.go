package fault

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

const clientGo = "manager/v0.0.0 (linux/amd64) kubernetes/$Format"

func entryOf(call *trace.Call) trace.Entry {
	return trace.Entry{Instance: "controller-1", Call: call}
}

func listOf(query string) *trace.Call {
	return &trace.Call{Verb: "list", Target: trace.Target{Group: "example.com", Resource: "widgets"}, Path: "/apis/example.com/v1/widgets" + query, Code: 200}
}

func watchOf(query string) *trace.Call {
	c := listOf(query)
	c.Verb = "watch"
	return c
}

func TestOldListsAreForClientsThatTakeThem(t *testing.T) {
	stale := Fault{Kind: StaleRestart, Point: Point{Step: "s", Resource: "widgets.example.com"}}
	tests := []struct {
		name string
		old  bool
		seen []*trace.Call
		why  string // empty: legal
	}{
		{"client-go up to 0.34, fabric8", false, []*trace.Call{listOf("?resourceVersion=0"), watchOf("?resourceVersion=7")}, ""},
		{"kube-rs, kopf", false, []*trace.Call{listOf(""), watchOf("?resourceVersion=7")}, "without resourceVersion=0"},
		{"a re-list at a version", false, []*trace.Call{listOf("?resourceVersion=05")}, "without resourceVersion=0"},
		{"client-go from 0.35 on", false, []*trace.Call{watchOf("?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")}, "without resourceVersion=0"},
		{"client-go from 0.35 on that fell back once", false,
			[]*trace.Call{watchOf("?sendInitialEvents=true"), listOf("?resourceVersion=0")}, "sendInitialEvents"},
		{"client-go from 0.35 on with an old server", true, []*trace.Call{watchOf("?sendInitialEvents=true"), listOf("?resourceVersion=0")}, ""},
		{"a client that asks for the latest state from an old server", true, []*trace.Call{listOf("")}, "without resourceVersion=0"},
	}
	for _, tt := range tests {
		var entries []trace.Entry
		for _, c := range tt.seen {
			entries = append(entries, entryOf(c))
		}
		facts := FactsOf(entries, nil, nil)
		facts.OldServer = tt.old
		ok, why := Legal(stale, facts)
		if ok != (tt.why == "") || !strings.Contains(why, tt.why) {
			t.Errorf("%s: legal %v because %q, want %q", tt.name, ok, why, tt.why)
		}
	}
}

func TestAConflictNeedsAWriteThatCanConflict(t *testing.T) {
	target := trace.Target{Resource: "configmaps", Namespace: "d", Name: "a"}
	tests := []struct {
		name, verb, contentType, body string
		want                          bool
	}{
		{"update with a version", "update", "application/json", `{"metadata":{"resourceVersion":"5"}}`, true},
		{"update without", "update", "application/json", `{"metadata":{}}`, false},
		{"merge patch with a version", "patch", "application/merge-patch+json", `{"metadata":{"resourceVersion":"5"}}`, true},
		{"merge patch without", "patch", "application/merge-patch+json", `{"data":{"a":"b"}}`, false},
		{"server-side apply without", "patch", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap"}`, false},
		{"JSON patch with a test", "patch", "application/json-patch+json", `[{"op":"test","path":"/metadata/resourceVersion","value":"5"}]`, true},
		{"JSON patch with a test of something else", "patch", "application/json-patch+json", `[{"op":"test","path":"/data/a","value":"5"}]`, false},
		{"delete with a precondition", "delete", "application/json", `{"preconditions":{"resourceVersion":"5"}}`, true},
		{"delete with one on the UID", "delete", "application/json", `{"preconditions":{"uid":"u"}}`, false},
		{"delete without", "delete", "", ``, false},
		{"create", "create", "application/json", `{"metadata":{"name":"a"}}`, false},
		{"a body that is not JSON", "update", "application/vnd.kubernetes.protobuf", "k8s\x00", false},
	}
	for _, tt := range tests {
		call := &trace.Call{Verb: tt.verb, Target: target, ContentType: tt.contentType, Request: json.RawMessage(tt.body), Code: 200}
		facts := FactsOf([]trace.Entry{entryOf(call)}, nil, nil)
		ok, why := Legal(Fault{Kind: Conflict, Point: PointOf(call, "", nil, nil)}, facts)
		if ok != tt.want || ok == (why != "") {
			t.Errorf("%s: legal %v because %q, want %v", tt.name, ok, why, tt.want)
		}
	}
}

func TestRetryAfterIsSeenOnlyByClientsThatDoNotObeyIt(t *testing.T) {
	for agent, want := range map[string]bool{clientGo: false, "kopf/1.38": true, "node-fetch": true} {
		call := patchOf("a", `{}`)
		call.UserAgent = agent
		facts := FactsOf([]trace.Entry{entryOf(call)}, nil, nil)
		for kind, want := range map[Kind]bool{Error503: want, TooMany429: want, Error500: true, Timeout504: true, ErrorBurst: true, LoseResponse: true} {
			if ok, why := Legal(Fault{Kind: kind, Point: PointOf(call, "", nil, nil)}, facts); ok != want {
				t.Errorf("%s to %s: legal %v because %q", kind, agent, ok, why)
			}
		}
	}
	outside := &trace.Call{Verb: "put", Endpoint: "s3", Path: "/b", UserAgent: clientGo}
	facts := FactsOf([]trace.Entry{entryOf(outside)}, nil, nil)
	if ok, why := Legal(Fault{Kind: Error503, Point: PointOf(outside, "", nil, nil)}, facts); !ok {
		t.Errorf("503 at an endpoint is illegal: %s", why)
	}
}

func TestLegalityOfTheRest(t *testing.T) {
	lease := &trace.Call{Verb: "update", Target: trace.Target{Group: "coordination.k8s.io", Resource: "leases", Namespace: "d", Name: "l"}}
	read := &trace.Call{Verb: "get", Target: trace.Target{Resource: "pods", Namespace: "d", Name: "p"}}
	bare := FactsOf([]trace.Entry{entryOf(read), entryOf(watchOf(""))}, nil, nil)
	leading := FactsOf([]trace.Entry{entryOf(lease)}, nil, nil)
	elected := FactsOf(nil, nil, nil)
	elected.Election = true
	tests := []struct {
		name  string
		fault Fault
		facts *Facts
		want  bool
	}{
		{"restart", Fault{Kind: Restart}, bare, true},
		{"down", Fault{Kind: DownDuring}, bare, true},
		{"lease without election", Fault{Kind: LoseLease}, bare, false},
		{"lease that is written", Fault{Kind: LoseLease}, leading, true},
		{"lease by arguments", Fault{Kind: LoseLease}, elected, true},
		{"delay of what is watched", Fault{Kind: DelayWatch, Point: Point{Resource: "widgets.example.com/status", Verb: "patch"}}, bare, true},
		{"delay of what is not", Fault{Kind: DelayWatch, Point: Point{Resource: "pods"}}, bare, false},
		{"states of what is not watched", Fault{Kind: LoseStates, Point: Point{Resource: "pods"}}, bare, false},
		{"kill at a read", Fault{Kind: KillLost, Point: PointOf(read, "", nil, nil)}, bare, false},
		{"500 at a read", Fault{Kind: Error500, Point: PointOf(read, "", nil, nil)}, bare, true},
		{"500 at a read that is not there", Fault{Kind: Error500, Point: Point{Verb: "get", Resource: "pods", Object: "d/q"}}, bare, false},
		{"delete of nothing", Fault{Kind: DeleteChild}, bare, false},
		{"edit of no field", Fault{Kind: EditChild, Target: "Pod/d/p"}, bare, false},
		{"edit", Fault{Kind: EditChild, Target: "Pod/d/p", Field: "spec.x"}, bare, true},
		{"a kind of another version", Fault{Kind: "meteorite", Point: PointOf(read, "", nil, nil)}, bare, false},
	}
	for _, tt := range tests {
		ok, why := Legal(tt.fault, tt.facts)
		if ok != tt.want || ok == (why != "") {
			t.Errorf("%s: legal %v because %q, want %v", tt.name, ok, why, tt.want)
		}
	}
}

func TestWhatTheTesterDidIsNoRequestOfTheController(t *testing.T) {
	facts := FactsOf([]trace.Entry{{Call: listOf("?resourceVersion=0")}}, nil, nil)
	if ok, _ := Legal(Fault{Kind: StaleRestart, Point: Point{Resource: "widgets.example.com"}}, facts); ok {
		t.Error("the tester's own list makes a fault of the controller legal")
	}
}

func TestCallsKnowTheirStepAndWhetherItRests(t *testing.T) {
	var got []string
	entries := []trace.Entry{
		entryOf(&trace.Call{ID: 1}),
		{Step: &trace.Step{Name: "a", What: "started"}}, entryOf(&trace.Call{ID: 2}),
		{Call: &trace.Call{ID: 3}},
		{Step: &trace.Step{Name: "a", What: "settled"}}, entryOf(&trace.Call{ID: 4}),
		{Step: &trace.Step{Name: "b", What: "started"}}, entryOf(&trace.Call{ID: 5}),
	}
	for at := range Calls(entries) {
		s := at.Step
		if at.Resting {
			s += " resting"
		}
		got = append(got, s)
	}
	if want := ",a,a resting,b"; strings.Join(got, ",") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnElectionInAConfigMapCanBeLost(t *testing.T) {
	for record, legal := range map[string]bool{
		`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{}"}}}`: true,
		`{"metadata":{}}`: false,
	} {
		call := &trace.Call{Verb: "update", Code: 200, Request: json.RawMessage(record), Target: trace.Target{Resource: "configmaps", Namespace: "d", Name: "leader"}}
		if ok, why := Legal(Fault{Kind: LoseLease}, FactsOf([]trace.Entry{entryOf(call)}, nil, nil)); ok != legal {
			t.Errorf("%s: %t, %s", record, ok, why)
		}
	}
}

func TestAQuotaCountsOnlyNewObjectsInNamespaces(t *testing.T) {
	in := func(target trace.Target, verb string, code int) *trace.Call {
		return &trace.Call{Verb: verb, Target: target, Code: code}
	}
	maps := trace.Target{Resource: "configmaps", Namespace: "d", Name: "a"}
	eviction := trace.Target{Resource: "pods", Subresource: "eviction", Namespace: "d", Name: "a"}
	for name, tt := range map[string]struct {
		call *trace.Call
		want bool
	}{
		"a creation":                    {in(maps, "create", 201), true},
		"an apply that creates":         {in(maps, "patch", 201), true},
		"an apply that changes":         {in(maps, "patch", 200), false},
		"an update":                     {in(maps, "update", 200), false},
		"an eviction":                   {in(eviction, "create", 201), false},
		"a custom resource":             {in(trace.Target{Group: "example.com", Resource: "widgets", Namespace: "d"}, "create", 201), true},
		"a cluster-scoped object":       {in(trace.Target{Resource: "persistentvolumes", Name: "a"}, "create", 201), false},
		"an Event":                      {in(trace.Target{Resource: "events", Namespace: "d"}, "create", 201), false},
		"a write to an external server": {&trace.Call{Verb: "put", Endpoint: "s3", Path: "/a", Code: 201}, false},
	} {
		facts := FactsOf([]trace.Entry{entryOf(tt.call)}, nil, nil)
		if ok, why := Legal(Fault{Kind: Forbid, Point: PointOf(tt.call, "", nil, nil)}, facts); ok != tt.want || ok != (why == "") {
			t.Errorf("%s: legal %v, because %q", name, ok, why)
		}
	}
}

func TestRolesDecideAboutWritesToTheCluster(t *testing.T) {
	maps := trace.Target{Resource: "configmaps", Namespace: "d", Name: "a"}
	for name, tt := range map[string]struct {
		call *trace.Call
		want bool
	}{
		"an update":                     {&trace.Call{Verb: "update", Target: maps, Code: 200}, true},
		"a read":                        {&trace.Call{Verb: "get", Target: maps, Code: 200}, false},
		"a write to an external server": {&trace.Call{Verb: "put", Endpoint: "s3", Path: "/a", Code: 201}, false},
	} {
		facts := FactsOf([]trace.Entry{entryOf(tt.call)}, nil, nil)
		if ok, why := Legal(Fault{Kind: Revoke, Point: PointOf(tt.call, "", nil, nil)}, facts); ok != tt.want || ok != (why == "") {
			t.Errorf("%s: legal %v, because %q", name, ok, why)
		}
	}
}

func TestWebhooksCanOnlyBeMissedByWritesThatTheyReview(t *testing.T) {
	widgets := trace.Target{Group: "example.com", Resource: "widgets", Namespace: "d", Name: "a"}
	ofWidgets := func(call *trace.Call) bool { return call.Target.Resource == "widgets" }
	for name, tt := range map[string]struct {
		call     *trace.Call
		reviewed func(*trace.Call) bool
		want     bool
	}{
		"a reviewed update":               {&trace.Call{Verb: "update", Target: widgets, Code: 200}, ofWidgets, true},
		"an update of another type":       {&trace.Call{Verb: "update", Target: trace.Target{Resource: "pods", Namespace: "d", Name: "a"}, Code: 200}, ofWidgets, false},
		"a read":                          {&trace.Call{Verb: "get", Target: widgets, Code: 200}, ofWidgets, false},
		"a controller without webhooks":   {&trace.Call{Verb: "update", Target: widgets, Code: 200}, nil, false},
		"a write to an external server":   {&trace.Call{Verb: "put", Endpoint: "s3", Path: "/a", Code: 201}, func(*trace.Call) bool { return true }, false},
		"a deletion of a reviewed object": {&trace.Call{Verb: "delete", Target: widgets, Code: 200}, ofWidgets, true},
	} {
		facts := FactsOf([]trace.Entry{entryOf(tt.call)}, nil, nil)
		facts.Reviewed = tt.reviewed
		if ok, why := Legal(Fault{Kind: WebhookDown, Point: PointOf(tt.call, "", nil, nil)}, facts); ok != tt.want || ok != (why == "") {
			t.Errorf("%s: legal %v, because %q", name, ok, why)
		}
	}
}

func TestAServerWithoutEtcdAnswersWhatItHasInMemory(t *testing.T) {
	widgets := trace.Target{Group: "example.com", Resource: "widgets", Namespace: "d"}
	for name, tt := range map[string]struct {
		call *trace.Call
		want bool
	}{
		"a write":                       {&trace.Call{Verb: "update", Target: widgets}, true},
		"a read":                        {&trace.Call{Verb: "get", Target: widgets, Path: "/w/a"}, true},
		"a read of any version":         {&trace.Call{Verb: "get", Target: widgets, Path: "/w/a?resourceVersion=0"}, false},
		"a list of the latest state":    {&trace.Call{Verb: "list", Target: widgets, Path: "/w?limit=500"}, true},
		"a list of any state":           {&trace.Call{Verb: "list", Target: widgets, Path: "/w?limit=500&resourceVersion=0"}, false},
		"a watch that is resumed":       {&trace.Call{Verb: "watch", Target: widgets, Path: "/w?watch=true&resourceVersion=7"}, false},
		"a watch with the latest state": {&trace.Call{Verb: "watch", Target: widgets, Path: "/w?watch=true&sendInitialEvents=true"}, true},
		"discovery":                     {&trace.Call{Verb: "get", Path: "/apis"}, false},
		"a review":                      {&trace.Call{Verb: "create", Target: trace.Target{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}}, false},
		"a Lease":                       {&trace.Call{Verb: "update", Target: trace.Target{Group: "coordination.k8s.io", Resource: "leases", Name: "a"}}, true},
		"another server":                {&trace.Call{Verb: "put", Endpoint: "s3", Path: "/a"}, false},
	} {
		if got := NeedsStore(tt.call); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
