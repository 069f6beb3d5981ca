package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// line is one line of a program's output, with the time at which it was complete.
type line struct {
	text string
	at   time.Time
}

// lines collects the output of a program.
type lines struct {
	mu      sync.Mutex
	all     []line
	partial []byte
	more    chan struct{} // closed when a line is added
}

// Write implements io.Writer.
func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, data...)
	added := false
	for {
		text, rest, complete := strings.Cut(string(l.partial), "\n")
		if !complete {
			break
		}
		l.all = append(l.all, line{text, time.Now()})
		l.partial, added = []byte(rest), true
	}
	if added && l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(data), nil
}

// since returns the lines from a position on, and a channel that is closed when more lines arrive.
func (l *lines) since(position int) ([]line, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return l.all[position:len(l.all):len(l.all)], l.more
}

func (l *lines) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// tail returns the last lines, which contain the reason for a failure.
func (l *lines) tail() string {
	const most = 25
	all, _ := l.since(max(0, l.len()-most))
	var text strings.Builder
	for _, one := range all {
		text.WriteString(one.text + "\n")
	}
	return text.String()
}

// program is a running child process.
type program struct {
	name     string
	cmd      *exec.Cmd
	out, err *lines        // standard output and standard error
	exited   chan struct{} // closed when it has ended and all of its output was read
}

// launch starts a program in a process group of its own, so that Ctrl-C ends only the
// benchmark, which then ends its programs in order.
func launch(name string, cmd *exec.Cmd) (*program, error) {
	p := &program{name: name, cmd: cmd, out: &lines{}, err: &lines{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second // processes that hold its output may outlive it
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // cmd.ProcessState has the result
		close(p.exited)
	}()
	return p, nil
}

// await searches an output from a position on, and returns the first line that matches and the
// position of that line.
func (p *program) await(ctx context.Context, output *lines, position int, what string, matches func(string) bool) (line, int, error) {
	for {
		over := p.over()
		more, changed := output.since(position)
		for _, one := range more {
			if matches(one.text) {
				return one, position, nil
			}
			position++
		}
		if over {
			return line{}, 0, p.failed(fmt.Errorf("%s ended (%s) before it printed %s", p.name, p.cmd.ProcessState, what))
		}
		select {
		case <-changed:
		case <-p.exited:
		case <-ctx.Done():
			return line{}, 0, p.failed(fmt.Errorf("%s did not print %s: %w", p.name, what, context.Cause(ctx)))
		}
	}
}

func (p *program) over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// failed adds the end of the program's output to an error.
func (p *program) failed(err error) error {
	return fmt.Errorf("%w\nthe end of its standard output:\n%sthe end of its standard error:\n%s", err, p.out.tail(), p.err.tail())
}

// stop sends SIGTERM, waits until the program has ended, and kills it if this takes too long.
func (p *program) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// execute runs a program to its end.
func execute(ctx context.Context, dir string, env []string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 2*time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}
