// Package request classifies the requests that a controller makes to an API server and the
// objects in them: which requests are writes, which writes are the controller's work, and
// which objects are bookkeeping. The classification depends on the API group, because a CRD
// may also have a resource named leases or a kind named Node.
//
//	                      counted as work   place for a fault   change delays rest   compared
//	child, custom object  yes               yes                 yes                  yes
//	Node                  yes               yes                 no                   where written
//	Event, review         no                no                  no                   no
//	Lease with an owner   no                no                  unless renewed       a product, see judge
//	Lease                 no                no                  no                   no
//	election record       no                no                  no                   no
//	dry run               no                no                  -                    -
//
// koboshi check judges a controller only by its work, and counts only work when it learns
// how the controller behaves. A kubelet's heartbeats write its Node, so a change to a Node
// does not mean that the cluster is still busy. If a controller writes a Node, however, the
// write counts as the controller's work.
package request

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// LeaderAnnotation marks a ConfigMap or Endpoints object as the record of a leader
// election. client-go kept such records before Leases existed.
const LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// Method returns the HTTP method of a verb, for messages and reports. The verbs list and
// watch stay as they are, because GET would not distinguish them from reading one object.
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

// IsWriteVerb reports whether a request with this verb changes something in an API
// server.
func IsWriteVerb(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// IsWrite reports whether a request is meant to change something: an object of the cluster
// (including bookkeeping), or an external resource behind an endpoint.
func IsWrite(call *trace.Call) bool {
	if call.Endpoint != "" {
		return call.Verb != "get" && call.Verb != "head" && call.Verb != "options"
	}
	return IsWriteVerb(call.Verb) && call.Target.Resource != ""
}

// IsWork reports whether a request is a write that is part of the controller's
// work in the cluster, not bookkeeping or a dry run.
func IsWork(call *trace.Call) bool {
	return call.Endpoint == "" && IsWrite(call) && !IsBookkeeping(call) && !IsDryRun(call)
}

// IsDryRun reports whether the server only pretends to perform a write. A deletion may
// carry the option dryRun in its body; all other writes carry it only in the query of the
// URL.
func IsDryRun(call *trace.Call) bool {
	if call.Endpoint != "" || !IsWriteVerb(call.Verb) {
		return false
	}
	_, query, _ := strings.Cut(call.Path, "?")
	values, _ := url.ParseQuery(query) // the part that can be parsed is enough
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
	return call.Endpoint == "" && (IsBookkeepingTarget(call.Target) || IsElectionRecord(call))
}

// bookkeeping lists the resources that IsBookkeepingTarget recognises.
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

// IsBookkeepingTarget does the same as IsBookkeeping, but examines only the URL. It cannot
// distinguish the ConfigMap of an election from any other ConfigMap.
func IsBookkeepingTarget(t trace.Target) bool {
	return bookkeeping[schema.GroupResource{Group: t.Group, Resource: t.Resource}] ||
		t.Group == "" && t.Resource == "serviceaccounts" && t.Subresource == "token"
}

// IsElectionRecord reports whether a request is about a ConfigMap or an Endpoints object
// that holds the record of an election. It looks for LeaderAnnotation in both the request
// and the response, because with a patch only one of them may contain the annotation.
func IsElectionRecord(call *trace.Call) bool {
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

// IsElection reports whether a request is about a Lease or about the record of an election.
func IsElection(call *trace.Call) bool {
	return call.Endpoint == "" && (IsLease(call.Target) || IsElectionRecord(call))
}
