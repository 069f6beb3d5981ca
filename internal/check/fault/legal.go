package fault

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Facts are what a run without a fault tells of the client: how it lists, what it
// watches, what its writes carry. By them each fault is legal or not.
type Facts struct {
	// OldServer says that the server refuses streaming lists, as one before
	// Kubernetes 1.32 does by default. The run has to be of such a server, too.
	OldServer bool
	// Election says that the controller can be made to elect a leader.
	Election bool

	requests  map[Point]*trace.Call // without Occurrence; with and without Change
	watched   map[string]bool       // types
	listsZero map[string]bool       // types that are listed with resourceVersion=0
	streams   map[string]bool       // types that are listed by a watch
	leases    bool
}

// FactsOf reads a trace of a run without a fault.
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

// remember keeps the first call of a point: those after it are like it in all that
// is asked here.
func (f *Facts) remember(p Point, call *trace.Call) {
	if _, ok := f.requests[p]; !ok {
		f.requests[p] = call
	}
}

// learn notes what one request says of the client.
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
		f.leases = f.leases || typ == "leases.coordination.k8s.io"
	}
}

// Watches says whether the client watches the type, "deployments.apps".
func (f *Facts) Watches(typ string) bool { return f.watched[typ] }

// Legal says whether a real cluster could show this fault to this client, and
// whether the client would notice; and if not, why.
func Legal(f Fault, facts *Facts) (bool, string) {
	switch f.Kind {
	case Restart, DownDuring:
		return true, ""
	case DelayWatch, LoseStates:
		if !facts.watched[f.Point.Type()] {
			return false, fmt.Sprintf("the controller does not watch %s", f.Point.Type())
		}
		return true, ""
	case StaleRestart:
		return facts.stale(f.Point.Type())
	case DeleteChild, EditChild, AddFinalizer:
		return targeted(f)
	case LoseLease:
		if !facts.leases && !facts.Election {
			return false, "the controller elects no leader: it writes no Lease, and no arguments are known that make it"
		}
		return true, ""
	}
	return facts.atRequest(f)
}

// stale is the rule of resourceVersion=0: only such a list may be answered from a
// cache that lags, every other one has to be the latest.
func (f *Facts) stale(typ string) (bool, string) {
	if typ == "secrets" {
		return false, "earlier values of Secrets are not kept"
	}
	if !f.listsZero[typ] {
		return false, fmt.Sprintf("the client lists %s without resourceVersion=0: it asks for the latest state", typ)
	}
	if f.streams[typ] && !f.OldServer {
		return false, fmt.Sprintf("the client lists %s by a watch (sendInitialEvents), which is of the latest state; "+
			"resourceVersion=0 is what it falls back to with an old API server", typ)
	}
	return true, ""
}

// targeted asks whether a fault that is about an object says which.
func targeted(f Fault) (bool, string) {
	if _, _, _, _, ok := ParseTarget(f.Target); !ok {
		return false, fmt.Sprintf("the target %q is not of the form Kind.group/namespace/name", f.Target)
	}
	if f.Kind == EditChild && f.Field == "" {
		return false, "no field is named that is to be changed"
	}
	return true, ""
}

// atRequest is about faults that are done to one request.
func (f *Facts) atRequest(x Fault) (bool, string) {
	p := x.Point
	p.Occurrence = 0
	call, ok := f.requests[p]
	if !ok {
		return false, "the request is not in the run without a fault"
	}
	switch x.Kind {
	case KillBefore, KillLost, KillAfter, LoseResponse:
		if !IsWrite(call) {
			return false, "the request writes nothing"
		}
	case Conflict:
		return conflicts(call)
	case Error503, TooMany429:
		if repeats(call) {
			return false, "client-go repeats a request by itself if the answer has Retry-After: the controller would not see it"
		}
	case Error500, Timeout504, ErrorBurst:
	default:
		return false, fmt.Sprintf("the kind %q is not known to this version", x.Kind)
	}
	return true, ""
}

// repeats says that the client is client-go, which tries again on 429 and 5xx if
// and only if there is a Retry-After, up to ten times, whatever the verb
// (rest/with_retry.go). It tells itself by its user agent, "NAME/VERSION (OS/ARCH)
// kubernetes/COMMIT".
func repeats(call *trace.Call) bool {
	return call.Endpoint == "" && strings.Contains(call.UserAgent, ") kubernetes/")
}

func query(call *trace.Call) url.Values {
	_, q, _ := strings.Cut(call.Path, "?")
	values, _ := url.ParseQuery(q)
	return values
}
