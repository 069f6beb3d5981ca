// Package inject applies the one fault of a run. The run reports to the Injection which step begins
// and when the world is at rest, and asks it what to hold back or to wait for. The proxies ask the
// Injection about each request. The Injection depends on the run only through Config, and its
// result is an Outcome.
//
//	run ── Enter, Strike, Release, End ──▶ Injection ──▶ instances, other client
//	proxies ── Decide ──▶      │
//	                           └──▶ Outcome
package inject

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// ErrOver ends a run in which the fault has nothing more to show: it turned out to be
// impossible, or it led to a state whose outcome is known.
var ErrOver = errors.New("the fault has nothing more to show")

// Store gives access to the content of the cluster.
type Store interface {
	// Objects returns the current objects.
	Objects() map[state.Ref]state.Object
	// History returns everything written since the run began.
	History() state.History
	// Touched returns a channel that is closed at the next write.
	Touched() <-chan struct{}
}

// Gate is a way that can be closed.
type Gate interface {
	Close()
	Open() error
}

// Config holds the parts of a run that its fault needs.
type Config struct {
	Fault fault.Fault
	// Canonical and Change identify a request in every run; see fault.NewMatcher. Mask finds
	// an object by its canonical name.
	Canonical func(namespace, name, resource string) string
	Change    func(*trace.Call) string
	Mask      *state.Mask
	// Steps names the steps of the run, in order.
	Steps []string
	// Primary lists the kinds that the controller reconciles, as "Kind.group".
	Primary []string
	// User is the name of the controller's identity.
	User string
	// Grace is the time that the controller gets to exit after SIGTERM.
	Grace time.Duration
	// Webhooks is the way from the API server to the controller's webhooks, for WebhookDown.
	Webhooks Gate

	Log     *trace.Log
	Cluster interference.Client
	Store   Store
	// Explored returns a text that identifies the state after a kill in a step, and reports whether
	// an earlier run has recovered from this state. Explored is nil if the cluster does not hold
	// the complete state, as in a scenario with external endpoints.
	Explored func(ctx context.Context, step string) (state string, known bool, err error)
}

// Injection is the fault of a run. Its methods are safe for concurrent use, except that a single
// goroutine must call Enter, Strike, Release and End. A nil Injection stands for a run without a
// fault.
//
//	armed ──point reached──▶ applied ──at rest──▶ (held streams go on) ──healing──▶ ended
type Injection struct {
	config     Config
	fault      fault.Fault
	matcher    *fault.Matcher // nil for a fault that is not at a request
	controller *instance.Set
	next       phase
	refusing   atomic.Pointer[refusal]       // nil while no further request is refused
	again      atomic.Pointer[fault.Matcher] // nil before the first of two kills

	mu      sync.Mutex
	step    string // the current one
	in      string // the step in which the fault was applied
	refused string // why the fault could not be applied after all
	held    string // release is called when this step is at rest
	release []func()
	outage  *outage   // nil if there was none
	retry   time.Time // until when clients that were refused may pause; zero if there are none

	// state identifies the content of the store after a kill. A controller that starts from
	// the same content behaves the same, so this run can be cut short if an earlier run
	// recovered from this content.
	state  string
	pruned bool
	// killedAgain reports whether the controller was killed for the second time.
	killedAgain bool
}

var _ apiproxy.Decider = (*Injection)(nil)

// New returns a fault that has not begun.
func New(c Config) *Injection {
	i := &Injection{config: c, fault: c.Fault}
	if c.Fault.Point.Verb != "" {
		i.matcher = fault.NewMatcher(c.Fault, c.Canonical, c.Change)
	}
	return i
}

// Attach passes the controller to the fault. Attach must be called before the first instance
// starts.
func (i *Injection) Attach(c *instance.Set) {
	if i != nil {
		i.controller = c
	}
}

// Outcome is the result of a fault.
type Outcome struct {
	Applied bool
	// NotApplied explains why the fault could not be applied, or why the run ended before
	// the fault was applied.
	NotApplied string
	// State identifies the state after a kill, or is empty. Pruned reports whether the run
	// was cut short because an earlier run had recovered from this state.
	State  string
	Pruned bool
}

// Outcome returns the result of the fault, once the run is over.
func (i *Injection) Outcome() Outcome {
	i.mu.Lock()
	defer i.mu.Unlock()
	return Outcome{Applied: i.in != "", NotApplied: i.whyNotApplied(), State: i.state, Pruned: i.pruned}
}

func (i *Injection) whyNotApplied() string {
	switch {
	case i.refused == "" && i.in != "" && i.fault.Kind == fault.KillAgain && !i.killedAgain:
		return fmt.Sprintf("after the first kill, the controller did not send %s in this run", i.fault.Again)
	case i.refused != "" || i.in != "":
		return i.refused
	case i.fault.Point.Verb == "":
		return fmt.Sprintf("the run ended before it reached the point of the fault (%s)", i.fault.Point)
	}
	return fmt.Sprintf("the controller did not send %s in this run", i.fault.Point)
}

// Applied reports whether the fault was applied.
func (i *Injection) Applied() bool { return i != nil && i.AppliedIn("") }

// AppliedIn reports whether the fault was applied in the step; "" stands for any step.
func (i *Injection) AppliedIn(step string) bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.in != "" && (step == "" || i.in == step)
}

// Decides reports whether the fault decides about requests.
func (i *Injection) Decides() bool {
	return i != nil && (i.matcher != nil || i.fault.Kind == fault.FailingStart)
}

// Decide applies the fault at its point.
func (i *Injection) Decide(call *trace.Call) apiproxy.Action {
	if r := i.refusing.Load(); r != nil && r.covers(call) {
		return r.answer(call)
	}
	if m := i.again.Load(); m != nil && m.Match(call, i.current()) {
		return i.killAgain(call)
	}
	decide := actions[i.fault.Kind].request
	if decide == nil || !i.matcher.Match(call, i.current()) {
		return apiproxy.Action{}
	}
	i.markApplied(call)
	return decide(i, call)
}

// Enter begins a step, and applies the fault if it begins with this step. If a fault began after the
// last rest of the previous step, Enter ends it, because that step does not come to rest again.
func (i *Injection) Enter(step string) {
	if i == nil {
		return
	}
	i.Release(i.current())
	i.mu.Lock()
	i.step = step
	i.mu.Unlock()
	if i.fault.Point.Step != step || i.matcher != nil {
		return
	}
	if begin := actions[i.fault.Kind].begin; begin != nil {
		i.markApplied(nil)
		begin(i)
	}
}

// DownDuring reports whether the controller is down while the step is performed.
func (i *Injection) DownDuring(step string) bool {
	return i != nil && i.fault.Kind == fault.DownDuring && i.fault.Point.Step == step
}

// Due reports whether the fault is to be applied once the step is at rest.
func (i *Injection) Due(step string) bool {
	return i != nil && actions[i.fault.Kind].rest != nil && i.fault.Point.Step == step && !i.Applied()
}

// Strike applies a fault while the world is at rest. If done is false, the world has to come to
// rest before Strike is called again.
func (i *Injection) Strike(ctx context.Context) (done bool, err error) {
	do := i.next
	if do == nil {
		i.markApplied(nil)
		do = actions[i.fault.Kind].rest(i)
	}
	if i.next, err = do(ctx); err != nil {
		return true, i.Refuse(err)
	}
	return i.next == nil, nil
}

// markApplied notes that the fault has been applied.
func (i *Injection) markApplied(call *trace.Call) {
	i.mu.Lock()
	i.in = i.step
	i.mu.Unlock()
	note := trace.Fault{What: "applied", Text: i.fault.String()}
	if call != nil {
		note.Call = call.ID
	}
	i.config.Log.Record(trace.Entry{Fault: &note})
}

// Refuse records that a fault turned out to be impossible after it had begun, and returns ErrOver.
func (i *Injection) Refuse(why error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refused == "" {
		i.refused = short(why.Error())
	}
	return ErrOver
}

// refuse ends the run, because a fault that has begun turns out to be impossible.
func (i *Injection) refuse(why string) { i.controller.Fail(i.Refuse(errors.New(why))) }

func (i *Injection) current() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.step
}

// stepAfter returns the name of the next step, or name itself for the last step.
func (i *Injection) stepAfter(name string) string {
	steps := i.config.Steps
	for n := range steps {
		if steps[n] == name && n+1 < len(steps) {
			return steps[n+1]
		}
	}
	return name
}

// short truncates a text that may contain a complete object.
func short(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
