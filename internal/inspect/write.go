package inspect

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Write is a request with which a controller wanted to change an object.
type Write struct {
	Seq int64 `json:"seq"`
	// At is the time at which the answer was complete, and Took the time until then, both in
	// nanoseconds. Times count from the start of the session.
	At       time.Duration `json:"at"`
	Took     time.Duration `json:"took"`
	Instance string        `json:"instance"`
	Verb     string        `json:"verb"`
	// Subresource is empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	Object      Ref    `json:"object"`
	Manager     string `json:"manager,omitempty"`
	Code        int    `json:"code"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
	// Before and After are the resource versions around the write, as far as they are known.
	Before int64 `json:"before,omitempty"`
	After  int64 `json:"after,omitempty"`
	// Changed holds the paths of the fields that the write changed.
	Changed []string `json:"changed,omitempty"`
	// NoOp reports whether the server accepted the write, but nothing changed.
	NoOp bool `json:"noOp,omitempty"`
	// Bookkeeping reports whether the write belongs to the machinery around the controller,
	// such as the renewal of a Lease.
	Bookkeeping bool `json:"bookkeeping,omitempty"`
	DryRun      bool `json:"dryRun,omitempty"`
	Failed      bool `json:"failed,omitempty"`
	// Reconcile is the ID of the reconcile to which the write belongs.
	Reconcile string `json:"reconcile,omitempty"`
}

// addWrite records the answer to a request about one object. It returns nil for a read.
func (s *Session) addWrite(i int, e *trace.Entry, o *object, body map[string]any) *Write {
	c := e.Call
	if !request.IsWrite(c) {
		s.addAnswer(i, e, o, body)
		return nil
	}
	w := &Write{
		Seq: e.Seq, At: e.At, Took: c.Took, Instance: e.Instance, Verb: c.Verb, Subresource: c.Target.Subresource,
		Object: o.ref, Code: c.Code, Reason: c.Reason, Message: s.scrub(c.Message), Manager: manager(c),
		Bookkeeping: request.IsBookkeeping(c), DryRun: request.IsDryRun(c), Failed: failed(c),
	}
	o.written = append(o.written, w)
	if w.Failed || w.DryRun || w.Subresource != "" && w.Subresource != "status" {
		s.refusal(o, w)
		return w
	}
	began := e.At - c.Took
	w.After = parse(c.ResourceVersion)
	if known, found := o.at(w.After); found && known.at < began && w.Verb != "delete" {
		if w.Before = w.After; finalized(body) {
			w.After, w.Changed = 0, []string{"metadata.finalizers"}
		} else {
			w.NoOp = true
		}
	}
	s.addAnswer(i, e, o, body)
	o.writes++
	s.changes(o, w)
	if !w.Bookkeeping {
		s.count(o, w)
	}
	return w
}

// finalized reports whether an update deleted its object, because it removed the last
// finalizer. The server answers such an update with the version before it.
func finalized(object map[string]any) bool {
	m, _ := object["metadata"].(map[string]any)
	list, _ := m["finalizers"].([]any)
	return metadata(object, "deletionTimestamp") != "" && len(list) == 0
}

// addAnswer records the version in the answer to a request.
func (s *Session) addAnswer(i int, e *trace.Entry, o *object, body map[string]any) {
	c := e.Call
	kind, _ := body["kind"].(string)
	if c.Code/100 != 2 || kind != o.ref.Kind || c.Injected || request.IsDryRun(c) {
		return
	}
	if c.Verb == "delete" && metadata(body, "deletionTimestamp") == "" {
		return // the content before the deletion
	}
	if rv := parse(metadata(body, "resourceVersion")); rv > 0 {
		s.addVersion(o, version{rv: rv, at: e.At, entry: i, item: whole}, body)
	}
}

// changes compares the versions before and after a write.
func (s *Session) changes(o *object, w *Write) {
	if w.NoOp || w.Verb == "delete" || w.Verb == "create" {
		return
	}
	if changes, before, known := s.changesAt(o, w.After); known {
		w.Before, w.Changed = before.rv, paths(changes)
	}
}

// manager returns the field manager of a write: the parameter of the request, or the first
// part of the user agent, as the server forms it.
func manager(c *trace.Call) string {
	_, query, _ := strings.Cut(c.Path, "?")
	if values, _ := url.ParseQuery(query); values.Get("fieldManager") != "" {
		return values.Get("fieldManager")
	}
	name, _, _ := strings.Cut(c.UserAgent, "/")
	return name
}

// Writes returns the writes of controllers to an object, or to all objects if ref is the zero
// value, in their order. Bookkeeping is left out unless an object is named.
func (s *Session) Writes(ref Ref) []*Write {
	if ref != (Ref{}) {
		if o := s.objects[ref]; o != nil {
			return o.written
		}
		return nil
	}
	var all []*Write
	for _, w := range s.writes {
		if !w.Bookkeeping {
			all = append(all, w)
		}
	}
	return all
}

// lacks reports whether a refusal means a missing permission. Quotas, webhooks and namespaces
// that are being deleted also answer 403.
func lacks(code int, message string) bool {
	return code == http.StatusForbidden && (message == "" || strings.Contains(message, " cannot "))
}

// refusal counts the writes that the server refused.
func (s *Session) refusal(o *object, w *Write) {
	switch {
	case w.Code == http.StatusConflict && w.Verb != "create" && !w.Bookkeeping:
		s.notice(noticeKey{"conflict", o.ref, w.Instance}, w, 3, func(n *Notice) {
			n.Level = Note
			n.Text = fmt.Sprintf("%s was outdated %s when %s wanted to change it (409 Conflict)", subject(w), times(n.Count), w.Instance)
		})
	case lacks(w.Code, w.Message):
		s.notice(noticeKey{"refused", Ref{Group: o.ref.Group, Kind: o.ref.Kind}, w.Verb + "/" + w.Subresource}, w, 1, func(n *Notice) {
			n.Level = Warning
			n.Text = "the server refused " + times(n.Count) + " to " + w.Verb + ": " + w.Message
		})
	}
}
