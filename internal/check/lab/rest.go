package lab

import (
	"context"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

const (
	// shortestWindow and longestWindow limit the window that is learned. The window is the time
	// without a change after which the world is considered to be at rest.
	shortestWindow = 100 * time.Millisecond
	longestWindow  = 4 * time.Second
	// firstWindow is the window of the first run, from which later windows are learned. firstWindow
	// is longer than common pauses: many controllers add a finalizer, and then requeue after 750 ms
	// or a second.
	firstWindow = 1200 * time.Millisecond
	// shortestSuite is the shortest window of a scenario with a test suite. While a suite runs, most
	// pauses are those of the suite, so the window is less certain.
	shortestSuite = 500 * time.Millisecond
	// briefPause limits the pauses that are learned from polling controllers, and is the
	// shortest window of a run with jitter.
	briefPause = 350 * time.Millisecond
)

// rest waits until the world is at rest, and reports whether it came to rest before
// the timeout. rest does not poll: every change wakes it.
func (r *run) rest(ctx context.Context, timeout time.Duration) (bool, error) {
	began := time.Now()
	limit := newTimeLimit(began, timeout)
	for {
		store, api := r.lab.store.Touched(), r.controller.Touched()
		v, err := r.unrest(began)
		if v.Excused > 0 { // the timeout starts once the controller is the leader and has loaded
			r.excused = time.Now()
			limit.excuse(r.excused, v.Excused)
		}
		r.unrested = v.Why
		limit.grow(r.lab.store.lastCreated())
		switch {
		case err != nil:
			return false, err
		case r.hasCrashed():
			return true, nil // tryOver ends the run
		case v.AtRest():
			if err := r.lab.caughtUp(ctx); err != nil {
				return false, err
			}
			if v, err = r.unrest(began); err != nil {
				return false, err
			}
			if !v.AtRest() {
				break
			}
			if v.Left = r.retryLeft(); v.Left > 0 {
				limit.extend(time.Now(), v.Left)
				break
			}
			if v.Left = r.considering(began); limit.allows(time.Now(), v.Left, r.isPatient()) {
				break
			}
			r.vain()
			if ended, err := r.endPods(ctx); err != nil || !ended {
				return err == nil, err
			}
			limit.jobsEnded(time.Now())
			continue
		case time.Now().After(limit.deadline):
			return r.onlyBehind(&v), nil
		}
		left := min(v.Left, time.Until(limit.deadline)+time.Millisecond)
		if !r.panicked.IsZero() {
			left = min(left, time.Until(r.panicked.Add(panicTime)))
		}
		if err := r.sleep(ctx, left, store, api); err != nil {
			return false, err
		}
	}
}

// onlyBehind reports whether the world is at rest, except that a controller has not observed a generation.
// Whether it ever does is not part of being at rest.
func (r *run) onlyBehind(v *rest.Verdict) bool {
	if v.Why != rest.Behind {
		return false
	}
	r.vain()
	return true
}

// sleep waits until the time is over, or one of the signals fires.
func (r *run) sleep(ctx context.Context, left time.Duration, store, api <-chan struct{}) error {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-store:
	case <-api:
	case <-timer.C:
	case <-ctx.Done():
	case <-r.lab.Failed():
		return errPlane
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// unrest decides whether the world is at rest. unrest ignores changes that are older than began.
func (r *run) unrest(began time.Time) (rest.Verdict, error) {
	a, err := r.controller.Activity()
	if err != nil {
		return rest.Verdict{}, err
	}
	o, s := r.observe(&a, began, time.Now()), r.restSettings()
	if r.answered(&o, &s) {
		o.Polls, s.Window = false, min(s.Window, firstWindow)
	}
	v := rest.Decide(o, s)
	if v.Excused == 0 { // a process that is still loading has an excuse
		err = r.unheard(&a)
	}
	return v, err
}

// observe collects everything on which the decision about rest depends.
func (r *run) observe(a *instance.Activity, began, now time.Time) rest.Observation {
	succession := r.succession(a, now)
	away, back := r.injection.Away()
	_, moved := r.lab.store.seen()
	for _, from := range []time.Time{began, a.Begun} {
		if moved.Before(from) {
			moved = from
		}
	}
	return rest.Observation{
		Succession: succession, Ending: a.Ending, Away: away, Back: back,
		Unheard: a.Unheard, Starting: a.Starting, Discovering: a.Discovering, InFlight: a.InFlight, Streams: a.Streams,
		Unfinished: len(r.lab.store.find(rest.IsUnfinished)), Pending: len(r.lab.store.find(rest.IsPending)),
		Still: now.Sub(moved), Up: now.Sub(a.Begun), Asked: now.Sub(a.LastRequest),
		Polls: r.onlyPolls(a), Round: a.AskedAgain.After(moved),
		Wrote: a.Writes != r.written, WroteSinceUp: a.Writes > 0,
		Down: r.down, Knocked: r.injection.Applied() || r.replacement.killed(), Behind: r.behind(),
	}
}

func (r *run) restSettings() rest.Settings {
	s := rest.Settings{Window: r.window, Streams: r.streams, Timeout: r.timeout()}
	if r.polls {
		s.Streams = 0
	}
	if r.care.Tail && r.fault.Kind.Kills() && r.injection.AppliedIn(r.current) {
		s.Tail = r.lesson.Tail
	}
	if r.replacement.killed() {
		s.Tail = r.replacement.tail
	}
	// Only in a scenario's first run is there no earlier run to learn from. Trials have the window of
	// another scenario.
	s.Learning = r.lesson == nil && !r.trying && r.jitter == nil && !r.disturb && len(r.out.Steps) > 1 && !r.down
	return s
}

// onlyPolls reports whether the controller opens no watches.
func (r *run) onlyPolls(a *instance.Activity) bool {
	if r.lesson != nil {
		return r.lesson.Streams == 0
	}
	return r.polls || r.jitter == nil && a.Streams == 0
}

// reaches waits until the world is at rest and matches the reference, and reports whether
// this happened within the given time.
func (r *run) reaches(ctx context.Context, name string, step *scenario.Step, within time.Duration) (bool, error) {
	deadline := time.Now().Add(within)
	for {
		store := r.lab.store.Touched()
		// If a late request triggers the fault only now, calm also releases what the fault
		// holds back.
		if _, err := r.calm(ctx, name, time.Until(deadline)+r.window); err != nil {
			return false, err
		}
		if ok, err := r.matches(ctx, name, step); ok || err != nil {
			return ok, err
		}
		if late := r.excused.Add(within); late.After(deadline) {
			deadline = late
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		if len(r.scenario.Ledger) > 0 {
			left = min(left, r.window) // a change outside the cluster does not wake the loop
		}
		timer := time.NewTimer(left)
		select {
		case <-store:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
}

// matches reports whether the cluster and the external resources match the reference after
// the step, and whether all expectations of the step hold.
func (r *run) matches(ctx context.Context, name string, step *scenario.Step) (bool, error) {
	if len(r.lesson.Reference.Differences(name, r.world(name))) > 0 || len(r.unmet(ctx, step)) > 0 {
		return false, nil
	}
	if len(r.scenario.Ledger) == 0 {
		return true, nil
	}
	lines, err := scenario.ReadLedger(ctx, r.scenario, r.cluster())
	return r.lesson.Reference.LedgerRight(name, lines), err
}

// world returns the current canonical state of the cluster, to be compared with the
// reference after a step.
func (r *run) world(step string) state.World {
	history := r.lab.store.History()
	revision, _ := r.lab.store.seen()
	return r.lesson.Reference.Mask.CanonicalAfter(step, history.At(revision))
}
