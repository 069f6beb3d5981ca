package checktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Exit codes of koboshi check.
const (
	exitClean = 0
	exitFound = 1
)

// stopWithin is the time that a check gets to stop its control planes.
const stopWithin = 10 * time.Second

// A missingError reports that there is no program koboshi.
type missingError struct {
	text string
	skip bool // whether the test may be skipped
}

func (e *missingError) Error() string { return e.text }

// find returns the path of koboshi.
func find(getenv func(string) string) (string, *missingError) {
	if named := getenv("KOBOSHI"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", &missingError{text: fmt.Sprintf("KOBOSHI names no program: %v; correct the variable, or unset it to use koboshi on the PATH", err)}
		}
		return path, nil
	}
	path, err := exec.LookPath("koboshi")
	if err != nil {
		const text = "there is no program koboshi on the PATH, so the controller is not checked; " +
			"run go install github.com/koboshi-dev/koboshi/cmd/koboshi@latest, or set KOBOSHI to the path of the program"
		return "", &missingError{text: text, skip: getenv("CI") == "" || getenv("CI") == "false"}
	}
	return path, nil
}

// check runs koboshi check and reads its report. An error means that there is no result.
func check(ctx context.Context, program string, subject Subject, s settings) (report, error) {
	cmd := exec.CommandContext(ctx, program, s.arguments(subject)...)
	cmd.Dir = subject.dir
	// Koboshi must not be killed, because it has to stop its control planes.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWithin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	line := "koboshi " + strings.Join(cmd.Args[1:], " ")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return report{}, fmt.Errorf("running %s: %w", program, err)
	}
	if ctx.Err() != nil {
		return report{}, fmt.Errorf("%s did not end in time: set a smaller checktest.Budget, or a larger go test -timeout\n%s", line, tail(stderr.String()))
	}
	r := report{dir: subject.dir}
	unreadable := json.Unmarshal(stdout.Bytes(), &r)
	switch code := cmd.ProcessState.ExitCode(); {
	case unreadable == nil && (code == exitClean || code == exitFound && len(r.Findings) > 0):
		return r, nil
	case unreadable == nil && len(r.Inconclusive) > 0:
		return r, fmt.Errorf("%s has no result:\n%s", line, r.reasons())
	default:
		return r, fmt.Errorf("%s: exit code %d\n%s", line, code, tail(stderr.String()))
	}
}

// tail returns the last lines of an output.
func tail(output string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
