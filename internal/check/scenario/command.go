package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// graceful is how long a command has between being told to end and being killed.
const graceful = 2 * time.Second

// ReadLedger runs the scenario's ledger, and returns the lines that it printed,
// sorted. It is nil if the scenario names none.
func ReadLedger(ctx context.Context, s *Scenario, c Cluster) ([]string, error) {
	if len(s.Ledger) == 0 {
		return nil, nil
	}
	out, err := c.run(ctx, s.Dir, s.Ledger)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: ledger: %w", s.Name, err)
	}
	lines := []string{}
	for line := range strings.Lines(out) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// run runs a command to its end and returns what it printed.
func (c Cluster) run(ctx context.Context, dir string, argv []string) (string, error) {
	argv = c.substituteAll(argv)
	cmd := command(ctx, dir, argv)
	cmd.Env = append(environment(), c.Env...)
	if c.Kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	}
	var stdout bytes.Buffer
	output := &tail{}
	cmd.Stdout = &both{&stdout, output}
	cmd.Stderr = output
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: did not end: %w%s", quoteCommand(argv), context.Cause(ctx), output.indented())
	case err != nil:
		return "", fmt.Errorf("%s: %w%s", quoteCommand(argv), err, output.indented())
	}
	return stdout.String(), nil
}

// command is one in a process group of its own, so that what it starts ends with
// it.
func command(ctx context.Context, dir string, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signal(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = graceful
	return cmd
}

func signal(cmd *exec.Cmd, s syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// environment is that of this process, but for what leads to another cluster.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "KUBECONFIG=") || strings.HasPrefix(entry, "PORT=")
	})
}

func quoteCommand(argv []string) string {
	parts := make([]string, len(argv))
	for i, part := range argv {
		if parts[i] = part; part == "" || strings.ContainsAny(part, " \t\n'\"$`\\&|;<>()*?#~") {
			parts[i] = "'" + strings.ReplaceAll(part, "'", `'\''`) + "'"
		}
	}
	return strings.Join(parts, " ")
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const mostTail = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if extra := len(t.data) - mostTail; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

// indented is the last lines, for the end of an error.
func (t *tail) indented() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.data), ""))
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	const most = 10
	return "\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
}

// both writes to two, of which neither fails.
type both struct {
	first  *bytes.Buffer
	second *tail
}

func (b *both) Write(p []byte) (int, error) {
	b.first.Write(p)
	return b.second.Write(p)
}
