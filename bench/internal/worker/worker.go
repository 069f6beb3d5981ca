// Package worker runs each bout in a separate process with a clean environment,
// and leaves no process behind.
package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/family"
	"github.com/koboshi-dev/koboshi/bench/internal/measure"
)

// grace has two uses. After an environment has stopped, its processes have this long to end by
// themselves. After SIGTERM, processes have this long before they are killed.
const grace = 5 * time.Second

// A Corner starts the bouts of one contestant, one after the other.
type Corner struct {
	Contestant contestant.Contestant

	mark string // is in the environment of every process that the corner starts
	work string
	tmp  string // TMPDIR of these processes
}

// NewCorner prepares a contestant. The caller removes the folder work
// after Close; if the caller is killed, a bout removes it.
func NewCorner(c contestant.Contestant, work string) (*Corner, error) {
	tmp, err := os.MkdirTemp(work, c.Name+"-")
	if err != nil {
		return nil, err
	}
	return &Corner{Contestant: c, mark: "KOBOSHI_BENCH_RUN=" + rand.Text(), work: work, tmp: tmp}, nil
}

// Run runs one bout to its end. It is an error if a process is left running, because that
// process would disturb the next contestant.
func (c *Corner) Run(ctx context.Context, m measure.Measure, b measure.Bout) (measure.Values, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Timeout, fmt.Errorf("not done within %s", m.Timeout))
	defer cancel()
	b.Measure, b.Mark, b.Work = m.Name, c.mark, c.work
	b.Contestant, b.Assets = c.Contestant.Name, c.Contestant.Assets
	values, root, err := c.process(ctx, b)
	relatives := family.Family{Root: root, Mark: c.mark}
	if err == nil {
		err = gone(ctx, relatives)
	}
	_, ended := relatives.End(grace)
	return values, errors.Join(err, ended)
}

// process runs the bout and returns its values and its process ID.
func (c *Corner) process(ctx context.Context, b measure.Bout) (measure.Values, int, error) {
	told, err := json.Marshal(b)
	if err != nil {
		return nil, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, Argument, string(told))
	cmd.Env = append(clean(os.Environ()), c.mark, "TMPDIR="+c.tmp)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if b.Verbose {
		cmd.Stderr = io.MultiWriter(&stderr, os.Stderr)
	}
	// The bout gets a separate session, so that Ctrl-C reaches only this process, which
	// then ends all others in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 2 * time.Second // processes that hold its output may outlive it
	// Nothing is ever written to stdin. It is closed when this process ends, which tells
	// the bout to clean up.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = stdin.Close() }()
	if err := cmd.Start(); err != nil && ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	} else if err != nil {
		return nil, 0, err
	}
	root := cmd.Process.Pid
	if err := cmd.Wait(); ctx.Err() != nil {
		return nil, root, context.Cause(ctx)
	} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, root, fmt.Errorf("%w: %s", err, tail(stderr.String()))
	}
	if b.Measure == "ten" && stderr.Len() > 0 && !b.Verbose {
		_, _ = os.Stderr.Write(stderr.Bytes())
	}
	var values measure.Values
	if err := json.Unmarshal(stdout.Bytes(), &values); err != nil {
		return nil, root, fmt.Errorf("reading the output of the measurement process: %w: %s", err, tail(stdout.String()))
	}
	return values, root, nil
}

// Close ends the processes of the corner that are still running.
func (c *Corner) Close() error {
	_, err := family.Family{Mark: c.mark}.End(grace)
	return err
}

// gone waits until the whole family has ended.
func gone(ctx context.Context, f family.Family) error {
	deadline := time.Now().Add(grace)
	for {
		left, err := f.Members()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes are still running %s after the environment stopped", len(left), grace)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// clean returns an environment without the variables that would affect envtest or a contestant.
func clean(environ []string) (kept []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case name == "USE_EXISTING_CLUSTER", name == "KUBECONFIG", name == "TMPDIR",
			strings.HasPrefix(name, "TEST_ASSET_"), strings.HasPrefix(name, "KUBEBUILDER_"),
			strings.HasPrefix(name, "ENVTEST_"), strings.HasPrefix(name, "KOBOSHI_"):
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}

// tail returns the end of an output, which contains the reason for a failure.
func tail(output string) string {
	const most = 2000
	output = strings.TrimSpace(output)
	return output[max(0, len(output)-most):]
}
