package fault

import (
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Canonical names an object so that it has the same name in every run:
// "NAMESPACE/NAME", or the name alone of an object of the cluster. The resource is
// "deployments.apps", never with a subresource; the name of an object that the
// server is to name is its prefix with a star.
type Canonical = func(namespace, name, resource string) string

// PointOf is where a request is, without Occurrence. It looks only at what is
// known when the request arrives, never at the answer: so it is the same for a
// Call out of a trace and for one that is just being proxied. Change is asked
// for writes only; canonical and change may be nil.
func PointOf(call *trace.Call, step string, canonical func(namespace, name, resource string) string, change func(*trace.Call) string) Point {
	p := Point{Step: step, Verb: call.Verb, Resource: ResourceOf(call), Object: objectOf(call, canonical)}
	if change != nil && IsWrite(call) {
		p.Change = change(call)
	}
	return p
}

// IsWrite says that a request is meant to change something, in the cluster or at
// an endpoint.
func IsWrite(call *trace.Call) bool {
	if call.Endpoint != "" {
		return call.Verb != "get" && call.Verb != "head" && call.Verb != "options"
	}
	switch call.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return call.Target.Resource != ""
	}
	return false
}

// objectOf is the canonical name of what a request is about.
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

// nameOf is the name that a request gives its object. That of a new one stands in
// the body; if the server is to make it up, it is the prefix with a star.
func nameOf(call *trace.Call) string {
	t := call.Target
	if call.Verb != "create" || t.Subresource != "" {
		return t.Name
	}
	body, err := call.RequestObject()
	if err != nil {
		return t.Name // not readable: then there is only the URL
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

// endpointObject is a path with the names of the query's parameters: they say
// which operation is meant (S3's "?lifecycle"), while their values are tokens and
// times. Signatures are left out, and UUIDs are all the same.
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

// Placed is a request of a trace and where in the scenario it was.
type Placed struct {
	Entry *trace.Entry
	// Step is the step that was begun last, empty before the first; Resting says
	// that the step had come to rest.
	Step    string
	Resting bool
}

// Calls goes through the requests of the controller, in the order of the trace.
// What the tester did itself is left out.
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
