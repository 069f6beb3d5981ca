package check

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// fleet is the labs, each a process of its own: one process can hold one plane,
// and a plane that dies takes nothing else with it.
type fleet struct {
	config  lab.Config
	workers []*worker
}

// worker is a lab as it is seen from here. It does one thing at a time.
type worker struct {
	number int
	dir    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *output.Tail
	traces int
}

// start starts the labs that learn.
func (c *check) start(ctx context.Context) error {
	n := c.Workers
	if n == 0 {
		n = size(runtime.NumCPU(), lab.Cost{}, 0, 0)
	}
	c.Observer.Phase("starting " + count(n, "plane"))
	c.fleet.config = lab.Config{Subject: c.Subject, Profile: c.Profile, OldServer: c.OldServer, Key: make([]byte, 32)}
	if _, err := rand.Read(c.fleet.config.Key); err != nil {
		return err
	}
	return c.grow(ctx, n)
}

// enlarge starts as many labs more as the machine has room for, now that it is
// known what one costs, and as there is work for.
func (c *check) enlarge(ctx context.Context, work int) error {
	have := len(c.fleet.workers)
	if c.Workers > 0 {
		return nil
	}
	n := size(runtime.NumCPU(), c.dearest(), free(), work)
	if n <= have {
		return nil
	}
	c.Observer.Phase(fmt.Sprintf("starting %s more", count(n-have, "plane")))
	return c.grow(ctx, n)
}

// grow starts labs until there are n.
func (c *check) grow(ctx context.Context, n int) error {
	have := len(c.fleet.workers)
	c.fleet.workers = append(c.fleet.workers, make([]*worker, n-have)...)
	var group errgroup.Group
	for i := have; i < n; i++ {
		group.Go(func() (err error) {
			c.fleet.workers[i], err = c.startWorker(ctx, c.fleet.config, i+1)
			return err
		})
	}
	return group.Wait()
}

func (c *check) startWorker(ctx context.Context, config lab.Config, number int) (*worker, error) {
	w := &worker{number: number, dir: filepath.Join(c.Dir, fmt.Sprintf("lab-%d", number)), stderr: output.NewTail(labTail)}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	config.Number, config.Dir = number, w.dir
	// It ends when its input does, also when this process is killed.
	w.cmd = exec.Command(c.Program[0], c.Program[1:]...)
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

func (f *fleet) stop() {
	var wait sync.WaitGroup
	for _, w := range f.workers {
		if w != nil {
			wait.Go(w.stop)
		}
	}
	wait.Wait()
}

// each does n things, as many at once as there are labs, in order.
func (f *fleet) each(ctx context.Context, n int, do func(ctx context.Context, w *worker, i int) error) error {
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

// labTail is how much of what a lab writes to standard error is kept, in bytes.
const labTail = 8 << 10

// stopGrace is how long a lab may take to end its plane and the controller.
const stopGrace = 5 * time.Second

func (w *worker) stop() {
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

// A LabError is a lab that ended by itself.
type LabError struct {
	Number int
	Said   string
}

func (e *LabError) Error() string {
	return fmt.Sprintf("plane %d ended by itself: %s; nothing can be said of the controller, try again, with --workers=1 if memory is short", e.Number, e.Said)
}

// ask sends a request and waits for its answer. When ctx ends, the lab is in the
// middle of something and is ended.
func (w *worker) ask(ctx context.Context, r request) (*reply, error) {
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

func (w *worker) learn(ctx context.Context, sc *scenario.Scenario, seed uint64, generated bool) (*lab.Lesson, error) {
	file := w.traceFile()
	answer, err := w.ask(ctx, request{Learn: &learnRequest{Scenario: sc, Seed: seed, Generated: generated, Trace: file}})
	if err != nil {
		return nil, err
	}
	if answer.Lesson == nil {
		return nil, errors.New("a lab answered without a lesson")
	}
	answer.Lesson.Trace = readTrace(file)
	return answer.Lesson, nil
}

func (w *worker) knock(ctx context.Context, l *lesson, f fault.Fault, seed uint64) (*knocked, error) {
	file := w.traceFile()
	out, err := w.knocked(ctx, request{Knock: &knockRequest{Lesson: l.file, Fault: f, Seed: seed, Trace: file}})
	if err != nil {
		return nil, err
	}
	out.Trace = readTrace(file)
	return out, nil
}

// control is a run without a fault, after which all should be as learnt.
func (w *worker) control(ctx context.Context, l *lesson, seed uint64) (*knocked, error) {
	return w.knocked(ctx, request{Control: &knockRequest{Lesson: l.file, Seed: seed}})
}

func (w *worker) knocked(ctx context.Context, r request) (*knocked, error) {
	answer, err := w.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if answer.Knocked == nil {
		return nil, errors.New("a lab answered without a verdict")
	}
	return answer.Knocked, nil
}

// traceFile is where a lab puts the trace of a run in which it found something.
func (w *worker) traceFile() string {
	w.traces++
	return filepath.Join(w.dir, fmt.Sprintf("trace-%d.jsonl", w.traces))
}
