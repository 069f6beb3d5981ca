package inspect

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Admission is a call of a webhook: an admission, or the conversion of objects.
type Admission struct {
	Seq  int64         `json:"seq"`
	At   time.Duration `json:"at"`
	Took time.Duration `json:"took"`
	// Held is the part of Took in which no process was ready to answer.
	Held time.Duration `json:"held,omitempty"`
	// Kind is admission or conversion.
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Objects holds the object of an admission, or the objects of a conversion.
	Objects   []Ref  `json:"objects"`
	Operation string `json:"operation,omitempty"`
	User      string `json:"user,omitempty"`
	DryRun    bool   `json:"dryRun,omitempty"`
	// To is the version to which objects are converted.
	To string `json:"to,omitempty"`
	// Allowed is nil if there was no answer.
	Allowed  *bool           `json:"allowed,omitempty"`
	Message  string          `json:"message,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"`
	Code     int             `json:"code"`
	Error    string          `json:"error,omitempty"`
	// Replay is set if a person sent a recorded review again.
	Replay *Replay `json:"replay,omitempty"`
}

// Admissions returns the calls of webhooks about an object in order, or all calls if ref is the
// zero value.
func (s *Session) Admissions(ref Ref) []Admission {
	found := []Admission{}
	indexes := s.reviews
	if ref != (Ref{}) {
		indexes = nil
		if o := s.objects[ref]; o != nil {
			indexes = o.items
		}
	}
	for _, i := range indexes {
		if e := &s.entries[i]; e.Review != nil {
			found = append(found, s.admission(e))
		}
	}
	return found
}

func (s *Session) admission(e *trace.Entry) Admission {
	r := e.Review
	a := Admission{Seq: e.Seq, At: e.At, Took: r.Took, Held: r.Held, Kind: "admission", Path: r.Path, Code: r.Code, Error: s.scrub(r.Error), Objects: s.refsOfReview(r)}
	review, _ := r.RequestObject()
	if review["kind"] == "ConversionReview" {
		a.Kind = "conversion"
	}
	request, _ := review["request"].(map[string]any)
	a.Operation, _ = request["operation"].(string)
	a.DryRun, _ = request["dryRun"].(bool)
	a.To, _ = request["desiredAPIVersion"].(string)
	user, _ := request["userInfo"].(map[string]any)
	a.User, _ = user["username"].(string)
	answer, _ := r.ResponseObject()
	if response, isMap := answer["response"].(map[string]any); isMap {
		s.answered(&a, response)
	}
	if r.Replays != 0 {
		a.Replay = s.compared(r)
	}
	return a
}

func (s *Session) answered(a *Admission, response map[string]any) {
	status, _ := response["status"].(map[string]any)
	if a.Kind == "conversion" {
		status, _ = response["result"].(map[string]any)
		allowed := status["status"] == "Success"
		a.Allowed = &allowed
	} else if allowed, isBool := response["allowed"].(bool); isBool {
		a.Allowed = &allowed
	}
	message, _ := status["message"].(string)
	a.Message = s.scrub(message)
	warnings, _ := response["warnings"].([]any)
	for _, w := range warnings {
		if text, isText := w.(string); isText {
			a.Warnings = append(a.Warnings, s.scrub(text))
		}
	}
	a.Patch = encode(response["patch"])
}

// refsOfReview returns the objects that a review is about.
func (s *Session) refsOfReview(r *trace.Review) []Ref {
	review, err := r.RequestObject()
	if err != nil {
		return []Ref{}
	}
	request, _ := review["request"].(map[string]any)
	if objects, isList := request["objects"].([]any); isList {
		refs := []Ref{}
		for _, item := range objects {
			if object, isMap := item.(map[string]any); isMap {
				version, _ := object["apiVersion"].(string)
				refs = append(refs, refOf(groupOf(version), object))
			}
		}
		return refs
	}
	kind, _ := request["kind"].(map[string]any)
	text := func(m map[string]any, key string) string { t, _ := m[key].(string); return t }
	ref := Ref{text(kind, "group"), text(kind, "kind"), text(request, "namespace"), text(request, "name")}
	if resource, isMap := request["resource"].(map[string]any); isMap {
		// The kind of a subresource differs from that of the object.
		if known := s.kinds.kindOf[schema.GroupResource{Group: text(resource, "group"), Resource: text(resource, "resource")}]; known != "" {
			ref.Group, ref.Kind = text(resource, "group"), known
		}
	}
	if object, isMap := request["object"].(map[string]any); isMap && ref.Name == "" {
		ref.Name = metadata(object, "name") // it is empty if the server will generate it
	}
	if ref.Kind == "" || ref.Name == "" {
		return []Ref{}
	}
	return []Ref{ref}
}
