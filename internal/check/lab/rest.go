package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

const (
	// shortestWindow is the least time without a change after which a world is
	// taken to be at rest, longestWindow the most that is learnt.
	shortestWindow = 100 * time.Millisecond
	longestWindow  = 4 * time.Second
	// firstWindow is that of the first run, from which the window is learnt.
	firstWindow = 700 * time.Millisecond
	// silence is how long a controller may not ask for anything either; who asks
	// all the time is not waited for longer than this many windows, or until it has
	// been up for upTimeout.
	silence    = 40 * time.Millisecond
	mostAsking = 6
	// upTimeout is how long a controller may take until it watches something. One
	// that only asks from time to time never does.
	upTimeout = 3 * time.Second
	// longestRound is how long a controller that watches nothing may take until it
	// asks again. One that does so more rarely is not waited for.
	longestRound = 10 * time.Second
	// lingering is how long the first run waits for a controller that has not written
	// anything in a step yet: what it has still to do, no pause before has told.
	lingering = 4 * time.Second
	// waking is how long after its last request, a watch most often, one that was
	// started anew may take until it writes: client-go asks every 100 ms only whether
	// its caches are full, one after the other.
	waking = 300 * time.Millisecond
)

// rest waits until all has come to rest, and says whether it did. Nothing is
// polled: whoever changes something wakes it.
func (r *run) rest(ctx context.Context, timeout time.Duration) (bool, error) {
	began := time.Now()
	deadline := began.Add(timeout)
	for {
		store, api := r.lab.store.touched.next(), r.controller.touched.next()
		left, excused, err := r.unrest(began)
		if excused > 0 { // the time is for who leads, and for who has loaded
			r.excused = time.Now()
			deadline = r.excused.Add(excused + timeout)
		}
		switch {
		case err != nil:
			return false, err
		case left <= 0:
			if err := r.lab.caughtUp(ctx); err != nil {
				return false, err
			}
			if left, _, err = r.unrest(began); err != nil || left <= 0 {
				return err == nil, err
			}
		case time.Now().After(deadline):
			return false, nil
		}
		timer := time.NewTimer(min(left, time.Until(deadline)+time.Millisecond))
		select {
		case <-store:
		case <-api:
		case <-timer.C:
		case <-ctx.Done():
		case <-r.lab.Failed():
			err = errPlane
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			return false, err
		}
	}
}

// unrest is how long nothing may happen any more for the world to be at rest; 0
// means that it is. Nothing that happened before began counts. excused is how much of
// it is not the controller's: it may wait for a Lease, or is being loaded.
func (r *run) unrest(began time.Time) (left, excused time.Duration, err error) {
	a, err := r.controller.activity()
	if err != nil {
		return 0, 0, err
	}
	now := time.Now()
	if excused = r.succession(&a, now); excused > 0 {
		return excused, excused, nil
	}
	if r.loading(&a, now) {
		return r.window, r.window, nil
	}
	if a.starting || a.inFlight > 0 || len(r.lab.store.find(unfinished)) > 0 {
		return r.window, 0, nil
	}
	if up := now.Sub(a.begun); !r.down && !r.polls && a.streams < r.streams && (up < upTimeout || a.unheard > 0) {
		return r.window, 0, nil
	}
	_, moved := r.lab.store.seen()
	for _, from := range []time.Time{began, a.begun} {
		if moved.Before(from) {
			moved = from
		}
	}
	still := now.Sub(moved)
	left = r.window - still
	// Neither may take all the time that there is to come to rest.
	half := r.timeout() / 2
	if round := min(longestRound, half) - still; round > left && !r.down && r.asksOnly(&a) && !a.askedAgain.After(moved) {
		left = round
	}
	if linger := min(lingering, half) - still; linger > left && r.learnsPauses() && a.writes == r.written {
		left = linger
	}
	if asking := silence - now.Sub(a.lastRequest); asking > left && (still < mostAsking*r.window || now.Sub(a.begun) < upTimeout) {
		left = asking
	}
	if asleep := waking - min(now.Sub(a.lastRequest), now.Sub(a.begun)); asleep > left && a.writes == 0 && r.knock.applied() && now.Sub(a.begun) < upTimeout {
		left = asleep
	}
	return max(left, 0), 0, nil
}

// learnsPauses says that this is a step of the first run of a scenario.
func (r *run) learnsPauses() bool {
	return r.lesson == nil && r.jitter == nil && len(r.out.Steps) > 1 && !r.down
}

// loading says that a process was started and has not asked for anything yet. How
// long an interpreter takes for that depends on the machine's other work most of all,
// and nobody has told it of the world yet.
func (r *run) loading(a *activity, now time.Time) bool {
	return a.unheard > 0 && now.Sub(a.begun) < max(r.timeout(), stepTimeout)
}

// unfinished are Jobs, and Pods of them, of which upstream's controller still has
// to say what became of them: it looks once a second.
func unfinished(ref state.Ref, object state.Object) bool {
	status, _ := object["status"].(map[string]any)
	if ref.Kind == "Pod" && ref.Group == "" && (status["phase"] == "Succeeded" || status["phase"] == "Failed") {
		metadata, _ := object["metadata"].(map[string]any)
		finalizers, _ := metadata["finalizers"].([]any)
		return slices.Contains(finalizers, any("batch.kubernetes.io/job-tracking"))
	}
	if ref.Kind != "Job" || ref.Group != "batch" {
		return false
	}
	counting, _ := status["uncountedTerminatedPods"].(map[string]any)
	reached := map[string]bool{}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["status"] == "True" {
			reached[fmt.Sprint(c["type"])] = true
		}
	}
	decided := reached["SuccessCriteriaMet"] || reached["FailureTarget"]
	return len(counting) > 0 || decided && !reached["Complete"] && !reached["Failed"]
}

// asksOnly says that the controller watches nothing. It is at rest when it has
// asked the same twice since the last change, and so has done nothing in between.
func (r *run) asksOnly(a *activity) bool {
	if r.lesson != nil {
		return r.lesson.Streams == 0
	}
	return r.polls || r.jitter == nil && a.streams == 0
}

// becomes waits until the world at rest is as in the reference, and says whether
// it came to that within the time.
func (r *run) becomes(ctx context.Context, name string, step *scenario.Step, within time.Duration) (bool, error) {
	deadline := time.Now().Add(within)
	for {
		store := r.lab.store.touched.next()
		// The request at which the fault is applied may come only now.
		if _, err := r.calm(ctx, name, time.Until(deadline)+r.window); err != nil {
			return false, err
		}
		if right, err := r.right(ctx, name, step); right || err != nil {
			return right, err
		}
		if late := r.excused.Add(within); late.After(deadline) {
			deadline = late
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		if len(r.scenario.Ledger) > 0 {
			left = min(left, r.window) // nobody tells when something changes outside
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

// right says whether the world is as in the reference after that step, in the
// cluster and outside, and as the scenario expects.
func (r *run) right(ctx context.Context, name string, step *scenario.Step) (bool, error) {
	want := r.lesson.Reference.World(name)
	if len(want.Diff(r.world())) > 0 || len(r.unmet(ctx, step)) > 0 {
		return false, nil
	}
	if len(r.scenario.Ledger) == 0 {
		return true, nil
	}
	lines, err := scenario.ReadLedger(ctx, r.scenario, r.cluster())
	return r.lesson.Reference.LedgerRight(name, lines), err
}

// world is the canonical state of now.
func (r *run) world() state.World {
	history := r.lab.store.history()
	revision, _ := r.lab.store.seen()
	return r.lesson.Reference.Mask.Canonical(history.At(revision))
}
