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
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// Options configure a Fleet.
type Options struct {
	// Program is the command line that starts a lab. The program calls Serve.
	Program []string
	// Dir is a folder for temporary files.
	Dir string
	// Lab configures all labs. The fleet sets the fields Key, Number and Dir of Lab.
	Lab lab.Config
}

// Fleet manages the lab processes.
type Fleet struct {
	options Options
	workers []*Worker
}

// New returns a fleet without labs.
func New(o Options) *Fleet {
	o.Lab.Key = make([]byte, 32)
	_, _ = rand.Read(o.Lab.Key) // Read never fails
	return &Fleet{options: o}
}

// Len returns the number of labs.
func (f *Fleet) Len() int { return len(f.workers) }

// Grow starts labs until there are n.
func (f *Fleet) Grow(ctx context.Context, n int) error {
	have := len(f.workers)
	if n <= have {
		return nil
	}
	f.workers = append(f.workers, make([]*Worker, n-have)...)
	var group errgroup.Group
	for i := have; i < n; i++ {
		group.Go(func() (err error) {
			f.workers[i], err = f.start(ctx, i+1)
			return err
		})
	}
	return group.Wait()
}

func (f *Fleet) start(ctx context.Context, number int) (*Worker, error) {
	w := &Worker{
		number: number, lessons: f.options.Dir, dir: filepath.Join(f.options.Dir, fmt.Sprintf("lab-%d", number)),
		stderr: output.NewTail(labTail),
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	config := f.options.Lab
	config.Number, config.Dir = number, w.dir
	// The lab exits when its input ends, even if this process is killed.
	w.cmd = exec.Command(f.options.Program[0], f.options.Program[1:]...)
	w.cmd.Stderr = w.stderr
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = json.NewDecoder(out)
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a lab: %w", err)
	}
	if _, err := w.ask(ctx, request{Setup: &config}); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// Stop stops all labs and waits until they are gone.
func (f *Fleet) Stop() {
	var wait sync.WaitGroup
	for _, w := range f.workers {
		if w != nil {
			wait.Go(w.stop)
		}
	}
	wait.Wait()
}

// Each calls do once for each i from 0 to n-1. The labs share these calls and run them
// concurrently. The first error cancels the remaining calls.
func (f *Fleet) Each(ctx context.Context, n int, do func(ctx context.Context, w *Worker, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for _, w := range f.workers {
		group.Go(func() error {
			for i := range next {
				if err := do(ctx, w, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

const (
	// labTail is the number of bytes kept from the end of a lab's standard error.
	labTail = 8 << 10
	// stopGrace limits how long a lab may take to stop its plane and the controller.
	stopGrace = 5 * time.Second
)

// Worker represents one lab in the parent process. It handles one request at a time.
type Worker struct {
	number  int
	lessons string // folder of the lessons
	dir     string // folder of this lab
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	stderr  *output.Tail
	traces  int
}

func (w *Worker) stop() {
	_ = w.in.Close()
	ended := make(chan struct{})
	go func() { _ = w.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopGrace):
		_ = w.cmd.Process.Kill()
		<-ended
	}
}

// ask sends a request and waits for its answer. When ctx ends, ask also ends the lab,
// because a run cannot be interrupted in any other way.
func (w *Worker) ask(ctx context.Context, r request) (*reply, error) {
	defer context.AfterFunc(ctx, func() { _ = w.in.Close() })()
	answer := &reply{}
	err := json.NewEncoder(w.in).Encode(r)
	if err == nil {
		err = w.out.Decode(answer)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &LabError{w.number, cmp.Or(output.LastLine(w.stderr.String()), err.Error())}
	case answer.Error != "":
		return nil, answer.err()
	}
	return answer, nil
}

// Learn runs a scenario without faults and stores the lesson for all labs.
func (w *Worker) Learn(ctx context.Context, sc *scenario.Scenario, seed uint64, generated bool) (*Lesson, error) {
	file := w.traceFile()
	answer, err := w.ask(ctx, request{Learn: &learnRequest{Scenario: sc, Seed: seed, Generated: generated, Trace: file}})
	if err != nil {
		return nil, err
	}
	if answer.Lesson == nil {
		return nil, fmt.Errorf("plane %d returned no result for the runs without a fault", w.number)
	}
	answer.Lesson.Trace = readTrace(file)
	return writeLesson(w.lessons, answer.Lesson)
}

// Knock runs a scenario with one fault. With tail, a controller that was killed is observed
// for longer.
func (w *Worker) Knock(ctx context.Context, l *Lesson, f fault.Fault, seed uint64, tail bool) (*Outcome, error) {
	file := w.traceFile()
	out, err := w.outcome(ctx, request{Knock: &knockRequest{Lesson: l.file, Fault: f, Tail: tail, Seed: seed, Trace: file}})
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
	answer, err := w.ask(ctx, request{Watch: &watchRequest{Lesson: l.file, Step: step, Horizon: horizon, Seed: seed, Trace: file}})
	if err != nil {
		return nil, err
	}
	if answer.Watched == nil {
		return nil, fmt.Errorf("plane %d returned no result for a watched rest", w.number)
	}
	answer.Watched.Trace = readTrace(file)
	return answer.Watched, nil
}

func (w *Worker) outcome(ctx context.Context, r request) (*Outcome, error) {
	answer, err := w.ask(ctx, r)
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
