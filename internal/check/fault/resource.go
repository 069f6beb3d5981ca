package fault

import (
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// endpointPrefix is the prefix of the resource of a point at an external server.
const endpointPrefix = "endpoint:"

// ResourceOf returns the resource of a request as in Point.Resource: "pods",
// "deployments.apps/status", or "endpoint:NAME". For requests without an object, such as
// discovery, it returns "".
func ResourceOf(call *trace.Call) string {
	if call.Endpoint != "" {
		return endpointPrefix + call.Endpoint
	}
	t := call.Target
	if t.Resource == "" {
		return ""
	}
	s := TypeOf(t)
	if t.Subresource != "" {
		s += "/" + t.Subresource
	}
	return s
}

// TypeOf returns the type of a target without its subresource, such as "deployments.apps".
func TypeOf(t trace.Target) string {
	if t.Group == "" {
		return t.Resource
	}
	return t.Resource + "." + t.Group
}

// ParseResource parses the notation of ResourceOf. For an endpoint, it returns an empty
// target and the name of the endpoint.
func ParseResource(s string) (target trace.Target, endpoint string) {
	if name, ok := strings.CutPrefix(s, endpointPrefix); ok {
		return trace.Target{}, name
	}
	s, target.Subresource, _ = strings.Cut(s, "/")
	target.Resource, target.Group, _ = strings.Cut(s, ".")
	return target, ""
}

// Type returns the resource of the point without the subresource.
func (p Point) Type() string {
	typ, _, _ := strings.Cut(p.Resource, "/")
	return typ
}

// AtEndpoint reports whether the point is a request to an external server.
func (p Point) AtEndpoint() bool { return strings.HasPrefix(p.Resource, endpointPrefix) }

// ParseTarget parses Fault.Target: "Kind.group/namespace/name". The namespace of a
// cluster-scoped object is empty.
func ParseTarget(s string) (kind, group, namespace, name string, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return "", "", "", "", false
	}
	kind, group, _ = strings.Cut(parts[0], ".")
	return kind, group, parts[1], parts[2], true
}
