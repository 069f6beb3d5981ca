// Package process starts the programs of the bench, reports when one of them ends
// unexpectedly, and reads their CPU and memory use from the kernel.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// logTail limits how much of the log's end is shown when a program fails.
const logTail = 2000

// Process is a running program.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	ended     chan struct{}
	err       error // the error from Wait; must be read only after ended is closed
}

// Start starts a program. The program's output is written to a file in dir with the given
// name. The program does not outlive this process.
func Start(dir, name, binary string, args ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p.cmd = exec.Command(binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Failure describes an unexpected end of the program, with the last part of its output.
func (p *Process) Failure() error {
	text, _ := os.ReadFile(p.log)
	text = text[max(0, len(text)-logTail):]
	return fmt.Errorf("%s ended: %v; the end of its output:\n%s", p.name, p.err, strings.TrimSpace(string(text)))
}

// AwaitFile waits until the program has written its ready file.
func (p *Process) AwaitFile(ctx context.Context, path string) error {
	for {
		_, err := os.Stat(path)
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("waiting for %s: %w", p.name, err)
		}
		select {
		case <-p.ended:
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w", p.name, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop asks the program to end, and kills it if it has not ended within the grace period.
func (p *Process) Stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // the program may have ended already
	select {
	case <-p.ended:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}
