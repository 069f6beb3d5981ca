package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/exposure"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/gate"
	"github.com/koboshi-dev/koboshi/internal/check/lab/inject"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Started names the phase before the first step: the controller starts in a world that
// holds the given objects of the scenario.
const Started = "(start)"

const (
	// stepTimeout limits the duration of a step, unless the scenario sets rest.timeout.
	stepTimeout = 20 * time.Second
	// tryTimeout limits a step that tries an input, unless the creation of the object took more than
	// half of it. A controller that does not come to rest with an input gets the whole stepTimeout when
	// the finding is confirmed.
	tryTimeout = 8 * time.Second
	// faultyTimeout is the minimum time that a run with a fault allows for the world to
	// come to rest, before the stages of healing begin. A slow controller gets more time.
	faultyTimeout = 8 * time.Second
	// idle is the time for which the controller is observed after a step has come to rest.
	// catchingUp is the first part of the window before rest, in which a controller may
	// still be reading its own writes.
	idle       = 150 * time.Millisecond
	catchingUp = 150 * time.Millisecond
	// logTail is the number of bytes kept from the end of a controller's output.
	logTail = 64 << 10
)

// run is one run of a scenario.
type run struct {
	lab      *Lab
	scenario *scenario.Scenario
	lesson   *Lesson // nil while learning
	fault    *fault.Fault
	jitter   *jitter // nil for no jitter

	window  time.Duration // in this step
	usual   time.Duration // the window in steps without a quiet time of their own
	streams int
	polls   bool  // while learning: the controller opened no watch in the first run
	written int64 // the number of writes when the step began
	idle    time.Duration
	// retrying is the time at which the world was first found at rest although the controller had
	// yet to repeat a failed write; see retryLeft.
	retrying time.Time
	rounds   rounds // nil if no Pod has ended
	// unrested is the latest reason why the world was not at rest.
	unrested    rest.Reason
	trying      bool             // a run of Try or Crash
	trials      *scenario.Trials // of a run of Try
	panicked    time.Time        // when the controller was first seen to have panicked, if trying
	replacement *replacement     // nil unless the version of the controller is replaced
	converting  *converting      // nil unless the run converts objects
	heard       int64            // the length of the controller's output when the step began
	until       time.Time        // the end of the time for a run of Try; zero if there is none
	patient     bool             // whether a controller that does not react to a trial gets more time
	exitsFor    time.Duration    // how long a controller that keeps exiting is restarted; 0 for the default
	disturb     bool             // restart the controller after each step; see disturbed
	helped      bool             // the controller was restarted because a suite waited in vain
	excused     time.Time        // when the controller last waited until it could become the leader, or was loading

	began      time.Time
	log        *trace.Log
	controller *instance.Set
	output     *output.Tail // of the controller
	servers    *servers
	injection  *inject.Injection // nil for a run without a fault
	webhooks   *gate.Gate        // between the API server and the controller's webhooks; nil unless a fault closes it
	care       Care
	watched    *watched // nil unless the run watches a rest
	current    string   // the name of the step
	down       bool
	out        *evidence.Run
}

// errStop ends a run early because nothing more can be learned from it.
var errStop = errors.New("nothing more to learn")

// do runs the scenario from the baseline and returns the record of the run. Its errors
// concern the plane or the setup, not the controller.
func (r *run) do(ctx context.Context) (*evidence.Run, error) {
	if err := r.lab.plane.Reset(ctx); err != nil {
		return nil, err
	}
	if err := r.lab.renew(ctx); err != nil {
		return nil, err
	}
	if err := r.lab.caughtUp(ctx); err != nil {
		return nil, err
	}
	r.lab.route(r.slot())
	r.began = time.Now()
	r.lab.store.begin(r.began, r.scenario.Ignore)
	r.log = trace.NewLog(r.began)
	if err := r.openWebhooks(ctx); err != nil {
		return nil, err
	}
	defer r.closeWebhooks()
	r.injection = r.arm()
	r.out.Scenario = r.scenario.Name
	err := r.play(ctx)
	if r.controller != nil {
		r.controller.Close()
		r.out.Logs, r.out.Panic = scrub.Known.Text(r.output.String()), scrub.Known.Text(r.output.Panic().Text)
	}
	r.servers.stop()
	if err := r.lab.caughtUp(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	r.out.Exposed = r.exposed()
	r.out.History, r.out.Entries, r.out.Took = r.lab.store.History(), r.log.Entries(), time.Since(r.began)
	r.lab.elections.Learn(r.out)
	err = r.placed(r.explained(err))
	var gone *GoneError
	if errors.Is(err, errStop) || errors.Is(err, inject.ErrOver) {
		err = nil // the controller is judged by what it did until then
	} else if r.lesson != nil && errors.As(err, &gone) {
		r.out.Gone, err = scrub.Known.Text(gone.Error()), nil
	}
	if why := shortage(r.out); why != "" && r.lesson != nil && r.out.Inconclusive == "" {
		r.out.Inconclusive = "the controller exited because of the machine: " + why
	}
	return r.out, err
}

// shortage returns the error with which an instance of the controller exited because the machine
// had run out of something, or "".
func shortage(out *evidence.Run) string {
	for _, e := range out.Entries {
		if e.Process != nil && e.Process.What == "exited" {
			if why := output.Shortage(e.Process.Output); why != "" {
				return why
			}
		}
	}
	return ""
}

// exposed returns the places at which values of Secrets became readable in this run.
func (r *run) exposed() []exposure.Place {
	said := ""
	if r.output != nil {
		said = r.output.String()
	}
	return r.lab.store.exposed(r.scenario.Objects(), said)
}

// placed adds the step to an error that reports only a timeout, because the error would otherwise
// look like a failure of the plane.
func (r *run) placed(err error) error {
	var step *StepError
	var setup *SetupError
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &step) || errors.As(err, &setup) {
		return err
	}
	why := ""
	if r.unrested != "" {
		why = fmt.Sprintf(" (%s)", r.unrested)
	}
	return fmt.Errorf("scenario %s, step %s took too long%s: %w; allow more time with rest.timeout", r.scenario.Name, cmp.Or(r.current, "(given objects)"), why, err)
}

// explained returns the cause of an error in a learning run: if the controller keeps
// exiting, then no step succeeds and the world does not come to rest.
func (r *run) explained(err error) error {
	var step *StepError
	var setup *SetupError
	failed := errors.As(err, &step) || errors.As(err, &setup) || restless(r.out)
	if r.lesson != nil || r.controller == nil || !failed {
		return err
	}
	if gone := r.controller.Gone(); gone != nil {
		return gone
	}
	return err
}

func (r *run) play(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	switch {
	case r.replacement != nil:
		return r.replaceVersions(ctx)
	case r.converting != nil:
		return r.convert(ctx)
	}
	return r.steps(ctx)
}

// steps performs the steps of the scenario.
func (r *run) steps(ctx context.Context) error {
	for i := range r.scenario.Steps {
		if err := r.step(ctx, &r.scenario.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// prepare starts the external endpoints and creates the scenario's given objects.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.servers, err = startServers(ctx, r); err != nil {
		return &SetupError{err}
	}
	if err := r.installFirst(ctx); err != nil {
		return err
	}
	if err := r.scenario.Prepare(ctx, r.cluster()); err != nil {
		return &SetupError{fmt.Errorf("scenario %s: %w", r.scenario.Name, err)}
	}
	return nil
}

func (r *run) cluster() scenario.Cluster {
	return r.lab.cluster(r.scenario.Dir, r.servers.urls(), r.servers.environment(true))
}

// begin starts the controller and waits until it is up and at rest.
func (r *run) begin(ctx context.Context) error {
	var args []string
	if r.fault != nil && r.fault.Kind == fault.LoseLease {
		args = r.lab.config.Subject.Election
	}
	env := r.servers.environment(false)
	r.output = output.NewTail(logTail)
	r.controller = instance.New(ctx, instance.Config{
		Log: r.log, Decider: r.decider(), Output: r.output, Upstream: r.lab.identity,
		Spec: func(slot int, kubeconfig []byte) (process.Spec, error) {
			return r.lab.spec(slot, kubeconfig, args, env)
		},
		Release: r.lab.release(ctx, r.log), Hint: r.lab.withoutView(), ExitsFor: r.exitsFor,
		Name: r.replacement.name(), Identity: r.replacement.identity(), Decides: r.replacement.decides(),
	})
	r.injection.Attach(r.controller)
	return r.milestone(ctx, Started, func(context.Context) error {
		if err := r.controller.Start(r.slot()); err != nil {
			return &SetupError{err}
		}
		webhooks := r.lab.trusted(r.slot()).Webhooks
		if r.converting != nil {
			webhooks = withoutMutating(webhooks)
		}
		if len(webhooks) == 0 {
			return nil
		}
		// The time that the controller takes to load does not count, so rest has a time limit of
		// its own. With the time limit of the step, a slow start would end the run as if the plane
		// had failed.
		if _, err := r.rest(ctx, stepTimeout); err != nil {
			return err
		}
		return r.callWebhooks(ctx, webhooks)
	}, nil)
}

// openWebhooks leads the API server through a gate to the controller's webhooks, if the fault of the run
// will close it.
func (r *run) openWebhooks(ctx context.Context) (err error) {
	if r.fault == nil || r.fault.Kind != fault.WebhookDown {
		return nil
	}
	if r.webhooks, err = gate.New(ctx, r.lab.serverAddress()); err == nil {
		r.lab.gate.Store(r.webhooks)
	}
	return err
}

// closeWebhooks ends what openWebhooks began.
func (r *run) closeWebhooks() {
	r.lab.gate.Store(nil)
	r.webhooks.Stop()
}

// callWebhooks makes the API server call the controller's webhooks from now on. If the API
// server called the webhooks before the controller can answer, it would refuse the given
// objects.
func (r *run) callWebhooks(ctx context.Context, webhooks []unstructured.Unstructured) error {
	for i := range webhooks {
		if err := r.lab.create(ctx, webhooks[i].DeepCopy()); err != nil {
			return &SetupError{err}
		}
	}
	return nil
}

// step performs one step.
func (r *run) step(ctx context.Context, step *scenario.Step) error {
	return r.milestone(ctx, step.Name, func(ctx context.Context) error {
		away := step.WhileDown || r.injection.DownDuring(step.Name)
		if away {
			r.down = true
			r.controller.Kill()
		}
		cluster := r.cluster()
		if step.Suite {
			return r.suite(ctx, step)
		}
		err := r.meanwhile(ctx, func(ctx context.Context) error { return step.Do(ctx, cluster) })
		if away {
			r.down = false
			if err := r.controller.Restart(0); err != nil {
				return err
			}
		}
		if err != nil {
			return r.stepFailed(step, err)
		}
		if r.injection.HoldsLonger() {
			return nil // the conditions may depend on what is held back
		}
		if err := r.await(ctx, step); err != nil {
			if _, gone := r.controller.Activity(); gone != nil {
				return gone // the exit of the controller caused err
			}
			if r.lesson == nil {
				return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: err, late: true}
			}
			r.out.Steps[len(r.out.Steps)-1].Failed = append(r.out.Steps[len(r.out.Steps)-1].Failed, err.Error())
		}
		return nil
	}, step)
}

// stepFailed classifies a step that could not be performed. In a learning run, a failed
// step is a mistake in the scenario; in any other run, it makes the run inconclusive.
func (r *run) stepFailed(step *scenario.Step, err error) error {
	if r.trying {
		return r.tryFailed(step, err)
	}
	if r.lesson == nil {
		return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: err}
	}
	r.out.Inconclusive = fmt.Sprintf("step %s could not be performed: %v", step.Name, err)
	return errStop
}

// GoneError reports a controller that keeps exiting on its own.
type GoneError = instance.GoneError

// A StepError reports a step that fails even without a fault.
type StepError struct {
	Scenario, Step string
	Err            error

	late bool // the step was performed, but its conditions were not met in time
}

func (e *StepError) Error() string {
	return fmt.Sprintf("scenario %s, step %s: %v", e.Scenario, e.Step, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// milestone performs an action, waits for rest, applies the fault if it is due at rest, and
// compares the result.
func (r *run) milestone(ctx context.Context, name string, do func(context.Context) error, step *scenario.Step) error {
	revision, _ := r.lab.store.seen()
	at := evidence.Step{Name: name, Began: revision, BeganAt: r.since()}
	r.out.Steps = append(r.out.Steps, at)
	m := &r.out.Steps[len(r.out.Steps)-1]
	r.current, r.heard = name, r.output.Written()
	r.setWindow(name)
	r.log.Record(trace.Entry{Step: &trace.Step{Name: name, What: "started", Revision: revision}})
	r.injection.Enter(name)
	if now, err := r.controller.Activity(); err == nil {
		r.written = now.Writes
	}
	limited, cancel := context.WithTimeout(ctx, r.allowed(step)+r.handover()+r.injection.RetryDue())
	err := do(limited)
	cancel()
	var late *StepError
	if err != nil && (!errors.As(err, &late) || !late.late) {
		return err
	}
	if err := r.settle(ctx, m, step); err != nil {
		return err
	}
	// If a controller never comes to rest in a learning run, the run reports this, and not the
	// conditions that failed.
	loops := m.Restless && r.lesson == nil
	if late != nil && !loops {
		return late
	}
	if step != nil && !r.injection.HoldsLonger() && !loops {
		if err := r.expectations(ctx, m, step); err != nil {
			return err
		}
	}
	if m.Rested == 0 {
		m.Rested, _ = r.lab.store.seen()
	}
	m.RestedAt = r.since()
	r.log.Record(trace.Entry{Step: &trace.Step{Name: name, What: "settled", Revision: m.Rested}})
	if err := r.tryOver(m); err != nil {
		return err
	}
	if r.watched != nil && r.watched.step == name {
		return r.watchRest(ctx, m)
	}
	if err := r.readLedger(ctx, m); err != nil {
		return err
	}
	if err := r.watchIdle(ctx, m); err != nil {
		return err
	}
	return r.stopEarly(m)
}

// setWindow sets the window for a step. A step may need a longer window than the others.
func (r *run) setWindow(name string) {
	if r.usual == 0 {
		r.usual = r.window
	}
	r.window = max(r.usual, quietTime(r.scenario, name))
}

// settle waits for rest, and heals the world if it does not match the reference.
func (r *run) settle(ctx context.Context, m *evidence.Step, step *scenario.Step) error {
	timeout := r.timeout()
	if r.lesson != nil {
		timeout = r.faultyTimeout()
	}
	rested, err := r.calm(ctx, m.Name, timeout)
	if err != nil {
		return err
	}
	if m.Suite != nil && m.Suite.Failed != "" {
		m.Restless, m.Faulty = !rested, r.injection.AppliedIn(m.Name)
		return nil // the suite did not do everything, so the state cannot match
	}
	if r.injection.Due(m.Name) {
		if rested, err = r.strike(ctx, m, step); err != nil {
			return err
		}
	}
	if r.disturb && rested && m.Name != Started {
		if rested, err = r.disturbAt(ctx, m.Name); err != nil {
			return err
		}
	}
	if m.Restless = !rested; m.Restless {
		m.Unrest = string(r.unrested)
	}
	if r.lesson != nil && !r.injection.HoldsLonger() {
		err = r.heal(ctx, m, step)
	}
	m.Faulty = r.injection.AppliedIn(m.Name)
	return err
}

// strike applies a fault once the world is at rest and matches the reference.
func (r *run) strike(ctx context.Context, m *evidence.Step, step *scenario.Step) (rested bool, err error) {
	reached, err := r.reaches(ctx, m.Name, step, r.lesson.Patience)
	if err != nil {
		return false, err
	}
	if !reached {
		return false, r.inconclusiveStep(m)
	}
	for {
		done, err := r.injection.Strike(ctx)
		if err != nil {
			return false, err
		}
		if done {
			return r.calm(ctx, m.Name, r.faultyTimeout())
		}
		if _, err := r.rest(ctx, stepTimeout); err != nil {
			return false, r.injection.Refuse(err)
		}
	}
}

// inconclusiveStep ends a run that differs from the reference although no fault has been
// applied.
func (r *run) inconclusiveStep(m *evidence.Step) error {
	r.out.Strayed = &evidence.Strayed{Step: m.Name, Differences: r.lesson.Reference.Differences(m.Name, r.world(m.Name))}
	r.out.Inconclusive = "step " + m.Name + " ended in a different state than in the runs without a fault"
	if r.fault != nil {
		r.out.Inconclusive += ", before the fault was applied"
	}
	return errStop
}

// calm waits for rest, releases everything that was held back until then, and waits again.
func (r *run) calm(ctx context.Context, step string, timeout time.Duration) (rested bool, err error) {
	for {
		if rested, err = r.rest(ctx, timeout); err != nil || !r.injection.Release(step) {
			return rested, err
		}
	}
}

// expectations notes the expectations that do not hold. In a learning run, an expectation
// that does not hold is an error in the scenario, not a finding.
func (r *run) expectations(ctx context.Context, m *evidence.Step, step *scenario.Step) error {
	deadline := time.Now().Add(patience)
	for {
		store := r.lab.store.Touched()
		failed := r.unmet(ctx, step)
		switch {
		case len(failed) == 0:
			return nil
		case r.lesson != nil: // heal has already waited
			m.Failed = append(m.Failed, failed...)
			return nil
		case time.Now().After(deadline):
			return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: fmt.Errorf("an expectation does not hold even without a fault: %s", failed[0])}
		}
		select {
		case <-store:
		case <-time.After(r.window):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unmet returns the expectations of a step that do not hold now.
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

// watchIdle collects the writes of the controller while there is nothing to do. In a
// learning run, it also collects the writes in the window before the step came to rest,
// except in catchingUp, the first part of that window.
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
		if e.At >= from && e.Call != nil && request.IsWork(e.Call) {
			m.Idle = append(m.Idle, e)
		}
	}
	return nil
}

// stopEarly ends a run that can reveal nothing more. Once the controller has recovered from
// a kill, further steps would only repeat what a separate fault shows: a restart while the
// world is at rest.
func (r *run) stopEarly(m *evidence.Step) error {
	switch {
	case m.Restless, m.Healed == evidence.Never:
		return errStop
	case m.Faulty && r.fault != nil && r.fault.Kind.Kills() && m.Healed != evidence.Poke && len(r.scenario.Endpoints) == 0:
		return errStop
	}
	return nil
}

// timeout returns how long a step may take. A step with a quiet time of its own gets more
// time, because each of its pauses may be that long.
func (r *run) timeout() time.Duration {
	t := stepTimeout
	if r.trying && r.current != Started && r.current != scenario.CreateStep {
		t = min(max(tryTimeout, 2*r.created()), stepTimeout)
	}
	if given := time.Duration(r.scenario.Rest.Timeout); given > 0 {
		t = given
	}
	return t + tries*quietTime(r.scenario, r.current)
}

// created returns how long it took to come to rest after the object was created. It shows how fast the
// controller and the machine are.
func (r *run) created() time.Duration {
	for i := range r.out.Steps {
		if step := &r.out.Steps[i]; step.Name == scenario.CreateStep && step.RestedAt > 0 {
			return step.RestedAt - step.BeganAt
		}
	}
	return 0
}

// allowed returns how long the action of a step and its conditions may take. The time for a suite
// leaves room for ending it.
func (r *run) allowed(step *scenario.Step) time.Duration {
	switch {
	case step == nil || step.Timeout == 0:
		return r.timeout()
	case step.Suite:
		return time.Duration(step.Timeout) + stepTimeout
	}
	return time.Duration(step.Timeout) + r.timeout()
}

func (r *run) faultyTimeout() time.Duration {
	if r.lesson.Streams == 0 {
		return max(faultyTimeout, 2*rest.LongestRound) // the controller has to poll twice
	}
	return max(faultyTimeout, tries*r.window)
}

func (r *run) since() time.Duration { return time.Since(r.lab.store.since()) }

// decider returns the decider for the proxies: the fault, the jitter, or nil.
func (r *run) decider() apiproxy.Decider {
	switch {
	case r.injection.Decides():
		return r.injection
	case r.jitter != nil:
		return r.jitter
	}
	return nil
}

// environ returns the entries of a map as NAME=VALUE, ordered by name.
func environ(values map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+"="+values[name])
	}
	return out
}
