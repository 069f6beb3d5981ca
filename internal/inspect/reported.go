package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Queue is the state of a work queue when a reconcile began, as an instrumented manager reports it.
type Queue struct {
	// Waited is the time for which the item was in the queue, without the delay that was asked for.
	Waited time.Duration `json:"waited"`
	// Waiting is the number of other items in the queue. Retries counts the failed attempts before
	// this one.
	Waiting  int  `json:"waiting"`
	Retries  int  `json:"retries,omitempty"`
	Priority *int `json:"priority,omitempty"`
}

// addReconcile adds the start or the end of a reconcile that the manager has reported. Nothing about
// such a reconcile is inferred.
func (s *Session) addReconcile(e *trace.Entry) {
	report := e.Reconcile
	if report.What == "ended" {
		if r := s.byID[report.ID]; r != nil {
			r.end(e.At, report, s.scrub)
		}
		return
	}
	r := s.byID[report.ID]
	if r == nil { // or else a log line was read first
		r = s.start(s.group(groupKey{e.Instance, s.reconciled(report)}), e.At, e.Seq)
		r.ID = report.ID
		s.byID[r.ID] = r
	}
	o := s.object(r.Object)
	o.items = append(o.items, len(s.entries)-1)
	r.logged, r.beganExact, r.reported = true, true, report
	r.Began, r.Controller = min(r.Began, e.At), report.Controller
	r.Queue = &Queue{Waited: waited(report, e.At), Waiting: report.Waiting, Retries: report.Retries, Priority: report.Priority}
	early := s.early[r.ID]
	delete(s.early, r.ID)
	for _, assign := range early {
		assign()
	}
}

// waited returns the time for which an item was in the queue.
func waited(report *trace.Reconcile, started time.Duration) time.Duration {
	if len(report.Triggers) == 0 {
		return 0
	}
	first := report.Triggers[0]
	return max(0, started-first.At-first.After)
}

func (r *Reconcile) end(at time.Duration, report *trace.Reconcile, scrub func(string) string) {
	r.Ended, r.endExact = max(r.Ended, at), true
	switch {
	case report.Error != "":
		r.Error = scrub(report.Error)
	case report.RequeueAfter > 0:
		r.Result = "done, requeueing after " + report.RequeueAfter.String()
	case report.Requeue:
		r.Result = "done, requeueing"
	default:
		r.Result = "successful"
	}
}

// reconciled returns the object of a reconcile. A queue holds only its name; the kind follows from
// a log line of the same controller, or from an event about the object itself.
func (s *Session) reconciled(report *trace.Reconcile) Ref {
	ref, known := s.controllers[report.Controller]
	if !known {
		for _, t := range report.Triggers {
			if of := s.refOfTrigger(t); of.Name == report.Name && of.Namespace == report.Namespace &&
				(strings.HasSuffix(t.Handler, "EnqueueRequestForObject") || strings.EqualFold(of.Kind, report.Controller)) {
				ref, known = Ref{Group: of.Group, Kind: of.Kind}, true
				s.controllers[report.Controller] = ref
				s.primary[ref.Kind] = true
			}
		}
	}
	if !known {
		ref.Kind = report.Controller
	}
	ref.Namespace, ref.Name = report.Namespace, report.Name
	return ref
}

// refOfTrigger returns the object of a trigger.
func (s *Session) refOfTrigger(t trace.Trigger) Ref {
	if o := s.byUID[t.UID]; o != nil && t.UID != "" {
		return o.ref
	}
	return Ref{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

// triggered returns the causes of a reported reconcile. why explains those that are not
// events.
func (s *Session) triggered(r *Reconcile) (causes []Cause, why string) {
	causes = []Cause{}
	for _, t := range r.reported.Triggers {
		switch t.Event {
		case "requeued":
			why = "the previous reconcile asked for another one"
			if t.After > 0 {
				why += " after " + t.After.String()
			}
		case "retried":
			why = "tried again after an error"
			if r.previous != nil && r.previous.Error != "" {
				why += ": " + r.previous.Error
			}
		default:
			causes = append(causes, s.causeOf(r, t))
		}
	}
	if len(causes) == 0 && why == "" {
		why = "something other than a handler of events added the object to the queue, such as a source of the project"
	}
	return causes, why
}

func (s *Session) causeOf(r *Reconcile, t trace.Trigger) Cause {
	ref := s.refOfTrigger(t)
	c := Cause{At: t.At, Object: ref, Relation: "mapped", Handler: t.Handler, ResourceVersion: parse(t.ResourceVersion)}
	types := map[string]string{"created": "ADDED", "updated": "MODIFIED", "deleted": "DELETED", "generic": "GENERIC"}
	c.Type = types[t.Event]
	o := s.objects[ref]
	switch {
	case ref == r.Object:
		c.Relation = "itself"
	case o != nil && s.root(o).ref == r.Object:
		c.Relation = "owned"
	}
	if o == nil {
		return c
	}
	if v, found := o.at(c.ResourceVersion); found && v.rv == c.ResourceVersion {
		c.Seq = s.entries[v.entry].Seq
	}
	for _, w := range o.written {
		if w.After == c.ResourceVersion && !w.NoOp {
			c.Own = w.Reconcile
		}
	}
	if c.Type == "MODIFIED" {
		c.Changed, c.Manager = s.changedAt(o, c.ResourceVersion)
	}
	return c
}

// beginning describes the start of a reconcile in one line.
func (s *Session) beginning(e *trace.Entry) string {
	causes, why := s.triggered(s.byID[e.Reconcile.ID])
	if len(causes) == 0 {
		return "reconcile: " + why
	}
	last := causes[len(causes)-1]
	text := "reconcile: " + last.Object.Short() + " was " + strings.ToLower(last.Type)
	if more := len(causes) + e.Reconcile.Dropped - 1; more > 0 {
		text += fmt.Sprintf(", and %s", noun.Count(more, "earlier event"))
	}
	return text
}

// String describes the state of the queue in one line.
func (q *Queue) String() string {
	text := fmt.Sprintf("waited %s, %s waiting", q.Waited.Round(100*time.Microsecond), noun.Count(q.Waiting, "other"))
	if q.Retries > 0 {
		text += fmt.Sprintf(", attempt %d", q.Retries+1)
	}
	if q.Priority != nil && *q.Priority != 0 {
		text += fmt.Sprintf(", priority %d", *q.Priority)
	}
	return text
}
