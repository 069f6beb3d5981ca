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

// Canonical gives an object a name that is the same in every run: "NAMESPACE/NAME", or
// only the name if the object is cluster-scoped. The resource has the form
// "deployments.apps", never with a subresource. If the server will generate the name of
// an object, the name is the prefix followed by a star.
type Canonical = func(namespace, name, resource string) string

// PointOf returns the point of a request, without Occurrence. It uses only data that is
// known when the request arrives, never the answer, so the result is the same for a Call
// from a trace and for one that is just being proxied. It calls change only for writes.
// canonical and change may be nil.
func PointOf(call *trace.Call, step string, canonical func(namespace, name, resource string) string, change func(*trace.Call) string) Point {
	p := Point{Step: step, Verb: call.Verb, Resource: ResourceOf(call), Object: objectOf(call, canonical)}
	if change != nil && request.IsWrite(call) {
		p.Change = change(call)
	}
	return p
}

// objectOf returns the canonical name of the object of a request.
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

// NameOf returns the name that the errors of an API server give to the object of a request. If the
// server would generate the name, it is the prefix.
func NameOf(call *trace.Call) string { return strings.TrimSuffix(nameOf(call), "*") }

// nameOf returns the name of the object of a request. The name of a new object is in the
// body; if the server generates the name, nameOf returns the prefix followed by a star.
func nameOf(call *trace.Call) string {
	t := call.Target
	if call.Verb != "create" || t.Subresource != "" {
		return t.Name
	}
	body, err := call.RequestObject()
	if err != nil {
		return t.Name // the body cannot be read, so only the URL remains
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

// endpointObject returns a path with the names of the query parameters, which identify the
// operation, such as S3's "?lifecycle". It omits the values of the parameters, such as tokens and
// times, and drops the parameters of signatures completely. It replaces every UUID with the same
// word.
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
	// Step is the last step that had begun, or empty before the first step. Resting reports
	// whether Step had come to rest.
	Step    string
	Resting bool
}

// Calls iterates over the controller's requests in the order of the trace. It skips the
// requests of the checker.
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
