package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/output"
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
	printed := output.NewTail(mostTail)
	cmd.Stdout = io.MultiWriter(&stdout, printed)
	cmd.Stderr = printed
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: did not end: %w%s", quoteCommand(argv), context.Cause(ctx), indented(printed))
	case err != nil:
		return "", fmt.Errorf("%s: %w%s", quoteCommand(argv), err, indented(printed))
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

// mostTail is how much of what a command prints is kept, in bytes.
const mostTail = 4096

// indented is the last lines of what was printed, for the end of an error.
func indented(printed *output.Tail) string {
	text := strings.TrimSpace(printed.String())
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	const most = 10
	return "\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
}
