package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/envtest/assets"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// suiteTail is the number of bytes kept from the end of the output of a suite.
const suiteTail = 64 << 10

// suite runs the test suite of a step. A suite waits for the controller, so a fault must not hold
// anything back until the suite ends: it ends when everything else is at rest.
func (r *run) suite(ctx context.Context, step *scenario.Step) error {
	env, err := suiteEnvironment()
	if err != nil {
		return &SetupError{err}
	}
	cluster := r.cluster()
	printed := output.NewTail(suiteTail)
	cluster.Env, cluster.Output = append(cluster.Env, env...), printed
	allowed := cmp.Or(time.Duration(step.Timeout), r.timeout())
	limited, cancel := context.WithTimeoutCause(ctx, allowed, fmt.Errorf("it took longer than %s", allowed))
	defer cancel()
	running, stop := context.WithCancelCause(limited)
	defer stop(nil)
	var failed error
	done, began := make(chan struct{}), time.Now()
	go func() { failed = step.Do(running, cluster); close(done) }()
	for {
		store, api := r.lab.store.Touched(), r.controller.Touched()
		left, err := r.attend(ctx, began)
		if err != nil {
			stop(err)
			<-done
			return err
		}
		timer := time.NewTimer(left)
		select {
		case <-done:
			timer.Stop()
			return r.suiteEnded(ctx, step, scrub.Known.Text(output.Plain(printed.String())), failed)
		case <-store:
		case <-api:
		case <-timer.C:
		case <-r.lab.Failed():
			stop(errPlane)
			<-done
			return errPlane
		}
		timer.Stop()
	}
}

// attend does what has to be done while a suite waits: at rest, it ends what the fault holds back, and
// the Pods of Jobs. left is how long to wait before the next look, in case no event comes before.
func (r *run) attend(ctx context.Context, began time.Time) (left time.Duration, err error) {
	v, err := r.unrest(began)
	if err != nil || !v.AtRest() {
		return v.Left, err
	}
	if err := r.lab.caughtUp(ctx); err != nil {
		return 0, err
	}
	if r.injection.Release(r.current) {
		return r.window, nil
	}
	if left := r.retryLeft(); left > 0 {
		return left, nil
	}
	if ended, err := r.endPods(ctx); ended || err != nil {
		return r.window, err
	}
	return r.endStall(ctx)
}

// endStall restarts the controller if the suite waits for it in vain: nothing has happened for longer
// than the suite itself ever pauses. If the suite goes on then, the controller was at fault.
func (r *run) endStall(ctx context.Context) (left time.Duration, err error) {
	if r.lesson == nil || r.lesson.Reference.Suite == nil || r.helped || !r.injection.Applied() || r.injection.Holds() {
		return time.Hour, nil // until the next event
	}
	so, now := &evidence.Run{History: r.lab.store.History(), Entries: r.log.Entries()}, r.since()
	step := r.out.Steps[len(r.out.Steps)-1]
	step.Suite = &evidence.Suite{EndedAt: now, Ended: so.History.Last()}
	stall := r.lesson.Reference.Suite.StallIn(so, step) + r.care.Later
	due := max(judge.Moved(so, now)+stall, rest.RetryDue(so.Entries))
	if due > now {
		return due - now, nil
	}
	r.helped = true
	r.injection.End()
	r.log.Record(trace.Entry{Fault: &trace.Fault{What: string(evidence.Restart)}})
	return r.window, r.restart(ctx)
}

// suiteEnded records the end of a suite. A suite that fails without a fault teaches nothing; a suite
// that fails after a fault is judged.
func (r *run) suiteEnded(ctx context.Context, step *scenario.Step, printed string, failed error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.lab.caughtUp(ctx); err != nil {
		return err
	}
	m := &r.out.Steps[len(r.out.Steps)-1]
	m.Suite = &evidence.Suite{EndedAt: r.since(), Printed: printed}
	m.Suite.Ended, _ = r.lab.store.seen()
	if failed == nil {
		return nil
	}
	m.Suite.Failed = scrub.Known.Text(output.Plain(failed.Error()))
	switch {
	case r.lesson == nil:
		return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: fmt.Errorf("the test suite fails without a fault, so nothing can be learned from it: %w", failed)}
	case r.fault != nil && !r.injection.Applied():
		r.out.Inconclusive = "the test suite failed before the fault was applied: " + m.Suite.Failed
	case r.watched != nil:
		r.out.Inconclusive = "the test suite failed, although no fault was injected: " + m.Suite.Failed
	default:
		return nil
	}
	return errStop
}

// learnSuite adds what the last of the runs without a fault shows about a test suite.
func (l *Lesson) learnSuite(last *evidence.Run) {
	if l.Reference != nil {
		l.Notes = append(l.Notes, l.Reference.Suite.Notes()...)
	}
	for _, s := range last.Steps {
		if s.Suite != nil {
			l.SuiteOutput = s.Suite.Printed
		}
	}
}

// suiteEnvironment returns the variables with which suites find the cluster and a kubectl. A suite
// based on envtest uses the cluster instead of starting one, and go test does not reuse a result.
func suiteEnvironment() ([]string, error) {
	folder, err := assets.Folder()
	if err != nil {
		return nil, err
	}
	path := folder
	if given := os.Getenv("PATH"); given != "" {
		path = given + string(filepath.ListSeparator) + folder
	}
	return []string{"PATH=" + path, "KUBEBUILDER_ASSETS=" + folder, "USE_EXISTING_CLUSTER=true", "GOFLAGS=-count=1", "NO_COLOR=1"}, nil
}
