package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// story builds the entries of a trace. Each entry is a millisecond later than the one before.
type story struct {
	entries []trace.Entry
	at      time.Duration
}

func (s *story) add(e trace.Entry) *story {
	s.at += time.Millisecond
	e.Seq, e.At = int64(len(s.entries))+1, s.at
	s.entries = append(s.entries, e)
	return s
}

func (s *story) wait(d time.Duration) *story { s.at += d; return s }

var resources = map[string]trace.Target{
	"Widget":     {Group: "x.io", Version: "v1", Resource: "widgets"},
	"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	"ConfigMap":  {Version: "v1", Resource: "configmaps"},
	"Secret":     {Version: "v1", Resource: "secrets"},
	"Event":      {Version: "v1", Resource: "events"},
	"Lease":      {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

// thing returns an object in namespace a. The parameter rest is JSON that is merged into the
// object.
func thing(kind, name string, rv int, rest string) map[string]any {
	object := map[string]any{}
	if rest != "" {
		if err := json.Unmarshal([]byte(rest), &object); err != nil {
			panic(err)
		}
	}
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"], meta["resourceVersion"] = name, "a", fmt.Sprint(rv)
	if meta["uid"] = "uid-" + name; kind != "Widget" {
		meta["uid"] = "uid-" + kind + "-" + name
	}
	object["metadata"], object["kind"] = meta, kind
	group := resources[kind].Group
	if group != "" {
		group += "/"
	}
	object["apiVersion"] = group + "v1"
	return object
}

func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func targetOf(object map[string]any) trace.Target {
	t := resources[object["kind"].(string)]
	t.Namespace, t.Name = "a", metadata(object, "name")
	return t
}

func (s *story) saw(event string, object map[string]any) *story {
	t := targetOf(object)
	t.Name = ""
	return s.add(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{Type: event, Target: t, Object: raw(object), ResourceVersion: metadata(object, "resourceVersion")}})
}

func (s *story) call(verb string, object map[string]any, change func(*trace.Call)) *story {
	c := &trace.Call{
		ID: int64(len(s.entries)), Verb: verb, Target: targetOf(object), Path: "/x?fieldManager=manager", Code: 200,
		Request: raw(object), Response: raw(object), ResourceVersion: metadata(object, "resourceVersion"), Took: 500 * time.Microsecond,
	}
	if verb == "create" {
		c.Code = 201
	}
	if change != nil {
		change(c)
	}
	return s.add(trace.Entry{Instance: "controller-1", Call: c})
}

func (s *story) line(text string) *story {
	return s.add(trace.Entry{Instance: "controller-1", Line: &trace.Line{Text: text}})
}

func (s *story) session() *Session { return Of(trace.Header{}, s.entries) }

func status(c *trace.Call) { c.Target.Subresource = "status" }

func refuse(code int, reason string) func(*trace.Call) {
	return func(c *trace.Call) {
		c.Code, c.Reason, c.Response, c.ResourceVersion = code, reason, raw(map[string]any{"kind": "Status", "reason": reason}), ""
	}
}

var (
	widget     = Ref{"x.io", "Widget", "a", "w"}
	deployment = Ref{"apps", "Deployment", "a", "w"}
)

const owned1 = `{"metadata":{"ownerReferences":[{"apiVersion":"x.io/v1","kind":"Widget","name":"w","uid":"uid-w","controller":true}]},"spec":{"replicas":%d}}`

// texts1 returns the texts of the notices.
func texts1(s *Session) (all []string) {
	for _, n := range s.Notices() {
		all = append(all, string(n.Level)+": "+n.Text)
	}
	return all
}

func TestATimestampThatIsWrittenOnEachReconcileIsNamedOnTheFirstScreen(t *testing.T) {
	s := &story{}
	s.saw("ADDED", thing("Widget", "w", 1, `{"spec":{"size":1}}`))
	for i := range 4 {
		w := thing("Widget", "w", 2+i, fmt.Sprintf(`{"spec":{"size":1},"status":{"lastSync":"2026-11-25T10:00:%02dZ","ready":true}}`, i))
		s.call("update", w, status).saw("MODIFIED", w).wait(2 * time.Second)
	}
	want := []string{"warning: status.lastSync of Widget a/w changes with each write and nothing else does: 3 times; it holds a time"}
	if diff := cmp.Diff(want, texts1(s.session())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRepeatedWritesAreNoticedByWhatTheyChange(t *testing.T) {
	write := func(n int, pause time.Duration, rv func(i int) int, rest func(i int) string) []string {
		s := (&story{}).saw("ADDED", thing("Widget", "w", 1, rest(-1)))
		for i := range n {
			w := thing("Widget", "w", rv(i), rest(i))
			s.call("update", w, nil).saw("MODIFIED", w).wait(pause)
		}
		return texts1(s.session())
	}
	same := func(int) int { return 1 }
	up := func(i int) int { return i + 2 }
	constant := func(int) string { return `{"spec":{"size":1}}` }
	counter := func(i int) string { return fmt.Sprintf(`{"status":{"n":%d}}`, i) }
	for name, c := range map[string]struct{ got, want []string }{
		"two writes that change nothing":  {write(2, time.Second, same, constant), nil},
		"four writes that change nothing": {write(4, 2*time.Second, same, constant), []string{"note: 4 writes of Widget a/w in a row changed nothing"}},
		"many of them, quickly":           {write(9, 98*time.Millisecond, same, constant), []string{"warning: 9 writes of Widget a/w in a row changed nothing, 10.0 each second"}},
		"a few ready replicas":            {write(6, time.Second, up, counter), nil},
		"a counter, slowly":               {write(12, 2*time.Second, up, counter), []string{"note: status.n of Widget a/w changes with each write and nothing else does: 12 times"}},
		"a counter, quickly":              {write(12, 98*time.Millisecond, up, counter), []string{"warning: status.n of Widget a/w changes with each write and nothing else does: 12 times, 10.0 each second"}},
		"a time in nanoseconds":           {write(3, 2*time.Second, up, func(i int) string { return fmt.Sprintf(`{"status":{"n":%d}}`, 1790000000000000000+i*1000000) }), []string{"warning: status.n of Widget a/w changes with each write and nothing else does: 3 times; it holds a time"}},
		"different fields":                {write(12, time.Second, up, func(i int) string { return fmt.Sprintf(`{"status":{"a":%d,"b":%d}}`, i/2, (i+1)/2) }), nil},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBookkeepingIsNotNoticed(t *testing.T) {
	s := (&story{}).saw("ADDED", thing("Lease", "l", 1, `{}`))
	for i := range 20 {
		s.call("update", thing("Lease", "l", i+2, fmt.Sprintf(`{"spec":{"renewTime":"2026-11-25T10:00:%02dZ"}}`, i)), nil)
	}
	if got := s.session(); len(got.Notices()) > 0 || len(got.Writes(Ref{})) > 0 || got.Overview().Writes > 0 {
		t.Errorf("%v, %v", texts1(got), got.Writes(Ref{}))
	}
}

func TestManagersThatAlternateFight(t *testing.T) {
	managed := func(rv, n int, manager string) map[string]any {
		return thing("Deployment", "w", rv, fmt.Sprintf(`{"metadata":{"managedFields":[
			{"manager":"other","operation":"Update","time":"2026-11-25T10:00:00Z","fieldsV1":{"f:spec":{"f:x":{}}}},
			{"manager":%q,"operation":"Update","time":"2026-11-25T10:00:00Z","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":%d}}`, manager, n))
	}
	s := (&story{}).call("create", managed(1, 3, "manager"), nil)
	for i := range 2 {
		s.saw("MODIFIED", managed(2+2*i, 1, "hpa")).call("update", managed(3+2*i, 3, "manager"), nil)
	}
	got := texts1(s.session())
	want := "warning: hpa and manager fight over spec.replicas of Deployment a/w: 1, then 3, again and again"
	if !slices.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m := s.session().Managers(deployment)
	if len(m) != 2 || !slices.Equal(m[1].Fields, []string{"spec.replicas"}) || m[1].Name != "manager" {
		t.Errorf("the managers are %v", m)
	}
}

func TestACorrectControllerIsNotBlamed(t *testing.T) {
	held := `{"metadata":{"finalizers":["x.io/f"]%s},"spec":{"size":1}}`
	dying := `,"deletionTimestamp":"2026-11-25T10:00:00Z"`
	deletion := (&story{}).saw("ADDED", thing("Widget", "w", 1, fmt.Sprintf(held, ""))).wait(time.Second).
		saw("MODIFIED", thing("Widget", "w", 2, fmt.Sprintf(held, dying))).wait(time.Second)
	// The server deletes the object, and answers with its last version.
	deletion.call("update", thing("Widget", "w", 2, `{"metadata":{"deletionTimestamp":"2026-11-25T10:00:00Z"},"spec":{"size":1}}`), nil)
	if w := deletion.session().Writes(widget); len(w) != 1 || w[0].NoOp || !slices.Equal(w[0].Changed, []string{"metadata.finalizers"}) {
		t.Errorf("the removal of the last finalizer is %+v", w)
	}

	rollout := (&story{}).call("create", thing("Deployment", "w", 1, `{"status":{"replicas":3}}`), nil)
	for i, n := range []int{4, 3, 4, 3, 4, 3} {
		rollout.wait(time.Second).saw("MODIFIED", thing("Deployment", "w", 2+i, fmt.Sprintf(`{"status":{"replicas":%d}}`, n)))
	}

	quota := (&story{}).call("create", thing("Pod", "p", 0, ""), func(c *trace.Call) {
		refuse(403, "Forbidden")(c)
		c.Message = `pods "p" is forbidden: exceeded quota: q`
	})
	if uses := quota.session().Permissions().Used; len(uses) != 1 || uses[0].Refused != 0 {
		t.Errorf("a quota counts as a missing permission: %v", uses)
	}
	for name, s := range map[string]*story{"finalizer": deletion, "rollout": rollout, "quota": quota} {
		if got := texts1(s.session()); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestARecreatedObjectIsNotComparedWithItsPredecessor(t *testing.T) {
	uid := `{"metadata":{"uid":"%s"},"data":{"a":"%d"}}`
	s := (&story{}).call("create", thing("ConfigMap", "c", 1, fmt.Sprintf(uid, "one", 1)), nil)
	for i, u := range []string{"two", "three", "four", "five"} {
		s.call("create", thing("ConfigMap", "c", 2+i, fmt.Sprintf(uid, u, i%2)), nil)
	}
	if got := texts1(s.session()); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestOnlyControllerRuntimeEndsAReconcileWithALine(t *testing.T) {
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, "")).
		line(logged("debug", "Reconciling", "id-1", "")).line(logged("info", "Reconcile started", "id-1", "")).
		wait(time.Second).call("update", thing("Widget", "w", 2, `{"status":{"phase":"Progressing"}}`), status).
		call("update", thing("Widget", "w", 3, `{"status":{"phase":"Ready"}}`), status).
		line(logged("debug", "Reconcile successful", "id-1", ""))
	all := s.session().Why(widget, 0)
	if len(all) != 1 || all[0].ID != "id-1" || len(all[0].Writes) != 2 || all[0].Result != "successful" || slices.Contains(all[0].Inferred, "ended") {
		t.Errorf("the reconciles are %+v", why(s.session(), widget))
	}
}

func TestRefusedAndOutdatedWritesAreNoticed(t *testing.T) {
	s := &story{}
	s.saw("ADDED", thing("Widget", "w", 1, ""))
	for range 3 {
		s.call("update", thing("Widget", "w", 1, ""), refuse(409, "Conflict")).wait(time.Second)
	}
	s.call("create", thing("Secret", "s", 0, ""), refuse(403, "Forbidden"))
	got := strings.Join(texts1(s.session()), "\n")
	for _, want := range []string{"warning: the server refused once to create", "note: Widget a/w was outdated 3 times when controller-1 wanted to change it"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	uses := s.session().Permissions().Used
	if len(uses) != 2 || uses[0].Refused != 1 || uses[1].Count != 3 {
		t.Errorf("the permissions are %v", uses)
	}
}

const head = `{"level":"%s","msg":"%s","controller":"widget","controllerGroup":"x.io","controllerKind":"Widget","Widget":{"name":"w","namespace":"a"},"reconcileID":"%s","error":"%s"}`

func logged(level, message, id, err string) string { return fmt.Sprintf(head, level, message, id, err) }

// seen is the part of a reconcile that the tests compare.
type seen struct {
	ID, Why          string
	Inferred, Causes []string
	Writes           []string
}

func why(s *Session, ref Ref) (all []seen) {
	for _, r := range s.Why(ref, 0) {
		x := seen{ID: r.ID, Why: r.Why, Inferred: r.Inferred}
		for _, c := range r.Causes {
			text := c.Relation + " " + c.Type + " " + c.Object.Kind
			if len(c.Changed) > 0 {
				text += " " + strings.Join(c.Changed, ",")
			}
			if c.Own != "" {
				text += " by " + c.Own
			}
			x.Causes = append(x.Causes, text)
		}
		for _, w := range r.Writes {
			x.Writes = append(x.Writes, w.Verb+" "+w.Object.Kind)
		}
		all = append(all, x)
	}
	return all
}

func compareWhy(t *testing.T, want, got []seen) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var (
	allInferred = []string{"causes", "began", "ended", "object"}
	idLogged    = []string{"causes", "began", "ended"}
)

func TestTheCauseOfAReconcileIsTheEventThatReachedTheControllerBefore(t *testing.T) {
	s := &story{}
	deploy := func(rv int, rest string) map[string]any {
		o := thing("Deployment", "w", rv, fmt.Sprintf(owned1, 2))
		if rest != "" {
			_ = json.Unmarshal([]byte(rest), &o)
		}
		return o
	}
	s.saw("ADDED", thing("Widget", "w", 1, `{"spec":{"size":2}}`))
	s.call("create", deploy(2, ""), nil).saw("ADDED", deploy(2, ""))
	s.call("update", thing("Widget", "w", 3, `{"spec":{"size":2},"status":{"phase":"Creating"}}`), status)
	s.saw("MODIFIED", thing("Widget", "w", 3, `{"spec":{"size":2},"status":{"phase":"Creating"}}`))
	s.wait(2 * time.Second)
	s.saw("MODIFIED", deploy(4, `{"status":{"readyReplicas":2}}`))
	s.call("update", thing("Widget", "w", 5, `{"spec":{"size":2},"status":{"phase":"Ready"}}`), status)
	s.wait(5 * time.Second)
	s.call("update", thing("Widget", "w", 5, `{"spec":{"size":2},"status":{"phase":"Ready"}}`), status)
	compareWhy(t, []seen{
		{ID: "~1", Inferred: allInferred, Causes: []string{"itself ADDED Widget"}, Writes: []string{"create Deployment", "update Widget"}},
		{ID: "~2", Inferred: allInferred, Causes: []string{"owned ADDED Deployment by ~1", "itself MODIFIED Widget status.phase by ~1", "owned MODIFIED Deployment status.readyReplicas"}, Writes: []string{"update Widget"}},
		{ID: "~3", Inferred: allInferred, Writes: []string{"update Widget"}, Why: "no event about the object, or about one that it owns, reached the controller since the previous reconcile: probably a requeue, a resync, or an event about another object"},
	}, why(s.session(), widget))
}

func TestReconcileIDsSeparateReconcilesThatTheirCallsDoNot(t *testing.T) {
	s := &story{}
	s.saw("ADDED", thing("Widget", "w", 1, ""))
	s.line(logged("debug", "Reconciling", "one", ""))
	s.call("create", thing("Deployment", "w", 2, fmt.Sprintf(owned1, 1)), nil)
	s.line(logged("debug", "Reconcile successful", "one", ""))
	s.saw("ADDED", thing("Deployment", "w", 2, fmt.Sprintf(owned1, 1)))
	s.line(logged("debug", "Reconciling", "two", ""))
	s.call("create", thing("ConfigMap", "c", 3, ""), nil)
	s.line(logged("error", "Reconciler error", "two", "it broke"))
	s.wait(20*time.Millisecond).call("update", thing("Widget", "w", 4, `{"status":{"a":1}}`), status)
	s.line(logged("info", "tried again", "three", ""))
	compareWhy(t, []seen{
		{ID: "one", Inferred: []string{"causes"}, Causes: []string{"itself ADDED Widget"}, Writes: []string{"create Deployment"}},
		{ID: "two", Inferred: []string{"causes"}, Causes: []string{"owned ADDED Deployment by one"}, Writes: []string{"create ConfigMap"}},
		{ID: "three", Inferred: idLogged, Writes: []string{"update Widget"}, Why: "probably tried again after an error: Reconciler error: it broke"},
	}, why(s.session(), widget))
}

func TestTheEventOfAWriteThatIsNotYetAnsweredBelongsToTheNextReconcile(t *testing.T) {
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, ""))
	for rv := 2; rv < 4; rv++ {
		w := thing("Widget", "w", rv, fmt.Sprintf(`{"status":{"n":%d}}`, rv))
		s.wait(time.Second).saw("MODIFIED", w).call("update", w, func(c *trace.Call) { c.Took = 5 * time.Millisecond })
	}
	got := why(s.session(), widget)
	if len(got) != 2 || !slices.Equal(got[0].Causes, []string{"itself ADDED Widget"}) || !slices.Equal(got[1].Causes, []string{"itself MODIFIED Widget status.n by ~1"}) {
		t.Errorf("%v", got)
	}
}

func TestRepeatingAWriteBeginsAnotherReconcileExceptAfterAConflict(t *testing.T) {
	s := &story{}
	for i := range 3 {
		s.call("update", thing("Widget", "w", i+1, fmt.Sprintf(`{"status":{"n":%d}}`, i)), status)
	}
	s.wait(time.Second)
	s.call("update", thing("Widget", "w", 9, ""), refuse(409, "Conflict")).call("get", thing("Widget", "w", 4, ""), nil).call("update", thing("Widget", "w", 5, ""), nil)
	var writes [][]string
	for _, r := range why(s.session(), widget) {
		writes = append(writes, r.Writes)
	}
	one := []string{"update Widget"}
	if diff := cmp.Diff([][]string{one, one, one, {"update Widget", "update Widget"}}, writes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnObjectWithoutOwnerThatIsMentionedCanBeTheCause(t *testing.T) {
	s := &story{}
	s.saw("ADDED", thing("Widget", "w", 1, `{"spec":{"configMapName":"settings"}}`)).call("update", thing("Widget", "w", 2, `{"spec":{"configMapName":"settings"},"status":{"n":1}}`), status)
	s.wait(time.Second).saw("ADDED", thing("ConfigMap", "unrelated", 3, "")).saw("ADDED", thing("ConfigMap", "settings", 4, ""))
	s.call("update", thing("Widget", "w", 5, `{"spec":{"configMapName":"settings"},"status":{"n":2}}`), status)
	got := why(s.session(), widget)
	if len(got) != 2 || !slices.Equal(got[1].Causes, []string{"mentioned ADDED ConfigMap"}) {
		t.Errorf("%v", got)
	}
}

func TestItemsOfAListAreEventsAndVersions(t *testing.T) {
	s := &story{}
	t1 := resources["Widget"]
	s.add(trace.Entry{Instance: "controller-1", Call: &trace.Call{Verb: "list", Target: t1, Code: 200, Response: raw(map[string]any{
		"kind": "WidgetList", "items": []any{thing("Widget", "v", 1, ""), thing("Widget", "w", 2, `{"spec":{"size":1}}`)},
	})}})
	s.call("update", thing("Widget", "w", 3, `{"spec":{"size":2}}`), nil)
	session := s.session()
	compareWhy(t, []seen{{ID: "~1", Inferred: allInferred, Causes: []string{"itself LISTED Widget"}, Writes: []string{"update Widget"}}}, why(session, widget))
	d, ok := session.Diff(widget, 0, 0)
	if !ok || d.From != 2 || d.To != 3 || !slices.Equal(paths(effective(d.Changes)), []string{"spec.size"}) {
		t.Errorf("%v, %v", d, ok)
	}
}

func TestCommitsShowWhatOtherClientsDid(t *testing.T) {
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, `{"spec":{"size":1}}`)).call("update", thing("Widget", "w", 2, `{"spec":{"size":1},"status":{"a":1}}`), status)
	history := state.History{
		Baseline: state.Snapshot{{GroupKind: schemaKind("Widget"), Namespace: "a", Name: "w"}: thing("Widget", "w", 1, `{"spec":{"size":1}}`)},
		Changes: []state.Change{
			{Revision: 2, At: s.at + 1, Op: state.Updated, Ref: state.Ref{GroupKind: schemaKind("Widget"), Namespace: "a", Name: "w"}, After: thing("Widget", "w", 2, `{"spec":{"size":1},"status":{"a":1}}`)},
			{Revision: 5, At: time.Second, Op: state.Updated, Ref: state.Ref{GroupKind: schemaKind("Widget"), Namespace: "a", Name: "w"}, After: thing("Widget", "w", 5, `{"spec":{"size":7},"status":{"a":1}}`)},
			{Revision: 6, At: 2 * time.Second, Op: state.Deleted, Ref: state.Ref{GroupKind: schemaKind("Widget"), Namespace: "a", Name: "w"}},
		},
	}
	entries := Merge(s.entries, history)
	for i, e := range entries {
		if e.Seq != int64(i)+1 {
			t.Fatalf("entry %d is number %d", i, e.Seq)
		}
	}
	session := Of(trace.Header{}, entries)
	var kinds []string
	for _, item := range session.Timeline(widget, 0) {
		kinds = append(kinds, item.Kind+" "+item.Text+" "+strings.Join(item.Changed, ","))
	}
	want := []string{"seen saw ADDED ", "write update status: 200 status.a", "commit updated spec.size", "commit deleted "}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rows, _ := session.Objects("widget", 0, 0); len(rows) != 1 || !rows[0].Gone {
		t.Errorf("%v", rows)
	}
}

func TestOwnersAreATreeFromItsRoot(t *testing.T) {
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, `{"metadata":{"finalizers":["x.io/f"]},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Waiting"}]}}`)).
		saw("ADDED", thing("Deployment", "w", 2, fmt.Sprintf(owned1, 1))).
		saw("ADDED", thing("ConfigMap", "c", 3, `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"w","uid":"uid-Deployment-w"}]}}`))
	tree := s.session().Owners(Ref{Kind: "ConfigMap", Namespace: "a", Name: "c"})
	if tree == nil || tree.Object != widget || tree.Summary != "Ready=False (Waiting)" || !slices.Equal(tree.Finalize, []string{"x.io/f"}) ||
		len(tree.Children) != 1 || tree.Children[0].Object != deployment || len(tree.Children[0].Children) != 1 || !tree.Children[0].Children[0].Asked {
		t.Errorf("%s", raw(tree))
	}
}

func TestConditionsAreShownOverTime(t *testing.T) {
	at := func(rv int, status, reason, when string) map[string]any {
		return thing("Widget", "w", rv, fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"lastTransitionTime":%q}]}}`, status, reason, when))
	}
	s := (&story{}).saw("ADDED", at(1, "False", "Creating", "1")).saw("MODIFIED", at(2, "False", "Creating", "2")).saw("MODIFIED", at(3, "True", "AllGood", "3")).saw("MODIFIED", thing("Widget", "w", 4, ""))
	var got []string
	for _, c := range s.session().Conditions(widget) {
		got = append(got, fmt.Sprintf("%d %s %s→%s %s", c.ResourceVersion, c.Type, c.From, c.To, c.Reason))
	}
	if diff := cmp.Diff([]string{"1 Ready →False Creating", "3 Ready False→True AllGood", "4 Ready True→ "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReviewsAreOnTheTimelineOfTheirObject(t *testing.T) {
	review := func(operation, answer string) trace.Entry {
		return trace.Entry{Review: &trace.Review{
			Path: "/validate", Code: 200, Took: 5 * time.Millisecond,
			Request:  json.RawMessage(`{"kind":"AdmissionReview","request":{"kind":{"group":"x.io","version":"v1","kind":"Widget"},"resource":{"group":"x.io","version":"v1","resource":"widgets"},"namespace":"a","name":"w","operation":"` + operation + `","userInfo":{"username":"admin"}}}`),
			Response: json.RawMessage(answer),
		}}
	}
	s := (&story{}).add(review("CREATE", `{"response":{"allowed":true,"patch":[{"op":"add","path":"/spec/size","value":3}]}}`)).
		add(review("UPDATE", `{"response":{"allowed":false,"status":{"message":"too big"}}}`))
	s.add(trace.Entry{Review: &trace.Review{Path: "/convert", Code: 200, Request: json.RawMessage(`{"kind":"ConversionReview","request":{"desiredAPIVersion":"x.io/v2","objects":[{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"w","namespace":"a"}}]}}`), Response: json.RawMessage(`{"response":{"result":{"status":"Success"}}}`)}})
	s.add(trace.Entry{Review: &trace.Review{Path: "/validate", Error: "the manager exited"}})
	session := s.session()
	var got []string
	for _, item := range session.Timeline(widget, 0) {
		got = append(got, item.Text)
	}
	want := []string{"/validate: allowed and patched the create", "/validate: denied the update: too big", "/convert: converted 1 objects to x.io/v2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all := session.Admissions(Ref{}); len(all) != 4 || all[3].Text() != "/validate: no answer: the manager exited" || all[0].User != "admin" {
		t.Errorf("%s", raw(all))
	}
}

func TestEventsAreOnTheTimelineOfTheObjectThatTheyAreAbout(t *testing.T) {
	event := thing("Event", "e", 3, `{"involvedObject":{"apiVersion":"x.io/v1","kind":"Widget","namespace":"a","name":"w"},"reason":"Made","message":"it is there","type":"Normal"}`)
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, "")).call("create", event, nil)
	got := s.session().Timeline(widget, 0)
	if len(got) != 2 || got[1].Kind != "event" || got[1].Text != "Made: it is there" {
		t.Errorf("%v", got)
	}
}

func TestAnObjectIsFoundByTheWordsOfKubectl(t *testing.T) {
	session := (&story{}).saw("ADDED", thing("Deployment", "w", 1, "")).saw("ADDED", thing("Widget", "w", 2, "")).session()
	for text, want := range map[string]string{
		"deployment/w": "", "Deployment/w": "", "deployments.apps/w": "", "deployments/a/w": "", "Deployment.apps/a/w": "",
		"deployment/x": "the session contains no", "deployment/b/w": "the session contains no", "deployment": "does not name an object", "deployments.x/w": "contains no",
	} {
		got, err := session.Find(text, "")
		if want == "" && (err != nil || got != deployment) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := session.Find("widgets/w", "a"); err != nil || got != widget {
		t.Errorf("%v, %v", got, err)
	}
}

func TestACallBeforeTheKindIsKnownBelongsToTheSameObject(t *testing.T) {
	s := (&story{}).call("get", thing("Widget", "w", 0, ""), refuse(404, "NotFound")).saw("ADDED", thing("Widget", "w", 1, ""))
	session := s.session()
	if rows, total := session.Objects("", 0, 0); total != 1 || rows[0].Object != widget || len(session.Timeline(widget, 0)) != 2 {
		t.Errorf("%v", rows)
	}
}

func TestDifferencesNameFieldsByTheirListKeys(t *testing.T) {
	decode := func(text string) (object map[string]any) {
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	for _, c := range []struct{ name, before, after, want string }{
		{"equal", `{"a":1}`, `{"a":1}`, ``},
		{"scalar", `{"a":1,"b":2}`, `{"a":1,"b":3}`, `b 2 3`},
		{"new map", `{}`, `{"a":{"b":1}}`, `a.b  1`},
		{"removed", `{"a":{"b":1}}`, `{}`, `a.b 1 `},
		{"empty map", `{}`, `{"a":{}}`, `a  {}`},
		{"condition", `{"c":[{"type":"A","s":1},{"type":"B","s":1}]}`, `{"c":[{"type":"B","s":2},{"type":"A","s":1}]}`, `c[B].s 1 2`},
		{"order", `{"c":[{"name":"A"},{"name":"B"}]}`, `{"c":[{"name":"B"},{"name":"A"}]}`, `c [{"name":"A"},{"name":"B"}] [{"name":"B"},{"name":"A"}]`},
		{"element", `{"c":[{"name":"A"}]}`, `{"c":[{"name":"A"},{"name":"B","x":1}]}`, "c[B].name  \"B\"\nc[B].x  1"},
		{"scalars in a list", `{"c":[1,2]}`, `{"c":[1,3]}`, `c[1] 2 3`},
		{"length", `{"c":[1]}`, `{"c":[1,2]}`, `c [1] [1,2]`},
		{"key with dots", `{"metadata":{"labels":{"x.io/a":"1"}}}`, `{"metadata":{"labels":{"x.io/a":"2"}}}`, `metadata.labels[x.io/a] "1" "2"`},
		{"server", `{"metadata":{"generation":1}}`, `{"metadata":{"generation":2}}`, `metadata.generation 1 2 server`},
	} {
		var got []string
		for _, d := range Compare(decode(c.before), decode(c.after)) {
			text := d.Path + " " + string(d.Before) + " " + string(d.After)
			if d.Server {
				text += " server"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s: got %s, want %s", c.name, text, c.want)
		}
	}
	if got := Compare(map[string]any{"a": int64(3)}, map[string]any{"a": 3.0}); len(got) > 0 {
		t.Errorf("equal numbers of two types differ: %v", got)
	}
}

func TestReadingAnObjectThatIsNamedElsewhereIsNoReconcileOfItsOwn(t *testing.T) {
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, "")).saw("ADDED", thing("Secret", "s", 2, ""))
	for rv := 3; rv < 5; rv++ {
		s.wait(2*time.Second).call("get", thing("Secret", "s", 2, ""), nil).call("update", thing("Widget", "w", rv, fmt.Sprintf(`{"status":{"n":%d}}`, rv)), status).
			call("get", thing("Secret", "s", 2, ""), nil)
	}
	session := s.session()
	all := session.Why(Ref{}, 0)
	if len(all) != 2 || session.Overview().Reconciles != 2 || all[0].Object != widget || all[0].Reads != 1 || all[1].Object != widget {
		t.Errorf("%s", raw(all))
	}
}

func TestConversionsAreNotChanges(t *testing.T) {
	other := thing("Widget", "w", 3, `{"spec":{"length":1}}`)
	other["apiVersion"] = "x.io/v2"
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, `{"spec":{"size":1}}`)).saw("MODIFIED", thing("Widget", "w", 2, `{"spec":{"size":2}}`)).saw("MODIFIED", other)
	items := s.session().Timeline(widget, 0)
	if len(items) != 3 || !slices.Equal(items[1].Changed, []string{"spec.size"}) || items[2].Changed != nil {
		t.Errorf("%v", items)
	}
}

func TestACommitInAnotherVersionOfTheAPIHidesNoChange(t *testing.T) {
	stored := func(rv int, spec string) trace.Entry {
		object := thing("Widget", "w", rv, spec)
		object["apiVersion"] = "x.io/v2"
		return trace.Entry{Commit: &trace.Commit{Revision: int64(rv), Op: trace.Updated, Group: "x.io", Kind: "Widget", Namespace: "a", Name: "w", Object: object}}
	}
	s := (&story{}).saw("ADDED", thing("Widget", "w", 1, `{"spec":{"size":1}}`))
	s.add(stored(2, `{"spec":{"length":2}}`)).saw("MODIFIED", thing("Widget", "w", 2, `{"spec":{"size":2}}`))
	items := s.session().Timeline(widget, 0)
	if last := items[len(items)-1]; !slices.Equal(last.Changed, []string{"spec.size"}) {
		t.Errorf("%v", items)
	}
}

func TestNoSecretLeavesASession(t *testing.T) {
	const value, printed = "open-sesame-1234", "hidden-in-a-line"
	log := trace.NewLog(time.Now())
	log.Scrub = func(text string) string { return strings.ReplaceAll(text, printed, "[secret value]") }
	secret := thing("Secret", "s", 2, `{"stringData":{"p":"`+value+`"}}`)
	log.Record(trace.Entry{Instance: "controller-1", Call: &trace.Call{Verb: "create", Target: targetOf(secret), Code: 201, ResourceVersion: "2",
		RawRequest: trace.NewBody(raw(secret), "application/json", ""), RawResponse: trace.NewBody(raw(secret), "application/json", "")}})
	log.Record(trace.Entry{Instance: "controller-1", Watch: &trace.Watch{Type: "MODIFIED", Target: resources["Secret"], RawObject: trace.NewBody(raw(thing("Secret", "s", 3, `{"stringData":{"p":"`+value+`2"}}`)), "application/json", "")}})
	log.Record(trace.Entry{Commit: &trace.Commit{Revision: 4, Op: "updated", Kind: "Secret", Namespace: "a", Name: "s", Object: thing("Secret", "s", 4, `{"data":{"p":"`+value+`"}}`)}})
	log.Record(trace.Entry{Instance: "controller-1", Line: &trace.Line{Text: strings.ReplaceAll(logged("error", "it is "+printed, "i", printed), "Widget", "Secret")}})
	s := New(trace.Header{}, log.Scrub)
	s.Add(log.Entries()...)
	ref := Ref{Kind: "Secret", Namespace: "a", Name: "s"}
	rows, _ := s.Objects("", 0, 0)
	d, _ := s.Diff(ref, 2, 3)
	var entries []trace.Entry
	for seq := range int64(5) {
		e, _ := s.Entry(seq)
		entries = append(entries, e)
	}
	out := string(raw([]any{rows, d, s.Timeline(ref, 0), s.Why(Ref{}, 0), s.Writes(ref), s.Content(ref, 0), s.Overview(), entries, s.Managers(ref)}))
	for _, secret := range []string{value, printed} {
		if strings.Contains(out, secret) {
			t.Errorf("%s is in %s", secret, out)
		}
	}
	if len(d.Changes) == 0 {
		t.Error("a change of the value is not visible")
	}
}
