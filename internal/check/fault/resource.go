package fault

import (
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// endpointPrefix begins the resource of a point at a server outside the cluster.
const endpointPrefix = "endpoint:"

// ResourceOf writes what a request is about as Point.Resource has it: "pods",
// "deployments.apps/status", or "endpoint:NAME". It is empty for requests that are
// about no object, such as discovery.
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

// TypeOf is the type of a target without its subresource: "deployments.apps".
func TypeOf(t trace.Target) string {
	if t.Group == "" {
		return t.Resource
	}
	return t.Resource + "." + t.Group
}

// ParseResource takes the notation of ResourceOf apart. An endpoint comes back as
// a target without anything, and its name.
func ParseResource(s string) (target trace.Target, endpoint string) {
	if name, ok := strings.CutPrefix(s, endpointPrefix); ok {
		return trace.Target{}, name
	}
	s, target.Subresource, _ = strings.Cut(s, "/")
	target.Resource, target.Group, _ = strings.Cut(s, ".")
	return target, ""
}

// Type is the point's resource without the subresource.
func (p Point) Type() string {
	typ, _, _ := strings.Cut(p.Resource, "/")
	return typ
}

// AtEndpoint says that the point is a request to a server outside the cluster.
func (p Point) AtEndpoint() bool { return strings.HasPrefix(p.Resource, endpointPrefix) }

// ParseTarget takes Fault.Target apart: "Kind.group/namespace/name", with nothing
// between the slashes for an object of the cluster.
func ParseTarget(s string) (kind, group, namespace, name string, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return "", "", "", "", false
	}
	kind, group, _ = strings.Cut(parts[0], ".")
	return kind, group, parts[1], parts[2], true
}
