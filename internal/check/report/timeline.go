package report

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// mostRows limits the rows in the timeline of one finding; a hot loop has thousands.
const mostRows = 300

// sort is the category of a row, and its CSS class on the page.
type sort string

const (
	ofStep    sort = "step"
	ofProcess sort = "process"
	ofWrite   sort = "write"
	ofRead    sort = "read"
	ofWatch   sort = "watch"
	ofFault   sort = "fault"
	ofHealing sort = "healing"
)

// row is a line of a timeline.
type row struct {
	Sort sort
	At   time.Duration
	Who  string
	What string
	// Note describes anything unusual about the row. Bad reports whether something went
	// wrong.
	Note string
	Bad  bool
	// Body is the truncated body of a write.
	Body string

	// objects lists the objects of consecutive watch events of the same type, which share
	// one row.
	objects []string
}

// Offset returns the time since the start of the run.
func (r row) Offset() string { return fmt.Sprintf("%.3f s", r.At.Seconds()) }

// timeline is a trace for human readers. It has no rows for successful reads, only their number.
type timeline struct {
	Rows          []row
	Before, After int // the numbers of rows that are left out
	Reads         int
	Took          time.Duration
}

func timelineOf(entries []trace.Entry) timeline {
	var t timeline
	for _, e := range entries {
		t.Took = max(t.Took, e.At)
		switch {
		case e.Call != nil:
			t.call(e)
		case e.Watch != nil:
			t.watch(e)
		case e.Process != nil:
			t.add(processRow(e))
		case e.Step != nil:
			t.add(row{Sort: ofStep, At: e.At, What: "step " + inline(e.Step.Name) + " " + inline(e.Step.What)})
		case e.Fault != nil:
			t.add(faultRow(e))
		}
	}
	for i := range t.Rows {
		t.Rows[i].nameObjects()
	}
	t.shorten()
	return t
}

func (t *timeline) add(r row) { t.Rows = append(t.Rows, r) }

// shorten keeps only rows around the fault. A third of these rows come before the fault, if enough
// rows precede and follow it.
func (t *timeline) shorten() {
	if len(t.Rows) <= mostRows {
		return
	}
	applied := slices.IndexFunc(t.Rows, func(r row) bool { return r.Sort == ofFault && strings.HasPrefix(r.What, "applied") })
	first := min(max(applied-mostRows/3, 0), len(t.Rows)-mostRows)
	t.Before, t.After = first, len(t.Rows)-first-mostRows
	t.Rows = t.Rows[first : first+mostRows]
}

func (t *timeline) call(e trace.Entry) {
	c := e.Call
	r := row{Sort: ofRead, At: e.At, Who: inline(e.Instance)}
	if request.IsWrite(c) {
		r.Sort, r.Body = ofWrite, bodyOf(c)
	}
	r.What = fmt.Sprintf("%s %s → %s", request.Method(inline(c.Verb)), callTarget(c), answer(c))
	var notes []string
	if c.Injected {
		notes = append(notes, "answered by the fault, not by the server")
	}
	if c.Lost {
		notes = append(notes, "the response did not reach the controller")
	}
	// The message about a rejected Secret may quote its content.
	if c.Message != "" && !isSecret(c.Target) {
		notes = append(notes, inline(c.Message))
	}
	r.Note = strings.Join(notes, "; ")
	// A 404 is normal, because most controllers look for objects that do not exist yet.
	r.Bad = c.Injected || c.Lost || c.Code == 0 || c.Code >= 400 && c.Code != http.StatusNotFound
	if r.Sort == ofRead && !r.Bad {
		t.Reads++
		return
	}
	t.add(r)
}

func answer(c *trace.Call) string {
	switch {
	case c.Code == 0:
		return "no answer"
	case c.Reason != "":
		return fmt.Sprintf("%d %s", c.Code, inline(c.Reason))
	}
	return fmt.Sprint(c.Code)
}

func callTarget(c *trace.Call) string {
	switch {
	case c.Endpoint != "":
		return inline(c.Endpoint + " " + c.Path)
	case c.Target.Resource == "":
		return inline(c.Path)
	}
	return strings.TrimSpace(resourceOf(c.Target) + " " + objectOf(c.Target))
}

// resourceOf returns the resource of a target, such as "deployments.apps/status".
func resourceOf(t trace.Target) string {
	name := t.Resource
	if t.Group != "" {
		name += "." + t.Group
	}
	if t.Subresource != "" {
		name += "/" + t.Subresource
	}
	return inline(name)
}

func objectOf(t trace.Target) string {
	return inline(strings.Trim(t.Namespace+"/"+t.Name, "/"))
}

const mostBody = 4000

// bodyOf returns the body of a write. It hides the bodies of Secrets, tokens and requests
// to external servers, even if they have already been redacted.
func bodyOf(c *trace.Call) string {
	if isSecret(c.Target) || c.Endpoint != "" {
		return ""
	}
	object, err := c.RequestObject()
	if err != nil || object == nil {
		return ""
	}
	data, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		return ""
	}
	body := string(data)
	if len(body) > mostBody {
		body = strings.ToValidUTF8(body[:mostBody], "") + "\n..."
	}
	return plain(body)
}

func isSecret(t trace.Target) bool {
	return t.Group == "" && t.Resource == "secrets" || t.Subresource == "token"
}

// watch adds a row for an event, or adds the event to the previous row if both have the
// same type.
func (t *timeline) watch(e trace.Entry) {
	w := e.Watch
	if w.Type == "BOOKMARK" && w.Held == 0 && !w.Injected {
		return
	}
	r := row{Sort: ofWatch, At: e.At, Who: inline(e.Instance), What: "saw " + inline(w.Type) + " " + resourceOf(w.Target)}
	if w.Type == "CLOSED" || w.Type == "ERROR" {
		r.What = "watch " + strings.ToLower(w.Type) + ": " + resourceOf(w.Target)
	}
	if w.Injected {
		r.Note, r.Bad = "sent by the fault, not by the server", true
	}
	if w.Held > 0 {
		r.Note, r.Bad = "held back for "+span(w.Held), true
	}
	object := watched(w)
	if n := len(t.Rows); n > 0 && object != "" {
		if last := &t.Rows[n-1]; last.Sort == ofWatch && last.What == r.What && last.Who == r.Who && last.Note == r.Note && len(last.objects) > 0 {
			last.objects = append(last.objects, object)
			return
		}
	}
	if object != "" {
		r.objects = []string{object}
	}
	t.add(r)
}

// watched returns the name of the object of an event. It does not rely on the target of
// the watch, which may be all objects.
func watched(w *trace.Watch) string {
	if object, err := w.EventObject(); err == nil && object != nil {
		named := unstructured.Unstructured{Object: object}
		if named.GetName() != "" {
			return inline(strings.Trim(named.GetNamespace()+"/"+named.GetName(), "/"))
		}
	}
	return objectOf(w.Target)
}

// nameObjects adds the names of the objects to a row of events. If all events are about one
// object, it also adds the number of events.
func (r *row) nameObjects() {
	const most = 4
	if len(r.objects) == 0 {
		return
	}
	names := slices.Compact(slices.Sorted(slices.Values(r.objects)))
	shown := strings.Join(names[:min(len(names), most)], ", ")
	switch {
	case len(names) > most:
		shown += fmt.Sprintf(" and %d more", len(names)-most)
	case len(names) == 1 && len(r.objects) > 1:
		shown += fmt.Sprintf(" (%d times)", len(r.objects))
	}
	r.What += " " + shown
}

func processRow(e trace.Entry) row {
	p := e.Process
	r := row{Sort: ofProcess, At: e.At, Who: inline(e.Instance), What: inline(p.What)}
	switch p.What {
	case "exited", "ended":
		r.Bad = p.What == "exited" || p.ExitCode != 0
		r.What = fmt.Sprintf("exited with code %d", p.ExitCode)
		r.Body = strings.Trim(plain(p.Output), "\n")
	case "terminated":
		r.Bad = true
		r.What = "asked to exit (SIGTERM)"
	case "killed":
		r.Bad = true
	}
	return r
}

func faultRow(e trace.Entry) row {
	f := e.Fault
	r := row{Sort: ofFault, At: e.At, Who: inline(e.Instance), What: inline(f.What), Note: inline(f.Text)}
	switch f.What {
	case "wait", "timeout", "relist", "restart", "poke":
		r.Sort = ofHealing
		r.What = "healing: " + r.What
	case "applied":
		r.Bad = true
		r.What = "applied the fault"
	}
	return r
}
