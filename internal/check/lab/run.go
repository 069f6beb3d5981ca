package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Started is the name of what comes before the first step: the controller has
// been started in a world that holds what is given.
const Started = "(start)"

const (
	// stepTimeout is how long a step may take if the scenario does not say.
	stepTimeout = 20 * time.Second
	// faultyTimeout is how long all may take to come to rest in a run with a fault,
	// before the stages of healing begin: at least, as a slow controller has longer.
	faultyTimeout = 8 * time.Second
	// idle is how long a world at rest is watched after a step, and catchingUp how
	// long before that a controller may still read what it has written.
	idle       = 150 * time.Millisecond
	catchingUp = 150 * time.Millisecond
)

// run is one scenario, done once.
type run struct {
	lab      *Lab
	scenario *scenario.Scenario
	lesson   *Lesson // nil while learning
	fault    *fault.Fault
	jitter   *jitter // nil without

	window  time.Duration
	streams int
	polls   bool  // while learning: it was seen to watch nothing
	written int64 // how many writes there were when the step began
	idle    time.Duration
	excused time.Time // when the controller last waited for the Lease of one that is gone, or was being loaded

	began      time.Time
	log        *trace.Log
	controller *controller
	servers    *servers
	knock      *knock
	step       current
	down       bool
	out        *evidence.Run
}

// errStop ends a run early because nothing more can be learnt from it.
var errStop = errors.New("nothing more to learn")

// do runs the scenario from a world as it was, and returns what that showed. An
// error is one of the plane or of the setup, not of the controller.
func (r *run) do(ctx context.Context) (*evidence.Run, error) {
	if err := r.lab.plane.Reset(ctx); err != nil {
		return nil, err
	}
	if err := r.lab.caughtUp(ctx); err != nil {
		return nil, err
	}
	r.began = time.Now()
	r.lab.store.begin()
	r.log = trace.NewLog(r.began)
	r.out.Scenario = r.scenario.Name
	err := r.play(ctx)
	if r.controller != nil {
		r.controller.close()
		r.out.Logs = r.controller.output.String()
	}
	r.servers.stop()
	if err := r.lab.caughtUp(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	r.out.History, r.out.Entries, r.out.Took = r.lab.store.history(), r.log.Entries(), time.Since(r.began)
	var gone *GoneError
	if errors.Is(err, errStop) || r.lesson != nil && errors.As(err, &gone) {
		err = nil // it is judged by what it did
	}
	return r.out, err
}

func (r *run) play(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for i := range r.scenario.Steps {
		if err := r.do1(ctx, &r.scenario.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes what the scenario gives, and what the controller needs outside.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.servers, err = startServers(ctx, r); err != nil {
		return &SetupError{err}
	}
	if err := r.scenario.Prepare(ctx, r.cluster()); err != nil {
		return &SetupError{fmt.Errorf("scenario %s: %w", r.scenario.Name, err)}
	}
	return nil
}

func (r *run) cluster() scenario.Cluster {
	return r.lab.cluster(r.scenario.Dir, r.servers.proxied(), r.servers.environment(true))
}

// begin starts the controller and waits until it is up and at rest.
func (r *run) begin(ctx context.Context) error {
	r.controller = &controller{
		lab: r.lab, ctx: ctx, log: r.log, decider: r.decider(), output: output.NewTail(logTail), env: r.servers.environment(false),
	}
	if r.fault != nil && r.fault.Kind == fault.LoseLease {
		r.controller.args = r.lab.config.Subject.Election
	}
	return r.milestone(ctx, Started, func(ctx context.Context) error {
		if err := r.controller.start(0); err != nil {
			return &SetupError{err}
		}
		if len(r.lab.config.Subject.Webhooks) == 0 {
			return nil
		}
		if _, err := r.rest(ctx, stepTimeout); err != nil {
			return err
		}
		return r.callWebhooks(ctx)
	}, nil)
}

// callWebhooks has the API server call the controller's webhooks from now on.
// Before, they would refuse what is given, as nobody answers.
func (r *run) callWebhooks(ctx context.Context) error {
	for i := range r.lab.config.Subject.Webhooks {
		if err := r.lab.create(ctx, r.lab.config.Subject.Webhooks[i].DeepCopy()); err != nil {
			return &SetupError{err}
		}
	}
	return nil
}

// do1 does one step.
func (r *run) do1(ctx context.Context, step *scenario.Step) error {
	return r.milestone(ctx, step.Name, func(ctx context.Context) error {
		away := step.WhileDown || r.knock.downDuring(step.Name)
		if away {
			r.down = true
			r.controller.kill()
		}
		err := step.Do(ctx, r.cluster())
		if away {
			r.down = false
			if err := r.controller.start(0); err != nil {
				return err
			}
		}
		if err != nil {
			return r.undoable(step, err)
		}
		if r.knock.holding() {
			return nil // what is waited for may need what is held back
		}
		if err := r.await(ctx, step); err != nil {
			if _, gone := r.controller.activity(); gone != nil {
				return gone // that is why
			}
			if r.lesson == nil {
				return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: err, late: true}
			}
			r.out.Steps[len(r.out.Steps)-1].Failed = append(r.out.Steps[len(r.out.Steps)-1].Failed, err.Error())
		}
		return nil
	}, step)
}

// undoable is what it means that a step could not be done: while learning that
// the scenario is wrong, and with a fault that nothing can be said.
func (r *run) undoable(step *scenario.Step, err error) error {
	if r.lesson == nil {
		return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: err}
	}
	r.out.Inconclusive = fmt.Sprintf("step %s could not be done: %v", step.Name, err)
	return errStop
}

// A GoneError is a controller that ends by itself again and again.
type GoneError struct {
	Times, Code int
	Said        string // its last line
}

func (e *GoneError) Error() string {
	said := e.Said
	if said == "" {
		said = "it printed nothing"
	}
	return fmt.Sprintf("the controller ended by itself %d times, the last time with code %d: %s; start it by hand with the same arguments to see why",
		e.Times, e.Code, said)
}

// A StepError is a step that the cluster refuses also without a fault.
type StepError struct {
	Scenario, Step string
	Err            error

	late bool // it was done, and what it waits for has not come
}

func (e *StepError) Error() string {
	return fmt.Sprintf("scenario %s, step %s: %v", e.Scenario, e.Step, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// milestone does something, waits until all has come to rest, lets the fault of
// that moment happen, and compares.
func (r *run) milestone(ctx context.Context, name string, do func(context.Context) error, step *scenario.Step) error {
	revision, _ := r.lab.store.seen()
	at := evidence.Step{Name: name, Began: revision, BeganAt: r.since()}
	r.out.Steps = append(r.out.Steps, at)
	m := &r.out.Steps[len(r.out.Steps)-1]
	r.step.enter(name)
	r.log.Record(trace.Entry{Step: &trace.Step{Name: name, What: "started", Revision: revision}})
	r.knock.stepBegins(name)
	if now, err := r.controller.activity(); err == nil {
		r.written = now.writes
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout()+r.handover())
	err := do(limited)
	cancel()
	var late *StepError
	if err != nil && (!errors.As(err, &late) || !late.late) {
		return err
	}
	if err := r.settle(ctx, m, step); err != nil {
		return err
	}
	// Of a controller that never comes to rest that is the thing to say.
	loops := m.Restless && r.lesson == nil
	if late != nil && !loops {
		return late
	}
	if step != nil && !r.knock.holding() && !loops {
		if err := r.expectations(ctx, m, step); err != nil {
			return err
		}
	}
	if m.Rested == 0 {
		m.Rested, _ = r.lab.store.seen()
	}
	m.RestedAt = r.since()
	r.log.Record(trace.Entry{Step: &trace.Step{Name: name, What: "settled", Revision: m.Rested}})
	if err := r.readLedger(ctx, m); err != nil {
		return err
	}
	if err := r.watchIdle(ctx, m); err != nil {
		return err
	}
	return r.enough(m)
}

// settle waits until all is calm, and heals what is not as it should be.
func (r *run) settle(ctx context.Context, m *evidence.Step, step *scenario.Step) error {
	timeout := r.timeout()
	if r.lesson != nil {
		timeout = r.faultyTimeout()
	}
	rested, err := r.calm(ctx, m.Name, timeout)
	if err != nil {
		return err
	}
	if r.knock.awaits(m.Name) {
		if rested, err = r.strike(ctx, m, step); err != nil {
			return err
		}
	}
	m.Restless = !rested
	if r.lesson != nil && !r.knock.holding() {
		err = r.heal(ctx, m, step)
	}
	m.Faulty = r.knock.appliedIn(m.Name)
	return err
}

// strike applies a fault that belongs to a moment of rest, once the world is as it
// should be then.
func (r *run) strike(ctx context.Context, m *evidence.Step, step *scenario.Step) (rested bool, err error) {
	right, err := r.becomes(ctx, m.Name, step, r.lesson.Patience)
	if err != nil {
		return false, err
	}
	if !right {
		return false, r.differs(m)
	}
	if err := r.knock.strike(ctx); err != nil {
		return false, err
	}
	return r.calm(ctx, m.Name, r.faultyTimeout())
}

// differs ends a run that is not as the others although nothing was done to it:
// nothing can be said of it.
func (r *run) differs(m *evidence.Step) error {
	r.out.Inconclusive = "step " + m.Name + " ended differently"
	if r.fault != nil {
		r.out.Inconclusive += " before the fault was applied"
	}
	return errStop
}

// calm waits for rest, lets go what was held back until then, and waits again.
func (r *run) calm(ctx context.Context, step string, timeout time.Duration) (rested bool, err error) {
	for {
		if rested, err = r.rest(ctx, timeout); err != nil || !r.knock.letGo(step) {
			return rested, err
		}
	}
}

// expectations notes what does not hold. Without a fault that is no finding: the
// scenario expects what does not come.
func (r *run) expectations(ctx context.Context, m *evidence.Step, step *scenario.Step) error {
	deadline := time.Now().Add(patience)
	for {
		store := r.lab.store.touched.next()
		failed := r.unmet(ctx, step)
		switch {
		case len(failed) == 0:
			return nil
		case r.lesson != nil: // heal has waited
			m.Failed = append(m.Failed, failed...)
			return nil
		case time.Now().After(deadline):
			return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: fmt.Errorf("without any fault, what is expected does not hold: %s", failed[0])}
		}
		select {
		case <-store:
		case <-time.After(r.window):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unmet are the expectations of a step that do not hold now.
func (r *run) unmet(ctx context.Context, step *scenario.Step) []string {
	if step == nil || len(step.Expect) == 0 {
		return nil
	}
	return step.Check(ctx, r.cluster())
}

func (r *run) readLedger(ctx context.Context, m *evidence.Step) (err error) {
	if len(r.scenario.Ledger) == 0 {
		return nil
	}
	m.Ledger, err = scenario.ReadLedger(ctx, r.scenario, r.cluster())
	if err != nil {
		return &SetupError{fmt.Errorf("scenario %s: %w", r.scenario.Name, err)}
	}
	return nil
}

// watchIdle looks at what the controller writes although there is nothing to do:
// in a run without a fault also while rest was waited for, once it had caught up.
func (r *run) watchIdle(ctx context.Context, m *evidence.Step) error {
	if r.lesson != nil && !m.Faulty {
		return nil
	}
	m.Watched = r.idle
	if r.lesson == nil {
		m.Watched += max(r.window-catchingUp, 0)
	}
	select {
	case <-time.After(r.idle):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	from := time.Since(r.began) - m.Watched
	for _, e := range r.log.Entries() {
		if e.At >= from && e.Call != nil && e.Call.Endpoint == "" && writes(e.Call.Verb) && counted(e.Call.Target) {
			m.Idle = append(m.Idle, e)
		}
	}
	return nil
}

// enough ends a run that nothing more can be learnt from: the controller was
// killed, a new one has brought all to the state that it should be in, and so what
// follows would be what follows a restart at rest, which is a fault of its own.
func (r *run) enough(m *evidence.Step) error {
	switch {
	case m.Restless, m.Healed == evidence.Never:
		return errStop
	case m.Faulty && r.fault != nil && kills(r.fault.Kind) && m.Healed != evidence.Poke && len(r.scenario.Endpoints) == 0:
		return errStop
	}
	return nil
}

func kills(k fault.Kind) bool {
	return slices.Contains([]fault.Kind{fault.KillBefore, fault.KillLost, fault.KillAfter, fault.Restart}, k)
}

func (r *run) timeout() time.Duration {
	if t := time.Duration(r.scenario.Rest.Timeout); t > 0 {
		return t
	}
	return stepTimeout
}

func (r *run) faultyTimeout() time.Duration {
	if r.lesson.Streams == 0 {
		return max(faultyTimeout, 2*longestRound) // it has to ask twice
	}
	return max(faultyTimeout, tries*r.window)
}

func (r *run) since() time.Duration { return time.Since(r.lab.store.since()) }

// decider is what the proxies ask: the fault, jitter, or nobody.
func (r *run) decider() apiproxy.Decider {
	switch {
	case r.knock.decides():
		return r.knock
	case r.jitter != nil:
		return r.jitter
	}
	return nil
}

func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// counted says whether a write to it is part of what a controller does for its
// objects, and not a heartbeat, a note or a question.
func counted(t trace.Target) bool {
	switch t.Resource {
	case "events", "leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews":
		return false
	}
	return true
}

// environ makes assignments of a map, in order.
func environ(values map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+"="+values[name])
	}
	return out
}

// nameOf is namespace/name, for people.
func nameOf(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
