// Package request classifies what a controller asks of an API server, and the
// objects in it: what is a write, which writes are the controller's work, and which
// objects are bookkeeping. Everything is keyed by API group, because a CRD may call
// its resource leases, or its kind Node, too.
//
//	                      counted as work   place for a fault   change delays rest   compared
//	child, custom object  yes               yes                 yes                  yes
//	Node                  yes               yes                 no                   no
//	Event, Lease, review  no                no                  no                   no
//	election record       no                no                  no                   no
//	dry run               no                no                  -                    -
//
// The judge judges work, and a lesson counts it. A kubelet's heartbeats write its Node,
// so changes of Nodes are no sign of unrest; but a controller that writes a Node does
// its work.
package request

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// LeaderAnnotation marks a ConfigMap or Endpoints object as the record of a leader
// election, as client-go kept it before there were Leases.
const LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// Method returns the HTTP method of a verb, as a person reads it. List and watch
// remain, because GET would not tell them from reading one object.
func Method(verb string) string {
	switch verb {
	case "create":
		return "POST"
	case "update":
		return "PUT"
	case "deletecollection":
		return "DELETE all"
	}
	return strings.ToUpper(verb)
}

// IsWriteVerb reports whether an API server changes something at a request with
// this verb.
func IsWriteVerb(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// IsWrite reports whether a request is meant to change something: an object of the
// cluster, bookkeeping included, or an external resource behind an endpoint.
func IsWrite(call *trace.Call) bool {
	if call.Endpoint != "" {
		return call.Verb != "get" && call.Verb != "head" && call.Verb != "options"
	}
	return IsWriteVerb(call.Verb) && call.Target.Resource != ""
}

// IsWork reports whether a request is a write that is part of the controller's
// work in the cluster: no bookkeeping and no dry run.
func IsWork(call *trace.Call) bool {
	return call.Endpoint == "" && IsWrite(call) && !IsBookkeeping(call) && !IsDryRun(call)
}

// IsDryRun reports whether the server only pretends to do a write. A deletion
// carries that in its body, any other write in its query.
func IsDryRun(call *trace.Call) bool {
	if call.Endpoint != "" || !IsWriteVerb(call.Verb) {
		return false
	}
	_, query, _ := strings.Cut(call.Path, "?")
	values, _ := url.ParseQuery(query) // what it could read is enough
	if slices.Contains(values["dryRun"], "All") {
		return true
	}
	if call.Verb != "delete" && call.Verb != "deletecollection" {
		return false
	}
	options, err := call.RequestObject()
	if err != nil {
		return false // no options
	}
	list, _ := options["dryRun"].([]any)
	return slices.Contains(list, any("All"))
}

// IsBookkeeping reports whether a request is about the machinery around a
// controller: an Event, a Lease, a review, a token, or the record of an election.
func IsBookkeeping(call *trace.Call) bool {
	return call.Endpoint == "" && (IsBookkeepingTarget(call.Target) || isElection(call))
}

// bookkeeping are the resources that IsBookkeepingTarget knows.
var bookkeeping = map[schema.GroupResource]bool{
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,

	{Group: coordination, Resource: "leases"}:          true,
	{Group: coordination, Resource: "leasecandidates"}: true,

	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             true,
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       true,
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      true,
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   true,
}

// IsBookkeepingTarget is IsBookkeeping where only the URL is known. It cannot tell
// an election's ConfigMap from any other.
func IsBookkeepingTarget(t trace.Target) bool {
	return bookkeeping[schema.GroupResource{Group: t.Group, Resource: t.Resource}] ||
		t.Group == "" && t.Resource == "serviceaccounts" && t.Subresource == "token"
}

// isElection looks for the annotation in what was sent and in what came back: a
// patch may carry only one of them.
func isElection(call *trace.Call) bool {
	t := call.Target
	if t.Group != "" || t.Resource != "configmaps" && t.Resource != "endpoints" || call.Verb == "list" || call.Verb == "watch" {
		return false
	}
	if sent, err := call.RequestObject(); err == nil && hasLeader(sent) {
		return true
	}
	got, err := call.ResponseObject()
	return err == nil && hasLeader(got)
}

const coordination = "coordination.k8s.io"

// IsLease reports whether a request is about Leases.
func IsLease(t trace.Target) bool { return t.Group == coordination && t.Resource == "leases" }
