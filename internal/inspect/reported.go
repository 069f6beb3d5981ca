package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Queue is the state of a work queue when a reconcile began, as an instrumented manager reports it.
type Queue struct {
	// Waited is the time for which the queue could have handed out the item, or 0 if it is not
	// known.
	Waited time.Duration `json:"waited,omitempty"`
	// Waiting is the number of other items in the queue. Failures counts the errors in a row before
	// this attempt.
	Waiting  int  `json:"waiting"`
	Failures int  `json:"failures,omitempty"`
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
	}
	if o := s.objects[r.Object]; o != nil {
		o.items = append(o.items, len(s.entries)-1)
	}
	r.logged, r.beganExact, r.reported = true, true, report
	r.Began, r.Controller = min(r.Began, e.At), report.Controller
	r.Queue = &Queue{Waited: report.Waited, Waiting: report.Waiting, Failures: report.Failures, Priority: report.Priority}
	s.known(r)
}

// known makes a reconcile available by its ID, and adds the calls that named it before.
func (s *Session) known(r *Reconcile) {
	s.byID[r.ID] = r
	early := s.early[r.ID]
	delete(s.early, r.ID)
	for _, assign := range early {
		assign()
	}
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
		if ref, known = s.kindOf(report); known {
			s.controllers[report.Controller] = ref
			s.primary[ref.Kind] = true
		}
	}
	if !known {
		ref.Kind = report.Controller
	}
	ref.Namespace, ref.Name = report.Namespace, report.Name
	return ref
}

// kindOf returns the kind that a controller reconciles, if the triggers show it: the kind with the
// name of the controller, or else the only kind with a handler that enqueues the object itself.
func (s *Session) kindOf(report *trace.Reconcile) (kind Ref, known bool) {
	var itself []Ref
	for _, t := range report.Triggers {
		o := s.byUID[t.UID]
		if t.UID == "" || o == nil || o.ref.Name != report.Name || o.ref.Namespace != report.Namespace {
			continue
		}
		kind = Ref{Group: o.ref.Group, Kind: o.ref.Kind}
		if strings.EqualFold(kind.Kind, report.Controller) {
			return kind, true
		}
		if strings.HasSuffix(t.Handler, "EnqueueRequestForObject") && !slices.Contains(itself, kind) {
			itself = append(itself, kind)
		}
	}
	if len(itself) == 1 {
		return itself[0], true
	}
	return Ref{}, false
}

// refOfTrigger returns the object of a trigger of a reconcile. An event that the manager made often
// has only the name of the object.
func (s *Session) refOfTrigger(r *Reconcile, t trace.Trigger) Ref {
	if o := s.byUID[t.UID]; o != nil && t.UID != "" {
		return o.ref
	}
	ref := Ref{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
	if ref.Kind == r.Object.Kind && ref.Namespace == r.Object.Namespace && ref.Name == r.Object.Name {
		return r.Object
	}
	return ref
}

// triggered returns the causes of a reported reconcile. why explains those that are not
// events.
func (s *Session) triggered(r *Reconcile) (causes []Cause, why string) {
	causes = []Cause{}
	for _, t := range r.reported.Triggers {
		switch t.Event {
		case "requeued":
			why = "reconcile " + t.Reconcile + " asked for another one"
			if t.After > 0 {
				why += " after " + t.After.String()
			}
		case "retried":
			why = "reconcile " + t.Reconcile + " ended with an error"
			if failed := s.byID[t.Reconcile]; failed != nil && failed.Error != "" {
				why += ": " + failed.Error
			}
		default:
			causes = append(causes, s.causeOf(r, t))
		}
	}
	if len(causes) == 0 && why == "" {
		why = "no reported event explains it: the manager itself may have added the object to the queue, or an event came just when the previous reconcile began"
	}
	return causes, why
}

func (s *Session) causeOf(r *Reconcile, t trace.Trigger) Cause {
	ref := s.refOfTrigger(r, t)
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
		if c.ResourceVersion != 0 && w.After == c.ResourceVersion && !w.NoOp {
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
	text := noun.Count(q.Waiting, "other") + " waiting"
	if q.Waited > 0 {
		text = "waited " + q.Waited.Round(100*time.Microsecond).String() + ", " + text
	}
	if q.Failures > 0 {
		text += ", after " + noun.Count(q.Failures, "error")
	}
	if q.Priority != nil && *q.Priority != 0 {
		text += fmt.Sprintf(", priority %d", *q.Priority)
	}
	return text
}
