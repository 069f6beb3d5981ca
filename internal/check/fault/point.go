package fault

import (
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Canonical names an object so that it has the same name in every run:
// "NAMESPACE/NAME", or the name alone if it is cluster-scoped. The resource is
// "deployments.apps", never with a subresource; an object whose name the server will
// generate is named by its prefix with a star.
type Canonical = func(namespace, name, resource string) string

// PointOf returns the point of a request, without Occurrence. It uses only what is
// known when the request arrives, never the answer, so the result is the same for a
// Call from a trace and for one that is just being proxied. Change is called for
// writes only; canonical and change may be nil.
func PointOf(call *trace.Call, step string, canonical func(namespace, name, resource string) string, change func(*trace.Call) string) Point {
	p := Point{Step: step, Verb: call.Verb, Resource: ResourceOf(call), Object: objectOf(call, canonical)}
	if change != nil && request.IsWrite(call) {
		p.Change = change(call)
	}
	return p
}

// objectOf returns the canonical name of a request's object.
func objectOf(call *trace.Call, canonical Canonical) string {
	if call.Endpoint != "" {
		return endpointObject(call.Path)
	}
	name := nameOf(call)
	if canonical != nil && name != "" {
		return canonical(call.Target.Namespace, name, TypeOf(call.Target))
	}
	if call.Target.Namespace == "" {
		return name
	}
	return call.Target.Namespace + "/" + name
}

// nameOf returns the name that a request gives its object. A new object's name is in
// the body; if the server generates it, nameOf returns the prefix with a star.
func nameOf(call *trace.Call) string {
	t := call.Target
	if call.Verb != "create" || t.Subresource != "" {
		return t.Name
	}
	body, err := call.RequestObject()
	if err != nil {
		return t.Name // the body is not readable: only the URL is left
	}
	metadata, _ := body["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); name != "" {
		return name
	}
	if prefix, _ := metadata["generateName"].(string); prefix != "" {
		return prefix + "*"
	}
	return t.Name
}

var uuid = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// endpointObject returns a path with the names of the query's parameters, which
// identify the operation (S3's "?lifecycle"); their values are tokens and times. It
// omits signatures, and replaces every UUID by the same word.
func endpointObject(path string) string {
	path, query, _ := strings.Cut(path, "?")
	path = uuid.ReplaceAllLiteralString(path, "UUID")
	values, _ := url.ParseQuery(query)
	var names []string
	for name := range values {
		if !strings.HasPrefix(strings.ToLower(name), "x-amz-") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return path
	}
	slices.Sort(names)
	return path + "?" + strings.Join(names, "&")
}

// Placed is a request of a trace with its place in the scenario.
type Placed struct {
	Entry *trace.Entry
	// Step is the step that was begun last, empty before the first; Resting reports
	// whether that step had come to rest.
	Step    string
	Resting bool
}

// Calls iterates over the controller's requests in the order of the trace. It skips
// those of the checker itself.
func Calls(entries []trace.Entry) iter.Seq[Placed] {
	return func(yield func(Placed) bool) {
		at := Placed{}
		for i := range entries {
			e := &entries[i]
			if e.Step != nil {
				at.Step, at.Resting = e.Step.Name, e.Step.What == "settled"
			}
			if e.Call == nil || e.Instance == "" {
				continue
			}
			at.Entry = e
			if !yield(at) {
				return
			}
		}
	}
}
