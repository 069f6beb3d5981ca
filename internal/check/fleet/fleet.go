// Package fleet runs labs as child processes, because one process can hold only one plane,
// and a plane that fails must not affect anything else.
//
//	check ──▶ Fleet ──▶ Worker ──JSON on stdin──▶ Serve ──▶ lab.Lab
//	                       ◀────JSON on stdout────
//
// Lessons and traces are passed as files, because every lab needs the lessons, and most
// traces are never read.
package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Options configure a Fleet.
type Options struct {
	// Program is the command line that starts a lab. The program calls Serve.
	Program []string
	// Dir is a folder for temporary files.
	Dir string
	// Lab configures all labs. The fleet sets the fields Key, Number and Dir of Lab.
	Lab lab.Config
	// Hurry is closed when labs are to be killed instead of stopped gracefully. It may be
	// nil.
	Hurry <-chan struct{}
}

// Fleet manages the lab processes.
type Fleet struct {
	numbers int // the number of the last lab that was started
	options Options
	load    func(context.Context) (busy float64, known bool) // measureLoad, except in tests

	mu      sync.Mutex // guards workers, because labs are also started while others work
	workers []*Worker
}

// New returns a fleet without labs.
func New(o Options) *Fleet {
	o.Lab.Key = make([]byte, 32)
	_, _ = rand.Read(o.Lab.Key) // Read never fails
	return &Fleet{options: o, load: measureLoad}
}

// firstSibling is the number of the first lab of another fleet in the same folder.
const firstSibling = 100

// Sibling returns a fleet without labs, which have a changed configuration. The labs of both fleets can
// use the same lessons.
func (f *Fleet) Sibling(change func(*lab.Config)) *Fleet {
	s := &Fleet{options: f.options, numbers: firstSibling, load: f.load}
	change(&s.options.Lab)
	return s
}

// Len returns the number of labs.
func (f *Fleet) Len() int { return len(f.all()) }

// all returns the labs that were started so far.
func (f *Fleet) all() []*Worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.workers
}

// Grow starts labs until there are n. If some labs cannot be started, for example because memory is
// scarce, Grow succeeds as long as the fleet has at least one lab.
func (f *Fleet) Grow(ctx context.Context, n int) error {
	have := f.Len()
	if n <= have {
		return nil
	}
	started := make([]*Worker, n-have)
	failed := make([]error, n-have)
	var wait sync.WaitGroup
	for i := range started {
		f.numbers++ // never used again, because the folder of a lab has its number
		number := f.numbers
		wait.Go(func() { started[i], failed[i] = f.start(ctx, number) })
	}
	wait.Wait()
	f.mu.Lock()
	f.workers = append(f.workers, slices.DeleteFunc(started, func(w *Worker) bool { return w == nil })...)
	f.mu.Unlock()
	return f.short(ctx, failed)
}

// Shrink ends labs until n are left that were not given up, those that were started last first. No lab may be at
// work.
func (f *Fleet) Shrink(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wait sync.WaitGroup
	f.workers = slices.DeleteFunc(slices.Clone(f.workers), func(w *Worker) bool {
		switch {
		case w.givenUp != nil:
			return false
		case n > 0:
			n--
			return false
		}
		wait.Go(w.stop)
		return true
	})
	wait.Wait()
}

// short returns the first error of starting labs, or nil if the fleet has at least one lab. If the
// subject caused an error, short returns this error even if the fleet has labs.
func (f *Fleet) short(ctx context.Context, failed []error) error {
	var first error
	for _, err := range failed {
		var setup *SetupError
		if errors.As(err, &setup) {
			return err
		}
		first = cmp.Or(first, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.Len() > 0 {
		return nil
	}
	return first
}

func (f *Fleet) start(ctx context.Context, number int) (*Worker, error) {
	w := &Worker{fleet: f, number: number, dir: filepath.Join(f.options.Dir, fmt.Sprintf("lab-%d", number))}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	if err := w.launch(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// Stop stops all labs and waits until they are gone.
func (f *Fleet) Stop() {
	var wait sync.WaitGroup
	for _, w := range f.all() {
		wait.Go(w.stop)
	}
	wait.Wait()
}

// An ExhaustedError reports that all labs were given up, because each of them kept failing.
type ExhaustedError struct{ Said string }

func (e *ExhaustedError) Error() string { return "the planes kept failing: " + e.Said }

// Each calls do once for each i from 0 to n-1. The labs share these calls and run them
// concurrently. The first error cancels the remaining calls. If all labs were given up,
// Each returns an ExhaustedError.
func (f *Fleet) Each(ctx context.Context, n int, do func(ctx context.Context, w *Worker, i int) error) error {
	return f.Share(ctx, Work{Calls: n, Do: do})
}

// exhausted returns the error for a fleet whose labs were all given up.
func (f *Fleet) exhausted() error {
	said := "none could be started"
	for _, w := range f.all() {
		if w.givenUp != nil {
			said = w.givenUp.Reason()
		}
	}
	return &ExhaustedError{said}
}

// Learn runs a scenario without faults and stores the lesson for all labs. If the lab fails
// twice, Learn returns a LabError.
func (w *Worker) Learn(ctx context.Context, sc *scenario.Scenario, seed uint64, generated bool) (*Lesson, error) {
	return w.learn(ctx, learnRequest{Scenario: sc, Seed: seed, Generated: generated})
}

// LearnPath runs a scenario that gets no faults; see lab.LearnPath.
func (w *Worker) LearnPath(ctx context.Context, sc *scenario.Scenario, seed uint64) (*Lesson, error) {
	return w.learn(ctx, learnRequest{Scenario: sc, Seed: seed, Path: true})
}

// Crash confirms that the controller crashes with an input; see lab.Crash.
func (w *Worker) Crash(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) (*Lesson, error) {
	r := w.repeat(t, window, seed)
	return w.taught(ctx, request{Crash: r}, r.Trace)
}

// Again confirms what a trial has shown; see lab.Again.
func (w *Worker) Again(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) (*Lesson, error) {
	r := w.repeat(t, window, seed)
	return w.taught(ctx, request{Again: r}, r.Trace)
}

// Kept confirms that the controller does not undo what a change has done; see lab.Kept.
func (w *Worker) Kept(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) (*Lesson, error) {
	r := w.repeat(t, window, seed)
	return w.taught(ctx, request{Kept: r}, r.Trace)
}

func (w *Worker) repeat(t *scenario.Trials, window time.Duration, seed uint64) *repeatRequest {
	return &repeatRequest{Trials: t, Window: window, Seed: seed, Trace: w.traceFile()}
}

func (w *Worker) learn(ctx context.Context, r learnRequest) (*Lesson, error) {
	r.Trace = w.traceFile()
	return w.taught(ctx, request{Learn: &r}, r.Trace)
}

// taught makes a request that is answered with a lesson.
func (w *Worker) taught(ctx context.Context, r request, file string) (*Lesson, error) {
	answer, err := w.request(ctx, r)
	if err != nil {
		return nil, err
	}
	if answer.Lesson == nil {
		return nil, fmt.Errorf("plane %d returned no result for the runs without a fault", w.number)
	}
	answer.Lesson.Trace = readTrace(file)
	return writeLesson(w.fleet.options.Dir, answer.Lesson)
}

// Unlearnt returns a lesson for a scenario that could not be learnt, with which it can be upgraded.
func (f *Fleet) Unlearnt(sc *scenario.Scenario) (*Lesson, error) {
	return writeLesson(f.options.Dir, &lab.Lesson{
		Scenario: sc, Reference: &judge.Reference{Scenario: sc, Mask: &state.Mask{Configured: sc.Ignore}},
	})
}

// Try changes one field of an object after the other, in one run, and returns what the controller
// did with each. It begins no further step once the time within is over.
func (w *Worker) Try(ctx context.Context, t *scenario.Trials, window, within time.Duration, seed uint64) ([]inputs.Tried, error) {
	answer, err := w.request(ctx, request{Try: &tryRequest{Trials: t, Window: window, Within: within, Seed: seed}})
	if err != nil {
		return nil, err
	}
	return answer.Tried, nil
}

// Upgrade replaces the old version of the controller by the new one in a scenario. Unless kill is nil, it
// kills the new version there.
func (w *Worker) Upgrade(ctx context.Context, l *Lesson, kind lab.UpgradeKind, kill *fault.Fault, expected []string, seed uint64) (*lab.Upgraded, error) {
	file := w.traceFile()
	answer, err := w.request(ctx, request{Upgrade: &upgradeRequest{Lesson: l.file, Kind: kind, Kill: kill, Expected: expected, Seed: seed, Trace: file}})
	if err != nil {
		return nil, err
	}
	if answer.Upgraded == nil {
		return nil, fmt.Errorf("plane %d returned no result for an upgrade", w.number)
	}
	answer.Upgraded.Trace = readTrace(file)
	return answer.Upgraded, nil
}

// Convert sends objects of one kind through its versions. It begins no further object once the time within
// is over.
func (w *Worker) Convert(ctx context.Context, kind *scenario.Convertible, within time.Duration, seed uint64) (*lab.Converted, error) {
	answer, err := w.request(ctx, request{Convert: &convertRequest{Kind: kind, Within: within, Seed: seed}})
	if err != nil {
		return nil, err
	}
	if answer.Converted == nil {
		return nil, fmt.Errorf("plane %d returned no result for a conversion", w.number)
	}
	return answer.Converted, nil
}

// Knock runs a scenario with one fault.
func (w *Worker) Knock(ctx context.Context, l *Lesson, f fault.Fault, seed uint64, care lab.Care) (*Outcome, error) {
	file := w.traceFile()
	out, err := w.outcome(ctx, request{Knock: &knockRequest{Lesson: l.file, Fault: f, Care: care, Seed: seed, Trace: file}})
	if err != nil {
		return nil, err
	}
	out.Trace = readTrace(file)
	return out, nil
}

// Control runs a scenario without a fault and judges it like a run with a fault.
func (w *Worker) Control(ctx context.Context, l *Lesson, seed uint64) (*Outcome, error) {
	return w.outcome(ctx, request{Control: &knockRequest{Lesson: l.file, Seed: seed}})
}

// Watch runs a scenario without a fault up to a step, and watches the rest after it.
func (w *Worker) Watch(ctx context.Context, l *Lesson, step string, horizon time.Duration, seed uint64) (*lab.Watched, error) {
	file := w.traceFile()
	answer, err := w.request(ctx, request{Watch: &watchRequest{Lesson: l.file, Step: step, Horizon: horizon, Seed: seed, Trace: file}})
	if err != nil {
		return nil, err
	}
	if answer.Watched == nil {
		return nil, fmt.Errorf("plane %d returned no result for a watched rest", w.number)
	}
	answer.Watched.Trace = readTrace(file)
	return answer.Watched, nil
}

// outcome makes a run. If the lab fails twice, the run is inconclusive.
func (w *Worker) outcome(ctx context.Context, r request) (*Outcome, error) {
	answer, err := w.request(ctx, r)
	var failed *LabError
	if errors.As(err, &failed) {
		return &Outcome{Inconclusive: failed.Reason()}, nil
	}
	if err != nil {
		return nil, err
	}
	if answer.Outcome == nil {
		return nil, fmt.Errorf("plane %d returned no verdict", w.number)
	}
	return answer.Outcome, nil
}

// traceFile returns the name of a file for the trace of a run with findings.
func (w *Worker) traceFile() string {
	w.traces++
	return filepath.Join(w.dir, fmt.Sprintf("trace-%d.jsonl", w.traces))
}
