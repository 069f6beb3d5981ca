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

	"al.essio.dev/pkg/shellescape"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/check/output"
)

// graceful is the time between SIGTERM and SIGKILL.
const graceful = 2 * time.Second

// ReadLedger runs the ledger command of the scenario, and returns the sorted lines that it
// printed. If the scenario has no ledger, it returns nil.
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

// run runs a command until it ends and returns its standard output.
func (c Cluster) run(ctx context.Context, dir string, argv []string) (string, error) {
	argv = c.substituteAll(argv)
	cmd := command(ctx, dir, argv)
	cmd.Env = append(home.Environment(c.Home), c.Env...)
	if c.Kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	}
	var stdout bytes.Buffer
	printed := output.NewTail(mostTail)
	cmd.Stderr = c.also(printed)
	cmd.Stdout = io.MultiWriter(&stdout, cmd.Stderr)
	err := cmd.Run()
	if cmd.Process != nil { // what it has left in the background would write in the next run as well
		_ = signal(cmd, syscall.SIGKILL)
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end: %w%s", shellescape.QuoteCommand(argv), context.Cause(ctx), indented(printed))
	case err != nil:
		return "", fmt.Errorf("%s: %w%s", shellescape.QuoteCommand(argv), err, indented(printed))
	}
	return stdout.String(), nil
}

// also returns a writer that copies what it receives to c.Output.
func (c Cluster) also(w io.Writer) io.Writer {
	if c.Output == nil {
		return w
	}
	return io.MultiWriter(w, c.Output)
}

// command returns a command with a separate process group, so that its children are killed
// together with it.
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

// mostTail is the number of bytes kept from the end of the output of a command.
const mostTail = 4096

// indented returns the last lines of the output, indented, for the end of an error
// message.
func indented(printed *output.Tail) string {
	const most = 20
	text := output.LastLines(printed.String(), most)
	if text == "" {
		return ""
	}
	return "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}
