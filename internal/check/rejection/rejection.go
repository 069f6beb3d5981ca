// Package rejection finds writes that the API server keeps rejecting as invalid, and reports whether
// the controller mentions the problem.
//
//	evidence.Run, step ──In──▶ rejections ──Told──▶ where a user can read about them
package rejection

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Rejection is a write that was still rejected when a step ended.
type Rejection struct {
	// Last is the last of the rejected requests, and Times is their number.
	Last  *trace.Call
	Times int
	// Kind is "Kind.group" of the object, or the resource if the request does not contain the
	// kind.
	Kind, Namespace, Name string
}

// fewest is the number of rejected requests after which it is clear that the controller tries
// again without a change.
const fewest = 2

// In returns the writes of a step that the API server rejected as invalid (422) several times, and
// that did not succeed afterwards. They are ordered by their objects.
func In(run *evidence.Run, step *evidence.Step) (found []Rejection) {
	end := step.RestedAt
	if end == 0 {
		end = run.Took
	}
	last := map[trace.Target]*Rejection{}
	for i := range run.Entries {
		e := &run.Entries[i]
		if e.Call == nil || e.Instance == "" || e.At < step.BeganAt || e.At > end || !request.IsWork(e.Call) || e.Call.Injected {
			continue
		}
		r := describe(e.Call)
		at := trace.Target{Group: e.Call.Target.Group, Resource: e.Call.Target.Resource, Namespace: r.Namespace, Name: r.Name}
		switch {
		case e.Call.Code == http.StatusUnprocessableEntity:
			if last[at] == nil {
				last[at] = r
			}
			last[at].Last = e.Call
			last[at].Times++
		case e.Call.Code < http.StatusBadRequest:
			delete(last, at)
		}
	}
	for _, r := range last {
		if r.Times >= fewest && r.Name != "" {
			found = append(found, *r)
		}
	}
	slices.SortFunc(found, func(a, b Rejection) int { return strings.Compare(a.Object(), b.Object()) })
	return found
}

// describe names the object of a request. The path of a creation does not contain its name.
func describe(c *trace.Call) *Rejection {
	r := &Rejection{Last: c, Kind: c.Target.Resource, Namespace: c.Target.Namespace, Name: c.Target.Name}
	if c.Target.Group != "" {
		r.Kind += "." + c.Target.Group
	}
	body, err := c.RequestObject()
	if err != nil || body == nil {
		return r
	}
	if metadata, _ := body["metadata"].(map[string]any); r.Name == "" && metadata != nil {
		r.Name, _ = metadata["name"].(string)
	}
	if kind, _ := body["kind"].(string); kind != "" {
		r.Kind = strings.TrimSuffix(kind+"."+c.Target.Group, ".")
	}
	return r
}

// Object returns the kind and the name of the object, such as "Service default/web".
func (r *Rejection) Object() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// field matches the field in the message of the API server: `Service "1" is invalid: metadata.name:
// Invalid value: ...`. If several fields are invalid, they are in a list.
var field = regexp.MustCompile(`is invalid: \[?([A-Za-z][\w.\[\]/-]*): `)

// Field returns the path of the first invalid field, or "".
func (r *Rejection) Field() string {
	if found := field.FindStringSubmatch(r.Last.Message); found != nil {
		return found[1]
	}
	return ""
}

// Told lists the places where a user can read about a problem.
type Told struct{ InStatus, InEvents bool }

// complaint matches texts in a status that report a problem.
var complaint = regexp.MustCompile(`(?i)invalid|fail|error|refus|reject|denied|forbidden|not allowed|unsupported|degraded|cannot|could not|unable|must |not ?found|missing|does not exist|exceed|mismatch`)

// Tell reports where a problem that began in a step can be read: in the status of an object of one of
// the given kinds, or in a warning Event.
func Tell(run *evidence.Run, step *evidence.Step, kinds []string) (told Told) {
	for _, c := range run.History.Between(step.Began, endOf(run, step)) {
		switch {
		case c.After == nil:
		case c.Ref.Kind == "Event":
			told.InEvents = told.InEvents || c.After["type"] == "Warning"
		case slices.Contains(kinds, c.Ref.String()):
			told.InStatus = told.InStatus || Complains(c.After)
		}
	}
	return told
}

func endOf(run *evidence.Run, step *evidence.Step) int64 {
	if step.Rested != 0 {
		return step.Rested
	}
	return run.History.Last()
}

// Complains reports whether the status of an object mentions a problem.
func Complains(object state.Object) bool {
	return contains(object["status"], complaint)
}

func contains(value any, pattern *regexp.Regexp) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key != "type" && !isTime(key) && contains(inner, pattern) { // a condition may be of the type Failed, and false
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return contains(inner, pattern) })
	case string:
		return pattern.MatchString(v)
	}
	return false
}

func isTime(key string) bool {
	return strings.HasSuffix(key, "Time") || strings.HasSuffix(key, "Timestamp")
}
