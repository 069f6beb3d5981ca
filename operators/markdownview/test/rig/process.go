package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// stopGrace is the time that a program has for exiting after a signal.
	stopGrace = 20 * time.Second
	// logTail is the number of bytes shown from the end of a failed program's log.
	logTail = 4000
)

// Process is a running program.
type Process struct {
	// PID is the number of the process.
	PID int
	// Log is the file with its output.
	Log string

	name  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// run starts a program, and appends its output to a log file with its name. The program
// ends at the latest when this process ends.
func (r *Rig) run(name, program string, env []string, args ...string) (*Process, error) {
	p := &Process{name: name, Log: filepath.Join(r.dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.PID = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // failure reports how it ended
		close(p.ended)
	}()
	return p, nil
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill kills the program and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// Stop asks the program to exit, and kills it after stopGrace.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.ended:
	case <-time.After(stopGrace):
		p.Kill()
	}
}

// failure returns an error for a program that has ended unexpectedly.
func (p *Process) failure() error {
	return fmt.Errorf("%s ended: %v; the end of its output:\n%s", p.name, p.cmd.ProcessState, p.tail())
}

func (p *Process) tail() string {
	text, _ := os.ReadFile(p.Log)
	return strings.TrimSpace(string(text[max(0, len(text)-logTail):]))
}

// ready waits until a started program is ready.
func (p *Process) ready(ctx context.Context, log io.Writer, is func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := Await(ctx, startLimit, p.name+" to be ready", is)
	if err == nil {
		return nil
	}
	select {
	case <-p.ended:
		err = p.failure()
	default:
		if log != nil {
			_, _ = fmt.Fprintf(log, "%s is not ready; the end of its output:\n%s\n", p.name, p.tail())
		}
	}
	return err
}

// exists returns a condition that holds if a file exists.
func exists(path string) func(context.Context) error {
	return func(context.Context) error {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("there is no %s", filepath.Base(path))
		} else if err != nil {
			return err
		}
		return nil
	}
}
