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
	// shortestWindow and longestWindow limit the window that is learnt. The window is the
	// time without a change after which the world counts as at rest.
	shortestWindow = 100 * time.Millisecond
	longestWindow  = 4 * time.Second
	// firstWindow is the window of the first run, from which later windows are learnt.
	firstWindow = 700 * time.Millisecond
	// silence is the time without a request that must also pass before the world counts as
	// at rest. If a controller never stops sending requests, rest waits for at most
	// maxAsking windows, or until the controller has been up for upTimeout.
	silence   = 40 * time.Millisecond
	maxAsking = 6
	// upTimeout limits how long a controller may take to open its watches. A controller
	// that only polls never opens a watch.
	upTimeout = 3 * time.Second
	// longestRound limits how long rest waits for the next round of a controller that
	// polls.
	longestRound = 10 * time.Second
	// lingering limits how long the first run waits for a controller that has not written
	// anything in a step yet. Only the first run waits that long, because no earlier run
	// shows how long the controller pauses.
	lingering = 4 * time.Second
	// waking is the longest time between a restarted controller's last request, usually
	// a watch, and its first write. client-go checks its caches one after the other, each
	// only every 100 ms.
	waking = 300 * time.Millisecond
)

// rest waits until the world is at rest, and reports whether it came to rest before
// the timeout. It does not poll: every change wakes it.
func (r *run) rest(ctx context.Context, timeout time.Duration) (bool, error) {
	began := time.Now()
	deadline := began.Add(timeout)
	for {
		store, api := r.lab.store.touched.Next(), r.controller.touched.Next()
		left, excused, err := r.unrest(began)
		if excused > 0 { // the timeout starts once the controller is the leader and has loaded
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

// unrest returns how long the world has to stay unchanged until it counts as at rest; 0
// means that it is at rest. unrest ignores changes that are older than began. excused is
// the part of that time for which the controller is not responsible, because it is waiting
// for a Lease or loading.
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
	// Each of the next two waits may take at most half of the timeout.
	half := r.timeout() / 2
	if round := min(longestRound, half) - still; round > left && !r.down && r.onlyPolls(&a) && !a.askedAgain.After(moved) {
		left = round
	}
	if linger := min(lingering, half) - still; linger > left && r.learningPauses() && a.writes == r.written {
		left = linger
	}
	if asking := silence - now.Sub(a.lastRequest); asking > left && (still < maxAsking*r.window || now.Sub(a.begun) < upTimeout) {
		left = asking
	}
	if asleep := waking - min(now.Sub(a.lastRequest), now.Sub(a.begun)); asleep > left && a.writes == 0 && r.knock.applied() && now.Sub(a.begun) < upTimeout {
		left = asleep
	}
	return max(left, 0), 0, nil
}

// learningPauses reports whether the run is in a step of a scenario's first run.
func (r *run) learningPauses() bool {
	return r.lesson == nil && r.jitter == nil && len(r.out.Steps) > 1 && !r.down
}

// loading reports whether a process was started but has made no request yet. How long an
// interpreter takes to load depends mostly on the load of the machine. While the
// interpreter is loading, the process does not know the state of the world.
func (r *run) loading(a *activity, now time.Time) bool {
	return a.unheard > 0 && now.Sub(a.begun) < max(r.timeout(), stepTimeout)
}

// unfinished reports whether upstream's Job controller has yet to record the result of a
// finished Job, or of a finished Pod of a Job. The Job controller checks for results only
// once a second.
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

// onlyPolls reports whether the controller opens no watches. A controller without watches
// is at rest when it has sent the same requests twice since the last change, because it
// did nothing between these requests.
func (r *run) onlyPolls(a *activity) bool {
	if r.lesson != nil {
		return r.lesson.Streams == 0
	}
	return r.polls || r.jitter == nil && a.streams == 0
}

// reaches waits until the world is at rest and matches the reference, and reports whether
// this happened within the given time.
func (r *run) reaches(ctx context.Context, name string, step *scenario.Step, within time.Duration) (bool, error) {
	deadline := time.Now().Add(within)
	for {
		store := r.lab.store.touched.Next()
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
	history := r.lab.store.history()
	revision, _ := r.lab.store.seen()
	return r.lesson.Reference.Mask.CanonicalAfter(step, history.At(revision))
}
