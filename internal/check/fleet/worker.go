package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
)

const (
	// labTail is the number of bytes kept from the end of a lab's standard error.
	labTail = 8 << 10
	// stopGrace limits how long a lab may take to stop its plane and the controller.
	stopGrace = 5 * time.Second
	// mostFailures is the number of failures in a row after which a lab is given up, and
	// mostReplaced the number of replacements. Without these limits, a lab that fails because
	// memory is scarce would fail, and be replaced, forever.
	mostFailures, mostReplaced = 4, 20
	// interruption is the waiting time after a lab has exited, in which the signal that ended the
	// lab may also reach this process.
	interruption = 300 * time.Millisecond
)

// Worker represents one lab in the parent process. It handles one request at a time. A lab
// that fails is replaced:
//
//	launch ──▶ running ──request fails──▶ stopped ──▶ launch (up to mostFailures in a row)
//	                                         └──▶ given up
type Worker struct {
	fleet  *Fleet
	number int
	dir    string // folder of this lab
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *output.Tail
	traces int

	failures int // since the last answer
	replaced int
	givenUp  *LabError
}

// GivenUp reports whether the lab kept failing, so that it makes no more runs.
func (w *Worker) GivenUp() bool { return w.givenUp != nil }

// launch starts the process of the lab, and waits until its plane is ready.
func (w *Worker) launch(ctx context.Context) error {
	config := w.fleet.options.Lab
	config.Number, config.Dir = w.number, w.dir
	program := w.fleet.options.Program
	// The lab exits when its input ends, even if this process is killed.
	cmd := exec.Command(program[0], program[1:]...)
	cmd.SysProcAttr = ownGroup(view.Attributes())
	cmd.Env = withoutProxy(cmd.Environ())
	w.stderr = output.NewTail(labTail)
	cmd.Stderr = w.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a lab: %w", err)
	}
	w.cmd, w.in, w.out = cmd, in, json.NewDecoder(out)
	if _, err := w.ask(ctx, request{Setup: &config}); err != nil {
		w.stop()
		return err
	}
	return nil
}

// withoutProxy returns an environment in which requests to Services do not go through a proxy. If the plane
// emulates an older Kubernetes, its API server calls webhooks by the host names of their Services.
func withoutProxy(environ []string) []string {
	values := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	return append(environ, "NO_PROXY="+strings.TrimPrefix(cmp.Or(values["NO_PROXY"], values["no_proxy"])+",.svc", ","))
}

// stop stops the lab, and does nothing if there is none.
func (w *Worker) stop() {
	if w.cmd == nil {
		return
	}
	cmd := w.cmd
	w.cmd = nil
	_ = w.in.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
		return
	case <-w.fleet.options.Hurry:
	case <-time.After(stopGrace):
	}
	_ = cmd.Process.Kill()
	<-ended
}

// request sends a request to the lab. If the lab fails, request replaces it and sends the
// request again, once.
func (w *Worker) request(ctx context.Context, r request) (*reply, error) {
	answer, err := w.try(ctx, r)
	var failed *LabError
	if !errors.As(err, &failed) || w.givenUp != nil {
		return answer, err
	}
	return w.try(ctx, r)
}

// try sends a request to the lab. If the lab fails, try replaces it.
func (w *Worker) try(ctx context.Context, r request) (*reply, error) {
	if w.givenUp != nil {
		return nil, w.givenUp
	}
	answer, err := w.ask(ctx, r)
	var failed *LabError
	if !errors.As(err, &failed) {
		w.failures = 0
		return answer, err
	}
	w.replace(ctx, failed)
	return nil, err
}

// replace starts another lab in place of one that failed, or gives up.
func (w *Worker) replace(ctx context.Context, failed *LabError) {
	w.stop()
	for {
		w.failures++
		if w.replaced++; w.failures >= mostFailures || w.replaced > mostReplaced || ctx.Err() != nil {
			w.givenUp = failed
			return
		}
		err := w.launch(ctx)
		if err == nil {
			return
		}
		if !errors.As(err, &failed) {
			failed = &LabError{Number: w.number, Said: err.Error(), alive: true}
		}
	}
}

// ask sends a request and waits for its answer. When ctx ends, ask also ends the lab,
// because a run cannot be interrupted in any other way.
func (w *Worker) ask(ctx context.Context, r request) (*reply, error) {
	in := w.in
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	answer := &reply{}
	err := json.NewEncoder(in).Encode(r)
	if err == nil {
		err = w.out.Decode(answer)
	}
	if err != nil {
		wait(ctx, interruption)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &LabError{Number: w.number, Said: cmp.Or(output.Reason(w.stderr.String()), err.Error())}
	case answer.Error != "":
		return nil, answer.err(w.number)
	}
	return answer, nil
}

// wait waits until ctx ends, but not longer than the given time.
func wait(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(most):
	}
}
