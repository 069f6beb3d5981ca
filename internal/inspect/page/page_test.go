package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/api"
	"github.com/koboshi-dev/koboshi/internal/inspect/source"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func serve(t *testing.T, live *inspect.Live) string {
	t.Helper()
	return start(t, api.Options{Session: live})
}

func start(t *testing.T, o api.Options) string {
	t.Helper()
	o.Page = Files()
	server, err := api.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.URL()
}

func recorded(t *testing.T) string {
	t.Helper()
	session, err := source.Load("../testdata/session.trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, inspect.Still(session))
}

func TestFromTheFirstScreenToAnObjectToItsCauseToTheDifference(t *testing.T) {
	b := open(t, recorded(t), 1280, 800, false)
	b.shows(".notices", "status.lastSync of Widget default/demo changes with each write and nothing else does")
	b.picture("overview")
	b.click("#objects .row", "default/demo-password")
	b.shows("h1", "Secret/default/demo-password")
	b.press("Escape")
	b.click("#objects .row", "Widget default/demo")
	b.shows("#rows .row", "denied the update: size must be at most 10")
	b.picture("timeline")
	b.press("2")
	b.shows(".card", "reconcile 5a1f-3")
	b.picture("why")
	b.click(".card a", "status.readyReplicas")
	b.shows("h1", "Deployment.apps/default/demo")
	b.shows("th", "status.readyReplicas")
	b.picture("diff")
	for _, view := range []string{"owners", "conditions", "managers", "admissions", "content"} {
		b.click("#everything a", "writes") // a view of all objects, in between
		b.shows("#rows .row", "create Secret")
		b.eval(fmt.Sprintf("location.hash = new URLSearchParams({ token: new URLSearchParams(location.hash.slice(1)).get('token'), object: 'Widget.x.io/default/demo', view: %q })", view))
		b.shows(".tabs a[aria-current]", view)
		b.shows("main", map[string]string{"owners": "Ready=True", "conditions": "AllGood", "managers": "widget-operator", "admissions": "/spec/size", "content": "lastSync"}[view])
	}
	b.click("#everything a", "permissions")
	b.shows("td", "update")
}

func TestThePageShowsChangesWhileTheyHappen(t *testing.T) {
	log := trace.NewLog(time.Now())
	b := open(t, serve(t, inspect.Follow(t.Context(), log, 0)), 1280, 800, true)
	b.shows("#state", "live")
	for i := range 3 {
		record(log, fmt.Sprint("w-", i), i+1)
		b.shows("#objects .row", fmt.Sprint("a/w-", i))
	}
	b.click("#objects .row", "a/w-1")
	b.shows("#rows .row", "saw MODIFIED")
	record(log, "w-1", 10)
	b.shows("#rows .row", "spec.size")
	b.picture("dark")
}

func TestACallOfAWebhookCanBeSentAgainWithTheKeyboard(t *testing.T) {
	log := trace.NewLog(time.Now())
	call := func(allowed bool, replays int64) trace.Entry {
		return trace.Entry{Review: &trace.Review{
			Path: "/validate", Code: 200, Replays: replays,
			Request:  json.RawMessage(`{"kind":"AdmissionReview","request":{"operation":"UPDATE","kind":{"group":"x.io","kind":"Widget"},"namespace":"a","name":"w"}}`),
			Response: json.RawMessage(fmt.Sprintf(`{"kind":"AdmissionReview","response":{"allowed":%t}}`, allowed)),
		}}
	}
	log.Record(call(true, 0))
	var sent atomic.Int32
	answer := make(chan struct{})
	b := open(t, start(t, api.Options{Session: inspect.Follow(t.Context(), log, 0), Replay: func(_ context.Context, of int64, _ *trace.Review) (trace.Entry, error) {
		sent.Add(1)
		<-answer
		return log.Record(call(false, of)), nil
	}}), 1280, 800, false)
	b.click("#everything a", "admissions")
	b.shows("#again-1", "Send again")
	b.eval("document.getElementById('again-1').focus()")
	b.press(" ")
	b.shows("#replayed", "Sending call 1 again")
	b.press(" ") // sends nothing, because a webhook may have side effects
	close(answer)
	b.shows("#replayed", "Call 1 was sent again: the answer differs from that to call 1 in allowed.")
	b.shows(".card", "Sent again by hand: the answer differs from that to call 1 in allowed.")
	b.await("document.activeElement.id === 'again-1'")
	b.picture("replay")
	if n := sent.Load(); n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
}

func TestARecordedSessionHasNoButtonToSendCallsAgain(t *testing.T) {
	b := open(t, recorded(t), 1280, 800, false)
	b.click("#everything a", "admissions")
	b.shows(".card", "/spec/size")
	b.await("document.querySelectorAll('main button').length === 0")
}

func TestThePageListsPermissionsThatAreGrantedAndNotUsed(t *testing.T) {
	log := trace.NewLog(time.Now())
	log.Record(trace.Entry{Grants: &trace.Grants{Account: "system/manager", Unknown: []string{"view"}, Roles: []trace.Role{{
		Kind: "ClusterRole", Name: "manager-role", File: "config/rbac/role.yaml",
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"x.io"}, Resources: []string{"widgets"}, Verbs: []string{"get", "update", "delete"}}},
	}}}})
	log.Record(trace.Entry{Instance: "controller-1", Call: &trace.Call{Verb: "get", Code: 200, Target: trace.Target{Group: "x.io", Version: "v1", Resource: "widgets", Namespace: "a", Name: "w"}}})
	session := inspect.New(trace.Header{}, nil)
	session.Add(log.Entries()...)
	b := open(t, serve(t, inspect.Still(session)), 1280, 800, false)
	b.click("#everything a", "permissions")
	b.shows("h2 ~ .scroll tr", "widgets.x.iodelete, updateClusterRole manager-role – config/rbac/role.yaml")
	b.shows("main", "A session exercises only a part of the code")
	b.shows("main", "The role view is bound too")
	b.picture("permissions")
}

func record(log *trace.Log, name string, rv int) {
	object := fmt.Sprintf(`{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":%q,"namespace":"a","resourceVersion":"%d"},"spec":{"size":%d}}`, name, rv, rv)
	log.Record(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{
		Type: "MODIFIED", Target: trace.Target{Group: "x.io", Version: "v1", Resource: "widgets"}, Object: json.RawMessage(object), ResourceVersion: fmt.Sprint(rv),
	}})
}

func TestTenThousandObjectsAreAListOfFewElements(t *testing.T) {
	log := trace.NewLog(time.Now())
	for i := range 10_000 {
		record(log, fmt.Sprintf("w-%05d", i), i+1)
	}
	session := inspect.New(trace.Header{}, nil)
	session.Add(log.Entries()...)
	b := open(t, serve(t, inspect.Still(session)), 1280, 800, false)
	b.shows("#total", "10000 objects")
	b.shows("#objects .row", "a/w-00000")
	b.eval("document.getElementById('objects').focus()")
	b.press("End")
	b.shows("#objects .row", "a/w-09999")
	if n := b.eval("document.querySelectorAll('#objects .row').length"); n.(float64) > 100 {
		t.Errorf("%v rows are in the page", n)
	}
	b.press("Enter")
	b.shows("h1", "Widget.x.io/a/w-09999")
	b.press("/")
	for _, key := range strings.Split("w-00077", "") {
		b.press(key)
	}
	b.shows("#total", "1 object")
	b.press("ArrowDown")
	b.await("document.activeElement.id === 'objects'")
}

func TestThePageFitsOnAPhone(t *testing.T) {
	b := open(t, recorded(t), 390, 844, false)
	b.shows(".notices", "status.lastSync")
	b.picture("phone")
	for _, view := range []string{"timeline", "why", "diff", "conditions"} {
		b.eval(fmt.Sprintf("location.hash = new URLSearchParams({ token: new URLSearchParams(location.hash.slice(1)).get('token'), object: 'Widget.x.io/default/demo', view: %q })", view))
		b.shows(".tabs a[aria-current]", view)
		if wide := b.eval("document.documentElement.scrollWidth"); wide.(float64) > 390 {
			t.Errorf("%s is %v pixels wide", view, wide)
		}
		b.picture("phone " + view)
	}
	b.click(".back", "Objects")
	b.shows("#objects .row", "Widget default/demo")
}

// A script or a style in the page itself would be blocked by the policy, and text that is
// parsed as HTML could carry scripts.
func TestNothingInThePageNeedsAnExceptionFromThePolicy(t *testing.T) {
	err := fs.WalkDir(os.DirFS("files"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile("files/" + name)
		for _, forbidden := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", "onclick=", "http:", "https:"} {
			if strings.Contains(string(data), forbidden) {
				t.Errorf("%s contains %s", name, forbidden)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
