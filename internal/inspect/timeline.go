package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Item is something that happened to an object.
type Item struct {
	Seq      int64         `json:"seq"`
	At       time.Duration `json:"at"`
	Instance string        `json:"instance,omitempty"`
	// Kind is seen (an event that reached the controller), read, write, review, line, commit
	// (a write by any client), event (a Kubernetes Event), or reconcile (its start, reported by an
	// instrumented manager).
	Kind string `json:"kind"`
	// Text describes the item in one line.
	Text string `json:"text"`
	// Bad reports whether the item is a failure.
	Bad             bool  `json:"bad,omitempty"`
	ResourceVersion int64 `json:"resourceVersion,omitempty"`
	// Changed holds the paths of the fields that differ from the previous version.
	Changed   []string `json:"changed,omitempty"`
	Manager   string   `json:"manager,omitempty"`
	Reconcile string   `json:"reconcile,omitempty"`
}

// Timeline returns what happened to an object, in order: at most the given number of the most
// recent items; 0 means all. A commit that a controller made is shown as its write.
func (s *Session) Timeline(ref Ref, most int) []Item { return s.timelineAfter(ref, 0, most) }

// timelineAfter leaves out everything up to an entry's number. To follow a session, a client
// asks often, and only for what is new.
func (s *Session) timelineAfter(ref Ref, after int64, most int) []Item {
	items := []Item{}
	o := s.objects[ref]
	if o == nil {
		return items
	}
	for i := len(o.items) - 1; i >= 0 && s.entries[o.items[i]].Seq > after && (most == 0 || len(items) < most); i-- {
		if item, show := s.item(o, o.items[i]); show {
			items = append(items, item)
		}
	}
	slices.Reverse(items)
	return items
}

func (s *Session) item(o *object, i int) (Item, bool) {
	e := &s.entries[i]
	item := Item{Seq: e.Seq, At: e.At, Instance: e.Instance}
	switch {
	case e.Call != nil:
		return s.callItem(o, e, item), true
	case e.Watch != nil:
		return s.watchItem(o, e, item)
	case e.Commit != nil:
		return s.commitItem(o, e, item)
	case e.Review != nil:
		return s.reviewItem(e, item), true
	case e.Reconcile != nil:
		item.Kind, item.Text, item.Reconcile = "reconcile", s.beginning(e), e.Reconcile.ID
		return item, true
	case e.Line != nil:
		line := ParseLine(e.Line.Text)
		item.Kind, item.Bad, item.Reconcile = "line", line.Level == "error", line.ReconcileID
		item.Text = s.scrub(strings.TrimSuffix(line.Message+": "+line.Error, ": "))
		return item, true
	}
	return item, false
}

func (s *Session) callItem(o *object, e *trace.Entry, item Item) Item {
	c := e.Call
	if body, err := c.RequestObject(); err == nil && involved(body) != nil && o.ref.Kind != "Event" {
		return eventItem(item, body)
	}
	item.Kind, item.Bad = "read", failed(c)
	item.Text = fmt.Sprintf("%s: %s", verb(c), s.result(c))
	if !request.IsWrite(c) {
		return item
	}
	item.Kind = "write"
	if w := o.write(e.Seq); w != nil {
		item.ResourceVersion, item.Changed, item.Reconcile, item.Manager = w.After, w.Changed, w.Reconcile, w.Manager
		if w.NoOp {
			item.Text += ", changed nothing"
		}
	}
	return item
}

func verb(c *trace.Call) string {
	text := c.Verb
	if c.ContentType == "application/apply-patch+yaml" || c.ContentType == "application/apply-patch+cbor" {
		text = "apply"
	}
	if c.Target.Subresource != "" {
		text += " " + c.Target.Subresource
	}
	return text
}

func (s *Session) result(c *trace.Call) string {
	var text string
	switch {
	case c.Code == 0:
		text = "no answer"
	case c.Reason != "":
		text = fmt.Sprintf("%d %s", c.Code, c.Reason)
	default:
		text = fmt.Sprint(c.Code)
	}
	if c.Message != "" {
		text += ": " + s.scrub(c.Message)
	}
	if c.Injected {
		text += " (by the fault, not by the server)"
	}
	if c.Lost {
		text += " (the answer did not reach the controller)"
	}
	return text
}

// write returns the write with a number.
func (o *object) write(seq int64) *Write {
	i, found := slices.BinarySearchFunc(o.written, seq, func(w *Write, seq int64) int { return cmp.Compare(w.Seq, seq) })
	if !found {
		return nil
	}
	return o.written[i]
}

func (s *Session) watchItem(o *object, e *trace.Entry, item Item) (Item, bool) {
	object, err := e.Watch.EventObject()
	if err != nil {
		return item, false
	}
	if involved(object) != nil && o.ref.Kind != "Event" {
		return item, false // the commit or the call is shown
	}
	item.Kind, item.Text = "seen", "saw "+e.Watch.Type
	if e.Watch.Held > 0 {
		item.Text += fmt.Sprintf(", held back for %s", e.Watch.Held.Round(time.Millisecond))
	}
	s.versionItem(o, parse(metadata(object, "resourceVersion")), &item)
	return item, true
}

// versionItem sets the fields of an item that describe a version and its changes.
func (s *Session) versionItem(o *object, rv int64, item *Item) {
	item.ResourceVersion = rv
	item.Changed, item.Manager = s.changedAt(o, rv)
}

func (s *Session) commitItem(o *object, e *trace.Entry, item Item) (Item, bool) {
	c := e.Commit
	if involved(c.Object) != nil && o.ref.Kind != "Event" {
		return eventItem(item, c.Object), true
	}
	for _, w := range o.written {
		if w.After == c.Revision {
			return item, false
		}
	}
	item.Kind, item.Text = "commit", c.Op
	if c.Op == trace.Updated {
		s.versionItem(o, c.Revision, &item)
	}
	item.ResourceVersion = c.Revision
	return item, true
}

func (s *Session) reviewItem(e *trace.Entry, item Item) Item {
	a := s.admission(e)
	item.Kind, item.Bad = "review", a.Error != "" || a.Allowed != nil && !*a.Allowed
	item.Text = a.Text()
	return item
}

// Text describes a call of a webhook in one line.
func (a Admission) Text() string {
	text := a.Path + ": "
	if a.Replay != nil {
		text = "sent again to " + text
	}
	switch {
	case a.Error != "":
		text += "no answer: " + a.Error
	case a.Allowed == nil:
		text += fmt.Sprintf("an answer that is not a review, with status %d", a.Code)
	case a.Kind == "conversion" && *a.Allowed:
		text += fmt.Sprintf("converted %d objects to %s", len(a.Objects), a.To)
	case a.Kind == "conversion":
		text += "did not convert to " + a.To
	case *a.Allowed && len(a.Patch) > 0:
		text += "allowed and patched the " + strings.ToLower(a.Operation)
	case *a.Allowed:
		text += "allowed the " + strings.ToLower(a.Operation)
	default:
		text += "denied the " + strings.ToLower(a.Operation)
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	if a.Replay != nil {
		text += "; " + a.Replay.Text()
	}
	return text
}

func eventItem(item Item, event map[string]any) Item {
	text := func(keys ...string) string {
		for _, key := range keys {
			if t, _ := event[key].(string); t != "" {
				return t
			}
		}
		return ""
	}
	item.Kind, item.Bad = "event", text("type") == "Warning"
	item.Text = text("reason") + ": " + text("message", "note")
	return item
}
