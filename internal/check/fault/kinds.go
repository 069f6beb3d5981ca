package fault

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Where classifies the moments at which faults are applied.
type Where string

// The moments.
const (
	AtWrite   Where = "at a write"
	AtRequest Where = "at a request"
	AtWatch   Where = "at a watch"
	InStep    Where = "during a step"
	AtRest    Where = "at rest"
)

// These are the phases of a plan. The faults of the first phase need only a write and find
// the most frequent bugs, so a small budget is mostly spent on them.
const (
	PhaseWrites  = 1
	PhaseWatches = 2
	PhaseStale   = 3
	PhaseOthers  = 4 // other clients, leases, and everything at an endpoint
)

// OutageLasts is the duration of an Outage: clients have to try again several times, but a leader with
// the usual renew deadline of 10 s keeps its Lease. BriefOutageLasts is the longest duration of the outage
// in OfflineStart and FailingStart, which matters only for the first requests.
const (
	OutageLasts      = 5 * time.Second
	BriefOutageLasts = 2 * time.Second
)

// HangLasts is the longest duration of a Hang, and RefusalLasts that of Forbid, Revoke and WebhookDown. A
// controller that writes its progress in each attempt is never at rest while it is refused.
const (
	HangLasts    = 10 * time.Second
	RefusalLasts = 10 * time.Second
)

// Answer is the answer that a fault gives in place of the API server.
type Answer struct {
	Code    int
	Reason  metav1.StatusReason
	Message string
	// RetryAfter is in seconds; if it is 0, the header is omitted.
	RetryAfter int
}

// description is a row of the table of kinds.
type description struct {
	kind  Kind
	where Where
	// phase is the phase of the plan, except for faults at endpoints.
	phase int
	// cost is an estimate of the time that the fault adds to a run, in tenths of a second.
	cost int
	// kills reports whether the fault only ends and restarts the process.
	kills bool
	// answer is set only if the fault answers in place of the server.
	answer *Answer
	// sentence describes the fault for human readers, see Fault.String.
	sentence func(Fault) string
	// why gives the cause of this fault in a real cluster.
	why string
	// legal returns the reason why this client cannot encounter the fault in a real cluster, or ""
	// if it can. The call is set only if the fault is at a request.
	legal func(*Facts, Fault, *trace.Call) string
}

// leaderChanged is the answer of an API server whose etcd is electing a new leader.
var leaderChanged = &Answer{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcdserver: leader changed"}

// table describes all kinds, in the order in which they are listed to users.
var table = []description{
	{
		kind: KillBefore, where: AtWrite, phase: PhaseWrites, cost: 5, kills: true,
		sentence: atRequest("killed before %s"), legal: write,
		why: "a process can end at any moment, because memory runs out, a Pod is evicted or a node fails",
	},
	{
		kind: KillLost, where: AtWrite, phase: PhaseWrites, cost: 5, kills: true,
		sentence: atRequest("killed after %s (the answer was lost)"), legal: write,
		why: "a process can end while it waits for an answer; the server carries out the request anyway",
	},
	{
		kind: KillAfter, where: AtWrite, phase: PhaseWrites, cost: 5, kills: true,
		sentence: atRequest("killed after %s"), legal: write,
		why: "a process can end right after a write; it then loses everything that it has not stored",
	},
	{
		kind: KillAgain, where: AtWrite, phase: PhaseOthers, cost: 10, kills: true,
		sentence: func(f Fault) string {
			return fmt.Sprintf("killed after %s, and again after %s (the answers were lost)", f.Point.request(), f.Again.request())
		},
		legal: write,
		why:   "a process that runs out of memory, or whose node is unstable, often ends again soon after its restart",
	},
	{
		kind: Terminate, where: AtWrite, phase: PhaseWrites, cost: 6, kills: true,
		sentence: atRequest("asked to exit (SIGTERM) during %s"), legal: write,
		why: "every rollout and eviction asks the process to exit, and it has a grace period to finish its work",
	},
	{
		kind: LoseResponse, where: AtWrite, phase: PhaseWrites, cost: 1,
		sentence: atRequest("the answer to %s was lost (the write succeeded)"), legal: write,
		why: "a connection can break after the server has committed a write; clients automatically repeat only reads",
	},
	{
		kind: Conflict, where: AtWrite, phase: PhaseWrites, cost: 1,
		sentence: atRequest("409 on %s"), legal: conflicts,
		why: "another client may write the object between a controller's read and its write",
	},
	{
		kind: Error500, where: AtRequest, phase: PhaseWrites, cost: 1, answer: leaderChanged,
		sentence: atRequest("500 on %s"), legal: always,
		why: "a server answers 500 when its store or a webhook fails",
	},
	{
		kind: Error503, where: AtRequest, phase: PhaseWrites, cost: 10,
		answer:   &Answer{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", 1},
		sentence: atRequest("503 on %s"), legal: notRepeated,
		why: "a server that starts, stops or is not ready answers 503 with Retry-After",
	},
	{
		kind: TooMany429, where: AtRequest, phase: PhaseWrites, cost: 10,
		answer:   &Answer{http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", 1},
		sentence: atRequest("429 on %s"), legal: notRepeated,
		why: "API priority and fairness answers 429 with Retry-After when the server is overloaded",
	},
	{
		kind: Timeout504, where: AtRequest, phase: PhaseOthers, cost: 10,
		answer:   &Answer{http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "request did not complete within the allotted timeout", 0},
		sentence: atRequest("504 on %s (nothing was written)"), legal: always,
		why: "a server that cannot reach its store in time answers 504",
	},
	{
		kind: ErrorBurst, where: AtRequest, phase: PhaseOthers, cost: 10, answer: leaderChanged,
		sentence: atRequest("500 on %s, three times in a row"), legal: always,
		why: "in an outage of a few seconds, several attempts at the same request fail",
	},
	{
		kind: Forbid, where: AtWrite, phase: PhaseOthers, cost: 10,
		sentence: atRequest("403 (exceeded quota) on %s"), legal: counted,
		why: "a quota can limit the number of objects of any namespaced type, until it is raised or another object is deleted",
	},
	{
		kind: Revoke, where: AtWrite, phase: PhaseOthers, cost: 10,
		sentence: atRequest("403 (permission revoked) on %s"), legal: authorized,
		why: "roles are changed, and during an upgrade, they may be replaced before or after the controller",
	},
	{
		kind: WebhookDown, where: AtWrite, phase: PhaseOthers, cost: 10,
		sentence: atRequest("webhooks unreachable at %s"), legal: reviewed,
		why: "webhooks are served by Pods, which restart, and connections to them are refused until their Service knows",
	},
	{
		kind: Hang, where: AtWrite, phase: PhaseOthers, cost: 10,
		sentence: atRequest("no answer to %s (nothing was written)"), legal: write,
		why: "a network or a server can stop in the middle of a request, and most clients wait without a limit",
	},
	{
		kind: DelayWatch, where: AtWatch, phase: PhaseWatches, cost: 5,
		sentence: func(f Fault) string {
			return "watch of " + f.Point.Type() + " delayed, starting with " + f.Point.begin()
		},
		legal: watched,
		why:   "watches guarantee order, but not speed: a busy server may report a write seconds later",
	},
	{
		kind: LoseStates, where: AtWatch, phase: PhaseWatches, cost: 8,
		sentence: func(f Fault) string { return "watch of " + f.Point.Type() + " missed what happened " + f.span() },
		legal:    watched,
		why:      "a watch that has fallen too far behind ends with 410, and the client lists the current state",
	},
	{
		kind: Restart, where: AtRest, phase: PhaseWatches, cost: 5, kills: true,
		sentence: func(f Fault) string { return "restarted " + atRest(f.Point.Step) }, legal: always,
		why: "pods are evicted, moved to other nodes and updated",
	},
	{
		kind: StaleRestart, where: AtRest, phase: PhaseStale, cost: 8,
		sentence: func(f Fault) string {
			return "restarted " + atRest(f.Point.Step) + ", with a list of " + f.Point.Type() + " from " + ago(f.Behind)
		},
		legal: stale,
		why:   "a list with resourceVersion=0 may come from the cache of a server that lags behind",
	},
	{
		kind: OfflineStart, where: AtRest, phase: PhaseOthers, cost: 50, // it lasts for BriefOutageLasts, and then the client backs off
		sentence: func(f Fault) string {
			return "restarted " + atRest(f.Point.Step) + ", while the API server could not be reached"
		},
		legal: always,
		why:   "when a node or the whole cluster restarts, controllers start before they can reach the API server",
	},
	{
		kind: FailingStart, where: AtRest, phase: PhaseOthers, cost: 40, // it lasts for BriefOutageLasts, and then the client backs off
		sentence: func(f Fault) string {
			return "restarted " + atRest(f.Point.Step) + ", while the API server answered with 500"
		},
		legal: always,
		why:   "when a control plane is upgraded, controllers start while etcd still elects a leader",
	},
	{
		kind: DownDuring, where: InStep, phase: PhaseWatches, cost: 8,
		sentence: func(f Fault) string { return "down during step " + f.Point.Step }, legal: always,
		why: "users change objects even while the controller is down",
	},
	{
		kind: Outage, where: InStep, phase: PhaseOthers, cost: 100, // it lasts for OutageLasts, and then the client backs off
		sentence: func(f Fault) string {
			return fmt.Sprintf("unable to reach the API server for the first %d s of step %s", OutageLasts/time.Second, f.Point.Step)
		},
		legal: always,
		why:   "an API server is upgraded, moved or cut off by the network",
	},
	{
		kind: DeleteChild, where: AtRest, phase: PhaseOthers, cost: 3,
		sentence: func(f Fault) string { return "another client deleted " + target(f.Target) + " " + atRest(f.Point.Step) },
		legal:    targeted,
		why:      "any client with permission may delete what a controller has created",
	},
	{
		kind: EditChild, where: AtRest, phase: PhaseOthers, cost: 3,
		sentence: func(f Fault) string {
			what := "changed "
			if f.Field == Owners {
				what = "removed "
			}
			return "another client " + what + f.Field + " of " + target(f.Target) + " " + atRest(f.Point.Step)
		},
		legal: edited,
		why:   "any client with permission may change what a controller has created",
	},
	{
		kind: AddFinalizer, where: AtRest, phase: PhaseOthers, cost: 8,
		sentence: func(f Fault) string {
			return "another client added a finalizer to " + target(f.Target) + " " + atRest(f.Point.Step) + ", and removed it later"
		},
		legal: targeted,
		why:   "other controllers delay deletions with their own finalizers",
	},
	{
		kind: LoseLease, where: AtRest, phase: PhaseOthers, cost: 200, // a Lease has to expire
		sentence: func(f Fault) string { return "lost its Lease to a second instance " + atRest(f.Point.Step) },
		legal:    elects,
		why:      "a leader that cannot renew its Lease is replaced while its last requests are still in progress",
	},
}

// Kinds returns all kinds, in the order in which they are listed to users.
func Kinds() []Kind {
	kinds := make([]Kind, len(table))
	for i := range table {
		kinds[i] = table[i].kind
	}
	return kinds
}

// find returns the row of a kind. Plans from other versions may contain unknown kinds.
func (k Kind) find() (*description, bool) {
	for i := range table {
		if table[i].kind == k {
			return &table[i], true
		}
	}
	return &description{where: AtRequest, phase: PhaseOthers, cost: 20, why: "unknown to this version"}, false
}

// Describe returns one line that explains why this fault happens in a real cluster.
func (k Kind) Describe() string { d, _ := k.find(); return d.why }

// Where returns the moment at which the kind is applied.
func (k Kind) Where() Where { d, _ := k.find(); return d.where }

// Phase returns the phase of a plan in which faults of this kind at the API server are run.
func (k Kind) Phase() int { d, _ := k.find(); return d.phase }

// Cost estimates the time that a fault of this kind adds to a run, in tenths of a second.
func (k Kind) Cost() int { d, _ := k.find(); return d.cost }

// Kills reports whether the fault kills or ends the process and restarts it, and does nothing
// else, so that the run continues as after any restart.
func (k Kind) Kills() bool { d, _ := k.find(); return d.kills }

// CutsOff reports whether the controller cannot reach the API server during the fault.
func (k Kind) CutsOff() bool { return k == Outage || k == OfflineStart }

// Refuses reports whether the API server answers 403 for some time, as while a quota is exceeded.
func (k Kind) Refuses() bool { return k == Forbid || k == Revoke }

// Meddles reports whether the fault is a change of the controller's objects by another client,
// which a controller may be right not to undo.
func (k Kind) Meddles() bool { return k == DeleteChild || k == EditChild || k == AddFinalizer }

// Answer returns the answer that the kind gives in place of the API server, if any.
func (k Kind) Answer() (Answer, bool) {
	d, _ := k.find()
	if d.answer == nil {
		return Answer{}, false
	}
	return *d.answer, true
}

func write(_ *Facts, _ Fault, call *trace.Call) string {
	if !request.IsWrite(call) {
		return "the request writes nothing"
	}
	return ""
}

func always(*Facts, Fault, *trace.Call) string { return "" }
