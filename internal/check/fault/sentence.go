package fault

import (
	"fmt"
	"strings"
)

// String is the fault as the beginning of a sentence for people: "killed after
// PATCH deployments.apps default/viewer-a (the answer was lost)". The step is told
// only where the fault is not at a request.
func (f Fault) String() string {
	if s, ok := f.atRequest(); ok {
		return s
	}
	p := f.Point
	rest := atRest(p.Step)
	switch f.Kind {
	case DelayWatch:
		return fmt.Sprintf("watch of %s delayed from %s on", p.Type(), p.begin())
	case LoseStates:
		return fmt.Sprintf("watch of %s missed what happened %s", p.Type(), f.span())
	case Restart:
		return "restarted " + rest
	case StaleRestart:
		return fmt.Sprintf("restarted with the list of %s of %s, %s", ago(f.Behind), p.Type(), rest)
	case DownDuring:
		return fmt.Sprintf("down while step %s was done", p.Step)
	case DeleteChild:
		return fmt.Sprintf("somebody deleted %s %s", target(f.Target), rest)
	case EditChild:
		return fmt.Sprintf("somebody changed %s of %s %s", f.Field, target(f.Target), rest)
	case AddFinalizer:
		return fmt.Sprintf("somebody put a finalizer on %s %s, and took it off later", target(f.Target), rest)
	case LoseLease:
		return "lost its Lease to a second instance " + rest
	}
	return fmt.Sprintf("%s at %s", f.Kind, p)
}

// atRequest is the sentence of a fault that is done to one request.
func (f Fault) atRequest() (string, bool) {
	form, ok := map[Kind]string{
		KillBefore:   "killed before %s",
		KillLost:     "killed after %s (the answer was lost)",
		KillAfter:    "killed after %s",
		LoseResponse: "the answer to %s was lost (it was done)",
		Conflict:     "409 on %s",
		Error500:     "500 on %s",
		Error503:     "503 on %s",
		TooMany429:   "429 on %s",
		Timeout504:   "504 on %s (it was not done)",
		ErrorBurst:   "500 three times from %s on",
	}[f.Kind]
	if !ok {
		return "", false
	}
	return fmt.Sprintf(form, f.Point.request()), true
}

// String is the point with its step: "PATCH deployments.apps default/a in step
// scale".
func (p Point) String() string {
	switch {
	case p.Verb != "" && p.Step == "":
		return p.request() + " at its start"
	case p.Verb != "":
		return p.request() + " in step " + p.Step
	case p.Resource != "":
		return p.Type() + " at the beginning of step " + p.Step
	}
	return atRest(p.Step)
}

// request is the request alone: "the 2nd POST pods default/a-*".
func (p Point) request() string {
	s := strings.TrimSpace(method(p.Verb) + " " + p.Resource + " " + p.Object)
	if p.Occurrence > 1 {
		return fmt.Sprintf("the %s %s", ordinal(p.Occurrence), s)
	}
	return s
}

// begin is where a delay begins: a request, or a step.
func (p Point) begin() string {
	if p.Verb != "" {
		return p.request()
	}
	if p.Step == "" {
		return "the start"
	}
	return "the beginning of step " + p.Step
}

// span is from which step to which states were lost.
func (f Fault) span() string {
	if f.Until == "" || f.Until == f.Point.Step {
		return "in step " + f.Point.Step
	}
	return fmt.Sprintf("from step %s to step %s", f.Point.Step, f.Until)
}

func atRest(step string) string {
	if step == "" {
		return "at rest"
	}
	return "at rest after step " + step
}

func ago(behind int) string {
	switch behind {
	case 0:
		return "an earlier moment"
	case 1:
		return "1 write ago"
	}
	return fmt.Sprintf("%d writes ago", behind)
}

// target writes "Kind.group/namespace/name" as people do: "Kind.group
// namespace/name".
func target(s string) string {
	kind, name, _ := strings.Cut(s, "/")
	return kind + " " + strings.TrimPrefix(name, "/")
}

// method is HTTP's word for a verb. A list and a watch keep theirs, because GET
// would not tell them from reading one object.
func method(verb string) string {
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

func ordinal(n int) string {
	suffix := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// Kinds are all kinds, in the order in which people are told of them.
func Kinds() []Kind {
	return []Kind{
		KillBefore, KillLost, KillAfter, LoseResponse, Conflict,
		Error500, Error503, TooMany429, Timeout504, ErrorBurst,
		DelayWatch, LoseStates,
		Restart, StaleRestart, DownDuring, DeleteChild, EditChild, AddFinalizer, LoseLease,
	}
}

// Describe says in one line why a real cluster shows this.
func (k Kind) Describe() string {
	switch k {
	case KillBefore:
		return "a process can end at any moment: out of memory, eviction, a node that fails"
	case KillLost:
		return "a process can end while it waits for an answer; the server does what it was asked all the same"
	case KillAfter:
		return "a process can end right after a write, and forgets all that it had not written down"
	case LoseResponse:
		return "a connection can break after the server has committed; clients repeat only reads by themselves"
	case Conflict:
		return "somebody else may write the object between a controller's read and its write"
	case Error500:
		return "a server answers 500 when its store or a webhook fails"
	case Error503:
		return "a server that starts, stops or is not ready answers 503 with Retry-After"
	case TooMany429:
		return "priority and fairness answers 429 with Retry-After when there is too much to do"
	case Timeout504:
		return "a server that cannot reach its store in time answers 504"
	case ErrorBurst:
		return "an outage of some seconds fails several tries of the same request"
	case DelayWatch:
		return "watches promise order, not speed: a busy server tells of a write seconds later"
	case LoseStates:
		return "a watch that fell too far behind ends with 410, and the client lists what is there now"
	case Restart:
		return "pods are moved, drained and updated"
	case StaleRestart:
		return "a list with resourceVersion=0 may come from the cache of a server that lags behind"
	case DownDuring:
		return "users do not wait until a controller is up"
	case DeleteChild:
		return "anyone with the right may delete what a controller has made"
	case EditChild:
		return "anyone with the right may change what a controller has made"
	case AddFinalizer:
		return "other controllers hold objects by finalizers of their own"
	case LoseLease:
		return "a leader that cannot renew its Lease is replaced while its last requests are still under way"
	}
	return "unknown to this version"
}
