package inspect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func (s *story) report(r trace.Reconcile) *story {
	return s.add(trace.Entry{Instance: "controller-1", Reconcile: &r})
}

// began reports a start of the controller of Widgets for Widget a/w.
func (s *story) began(id string, triggers ...trace.Trigger) *story {
	return s.report(trace.Reconcile{ID: id, What: "started", Controller: "widget", Namespace: "a", Name: "w", Triggers: triggers, Waiting: 1})
}

func (s *story) ended(id string) *story { return s.report(trace.Reconcile{ID: id, What: "ended"}) }

// trigger returns an event about an object.
func trigger(event, handler string, object map[string]any) trace.Trigger {
	return trace.Trigger{
		Event: event, Handler: handler, Kind: object["kind"].(string), Namespace: "a", Name: metadata(object, "name"),
		UID: metadata(object, "uid"), ResourceVersion: metadata(object, "resourceVersion"),
	}
}

// by makes a call name its reconcile.
func by(id string) func(*trace.Call) { return func(c *trace.Call) { c.Reconcile = id } }

const itself, owner = "EnqueueRequestForObject", "TypedFuncs"

func TestReportedReconcilesAreNotInferred(t *testing.T) {
	one, deploy := thing("Widget", "w", 1, ""), thing("Deployment", "w", 2, fmt.Sprintf(owned1, 1))
	settings := thing("ConfigMap", "settings", 3, "")
	ready := thing("Deployment", "w", 4, strings.TrimSuffix(fmt.Sprintf(owned1, 1), "}")+`,"status":{"readyReplicas":1}}`)
	s := (&story{}).saw("ADDED", one)
	s.began("one", trigger("created", itself, one)).call("create", deploy, by("one")).ended("one").
		saw("ADDED", deploy).saw("ADDED", settings).
		began("two", trigger("created", owner, deploy), trigger("created", "enqueueRequestsFromMapFunc", settings)).ended("two").
		saw("MODIFIED", ready). // the predicates of the controller hide this event
		wait(10 * time.Second).
		report(trace.Reconcile{ID: "three", What: "started", Controller: "widget", Namespace: "a", Name: "w", Triggers: []trace.Trigger{{Event: "requeued", After: 10 * time.Second, Reconcile: "two"}}}).
		report(trace.Reconcile{ID: "three", What: "ended", Error: "it broke"}).
		wait(time.Second)
	s.report(trace.Reconcile{ID: "four", What: "started", Controller: "widget", Namespace: "a", Name: "w", Triggers: []trace.Trigger{{Event: "retried", After: -1, Reconcile: "three"}}, Failures: 1, Waited: time.Millisecond}).
		ended("four").
		began("five").ended("five")
	session := s.session()
	compareWhy(t, []seen{
		{ID: "one", Causes: []string{"itself ADDED Widget"}, Writes: []string{"create Deployment"}},
		{ID: "two", Causes: []string{"owned ADDED Deployment by one", "mapped ADDED ConfigMap"}},
		{ID: "three", Why: "reconcile two asked for another one after 10s"},
		{ID: "four", Why: "reconcile three ended with an error: it broke"},
		{ID: "five", Why: "no reported event explains it: the manager itself may have added the object to the queue, or an event came just when the previous reconcile began"},
	}, why(session, widget))
	all := session.Why(widget, 0)
	if got := all[3].Queue.String(); got != "waited 1ms, 0 others waiting, after 1 error" {
		t.Errorf("the queue of the retry: %q", got)
	}
	if all[2].Result != "" || all[2].Error != "it broke" || all[3].Result != "successful" {
		t.Errorf("the results are %q, %q and %q", all[2].Result, all[2].Error, all[3].Result)
	}
	items := session.Timeline(widget, 0)
	if !slices.ContainsFunc(items, func(i Item) bool {
		return i.Kind == "reconcile" && i.Text == "reconcile: ConfigMap a/settings was added, and 1 earlier event"
	}) {
		t.Errorf("the timeline is %+v", items)
	}
}

func TestACallIsAssignedToTheReconcileThatItNamesEvenBeforeItsStartIsKnown(t *testing.T) {
	one, other := thing("Widget", "w", 1, ""), thing("Widget", "v", 2, "")
	s := (&story{}).saw("ADDED", one).saw("ADDED", other).
		call("create", thing("ConfigMap", "early", 3, ""), by("w-1")).
		began("w-1", trigger("created", itself, one)).
		report(trace.Reconcile{ID: "v-1", What: "started", Controller: "widget", Namespace: "a", Name: "v"}).
		// Without the names, both would belong to the Widget that was reconciled last.
		call("create", thing("ConfigMap", "c", 4, ""), by("w-1")).call("create", thing("ConfigMap", "d", 5, ""), by("v-1"))
	session := s.session()
	compareWhy(t, []seen{{ID: "w-1", Inferred: []string{"ended"}, Causes: []string{"itself ADDED Widget"}, Writes: []string{"create ConfigMap", "create ConfigMap"}}}, why(session, widget))
	v := Ref{"x.io", "Widget", "a", "v"}
	if all := session.Why(v, 0); len(all) != 1 || len(all[0].Writes) != 1 || all[0].Writes[0].Object.Name != "d" {
		t.Errorf("the reconciles of v are %+v", all)
	}
}

func TestALogLineAndAReportOfOneReconcileAreOne(t *testing.T) {
	one := thing("Widget", "w", 1, "")
	s := (&story{}).saw("ADDED", one).line(logged("debug", "Reconciling", "id-1", "")).
		// The handler does not tell the kind, but the line does.
		began("id-1", trigger("created", "TypedFuncs", one)).
		call("update", thing("Widget", "w", 2, `{"status":{"n":1}}`), by("id-1")).
		ended("id-1").line(logged("debug", "Reconcile done, requeueing after 1s", "id-1", ""))
	compareWhy(t, []seen{{ID: "id-1", Causes: []string{"itself ADDED Widget"}, Writes: []string{"update Widget"}}}, why(s.session(), widget))
}

func TestACallThatNamesNoReconcileIsInferred(t *testing.T) {
	one := thing("Widget", "w", 1, "")
	s := (&story{}).saw("ADDED", one).began("one", trigger("created", itself, one)).
		call("update", thing("Widget", "w", 2, `{"status":{"n":1}}`), status). // by a client of the project's own
		ended("one")
	compareWhy(t, []seen{{ID: "one", Inferred: []string{"calls"}, Causes: []string{"itself ADDED Widget"}, Writes: []string{"update Widget"}}}, why(s.session(), widget))
}

func TestTheKindOfAReconcileIsNotGuessedFromAnotherKindWithTheSameName(t *testing.T) {
	one, other := thing("Widget", "w", 1, ""), thing("ConfigMap", "w", 2, "")
	// Both have a handler that enqueues the object's own name.
	s := (&story{}).saw("ADDED", one).saw("ADDED", other).
		report(trace.Reconcile{ID: "1", What: "started", Controller: "sync", Namespace: "a", Name: "w", Triggers: []trace.Trigger{trigger("created", itself, other), trigger("created", itself, one)}}).
		ended("1")
	session := s.session()
	if all := session.Why(Ref{}, 0); len(all) != 1 || all[0].Object.Kind != "sync" {
		t.Errorf("the reconciles are %+v", all)
	}
	if len(session.objects) != 2 {
		t.Errorf("there are %d objects", len(session.objects))
	}
}

func TestAnEventWithoutAUIDIsAboutTheObjectItself(t *testing.T) {
	one := thing("Widget", "w", 1, "")
	s := (&story{}).saw("ADDED", one).began("one", trigger("created", itself, one)).ended("one").
		began("two", trace.Trigger{Event: "generic", Handler: itself, Kind: "Widget", Namespace: "a", Name: "w"}).ended("two")
	if got := why(s.session(), widget); len(got) != 2 || !slices.Equal(got[1].Causes, []string{"itself GENERIC Widget"}) {
		t.Errorf("the reconciles are %+v", got)
	}
}
