package fault

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Facts describe the behavior of a client in a run without a fault: how it lists, which types it
// watches, and what its writes contain. They determine which faults are legal.
type Facts struct {
	// OldServer reports whether the server refuses streaming lists, as servers before
	// Kubernetes 1.32 do by default. A run with a fault must use the same kind of server.
	OldServer bool
	// Election reports whether the controller can be made to elect a leader.
	Election bool
	// Reviewed reports whether the API server refuses a write while the controller's own webhooks
	// cannot be reached. It is nil if the controller serves no webhooks.
	Reviewed func(*trace.Call) bool

	requests  map[Point]*trace.Call // stored twice, with and without Change; never with Occurrence
	watched   map[string]bool       // types
	listsZero map[string]bool       // types that are listed with resourceVersion=0
	streams   map[string]bool       // types that are listed through a watch
	leases    bool
}

// FactsOf derives the facts from the trace of a run without a fault.
func FactsOf(entries []trace.Entry, canonical func(namespace, name, resource string) string, change func(*trace.Call) string) *Facts {
	f := &Facts{
		requests: map[Point]*trace.Call{}, watched: map[string]bool{},
		listsZero: map[string]bool{}, streams: map[string]bool{},
	}
	for at := range Calls(entries) {
		call := at.Entry.Call
		p := PointOf(call, at.Step, canonical, change)
		f.remember(p, call)
		p.Change = ""
		f.remember(p, call)
		f.learn(call)
	}
	return f
}

// remember keeps the first call of a point, or the first one that created an object. Other calls of the
// point do not differ in any respect that matters to Legal.
func (f *Facts) remember(p Point, call *trace.Call) {
	if before := f.requests[p]; before == nil || before.Code != http.StatusCreated && call.Code == http.StatusCreated {
		f.requests[p] = call
	}
}

// learn notes what one request reveals about the client.
func (f *Facts) learn(call *trace.Call) {
	typ := TypeOf(call.Target)
	switch call.Verb {
	case "watch":
		f.watched[typ] = true
		if query(call).Get("sendInitialEvents") == "true" {
			f.streams[typ] = true
		}
	case "list":
		if query(call).Get("resourceVersion") == "0" {
			f.listsZero[typ] = true
		}
	case "create", "update", "patch":
		f.leases = f.leases || request.IsElection(call)
	}
}

// Watches reports whether the client watches a type such as "deployments.apps".
func (f *Facts) Watches(typ string) bool { return f.watched[typ] }

// Legal reports whether this client could encounter this fault in a real cluster, and would notice
// it. It also returns the reason if the fault is not legal.
func Legal(f Fault, facts *Facts) (bool, string) {
	d, known := f.Kind.find()
	var call *trace.Call
	if d.where == AtRequest || d.where == AtWrite {
		p := f.Point
		p.Occurrence = 0
		if call = facts.requests[p]; call == nil {
			return false, "the request is not in the run without a fault"
		}
	}
	if !known {
		return false, fmt.Sprintf("the kind %q is not known to this version", f.Kind)
	}
	why := d.legal(facts, f, call)
	return why == "", why
}

func watched(facts *Facts, f Fault, _ *trace.Call) string {
	if !facts.watched[f.Point.Type()] {
		return fmt.Sprintf("the controller does not watch %s", f.Point.Type())
	}
	return ""
}

func elects(facts *Facts, _ Fault, _ *trace.Call) string {
	if !facts.leases && !facts.Election {
		return "the controller does not use leader election: it writes no Lease, and no argument that enables leader election is known"
	}
	return ""
}

// stale applies the rule for cached lists: only a list with resourceVersion=0 may be
// answered from a cache that lags behind, and every other list must show the latest state.
func stale(facts *Facts, f Fault, _ *trace.Call) string {
	typ := f.Point.Type()
	if !facts.listsZero[typ] {
		return fmt.Sprintf("the client lists %s without resourceVersion=0, so it requests the latest state", typ)
	}
	if facts.streams[typ] && !facts.OldServer {
		return fmt.Sprintf("the client lists %s through a watch (sendInitialEvents), which shows the latest state; "+
			"it falls back to resourceVersion=0 only with an old API server", typ)
	}
	return ""
}

// targeted checks that a fault names its object.
func targeted(_ *Facts, f Fault, _ *trace.Call) string {
	if _, _, _, _, ok := ParseTarget(f.Target); !ok {
		return fmt.Sprintf("the target %q is not of the form Kind.group/namespace/name", f.Target)
	}
	return ""
}

func edited(facts *Facts, f Fault, call *trace.Call) string {
	if why := targeted(facts, f, call); why != "" {
		return why
	}
	if f.Field == "" {
		return "the fault does not name the field to change"
	}
	return ""
}

// counted returns a reason against the fault unless a quota can refuse the request. A quota counts the
// objects of any namespaced type, except the bookkeeping in ignoredResources of upstream's
// pkg/quota/v1/install.
func counted(_ *Facts, _ Fault, call *trace.Call) string {
	switch {
	case call.Endpoint != "":
		return "an endpoint has no quotas"
	case call.Verb != "create" && (call.Verb != "patch" || call.Code != http.StatusCreated), call.Target.Subresource != "":
		return "a quota counts objects, and the request creates none"
	case call.Target.Namespace == "" || call.Target.Resource == "namespaces":
		return "a quota counts only objects in a namespace"
	case request.IsBookkeeping(call):
		return "a quota does not count bookkeeping"
	}
	return ""
}

// authorized returns a reason against the fault unless RBAC decides about the write.
func authorized(facts *Facts, f Fault, call *trace.Call) string {
	if call.Endpoint != "" {
		return "an endpoint has no roles"
	}
	return write(facts, f, call)
}

// reviewed returns a reason against the fault unless the API server calls a webhook of the controller for
// the write, and refuses the write without an answer.
func reviewed(facts *Facts, f Fault, call *trace.Call) string {
	switch why := write(facts, f, call); {
	case why != "":
		return why
	case facts.Reviewed == nil:
		return "the controller serves no webhooks"
	case call.Endpoint != "" || !facts.Reviewed(call):
		return "no webhook of the controller whose failure policy is Fail covers the write"
	}
	return ""
}

// notRepeated returns a reason against the fault if the client is client-go. If the answer has
// Retry-After, client-go repeats requests of any verb up to ten times after 429 and 5xx
// (rest/with_retry.go). The user agent of client-go is "NAME/VERSION (OS/ARCH) kubernetes/COMMIT".
func notRepeated(_ *Facts, _ Fault, call *trace.Call) string {
	if call.Endpoint == "" && strings.Contains(call.UserAgent, ") kubernetes/") {
		return "client-go repeats a request automatically if the answer has Retry-After, so the controller would not notice the fault"
	}
	return ""
}

// NeedsStore reports whether an API server without a connection to etcd cannot answer a request.
// Discovery and reviews come from memory, and so does a read for which any version will do.
func NeedsStore(call *trace.Call) bool {
	t := call.Target
	switch {
	case call.Endpoint != "", t.Resource == "", t.Group == "authorization.k8s.io", t.Group == "authentication.k8s.io":
		return false
	case call.Verb == "watch":
		return query(call).Get("sendInitialEvents") == "true"
	}
	return request.IsWrite(call) || query(call).Get("resourceVersion") != "0"
}

func query(call *trace.Call) url.Values {
	_, q, _ := strings.Cut(call.Path, "?")
	values, _ := url.ParseQuery(q)
	return values
}
