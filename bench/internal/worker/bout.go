package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/koboshi-dev/koboshi/bench/internal/family"
	"github.com/koboshi-dev/koboshi/bench/internal/measure"
)

// Argument is the first argument of a process that runs one bout; the second argument is
// the bout as JSON.
const Argument = "run-bout"

// orphan names the variable that is set if the parent of a bout ended before the bout.
// If the variable is set, the process only cleans up.
const orphan = "KOBOSHI_BENCH_ORPHAN"

// Main runs one bout and prints the values as JSON.
func Main(ctx context.Context, told string, stdin io.Reader, stdout io.Writer) error {
	var b measure.Bout
	if err := json.Unmarshal([]byte(told), &b); err != nil {
		return fmt.Errorf("reading the bout: %w", err)
	}
	if os.Getenv(orphan) != "" {
		return cleanUp(b)
	}
	// If the parent has ended, a write to the standard output raises SIGPIPE, which must
	// not end this process before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	orphaned := make(chan struct{})
	go watchParent(stdin, orphaned)
	log.SetLogger(logr.Discard()) // otherwise controller-runtime prints a warning after 30 s
	values, err := measure.Run(ctx, b)
	select {
	case <-orphaned:
		select {} // until watchParent has replaced this process
	default:
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(values)
}

// watchParent waits until the other end of stdin is closed, which happens even if the
// process that holds it is killed. Once stdin is closed, watchParent replaces the bout with
// a process that only cleans up, because the bout itself would keep starting the processes
// that cleanUp ends.
func watchParent(stdin io.Reader, orphaned chan<- struct{}) {
	_, _ = io.Copy(io.Discard, stdin)
	close(orphaned)
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, append(os.Environ(), orphan+"=1"))
	}
	panic(fmt.Sprintf("cleaning up after the benchmark: %v", err))
}

// cleanUp ends every process of the run except this one, and removes the folder of the
// run.
func cleanUp(b measure.Bout) error {
	_, err := family.Family{Root: os.Getpid(), Mark: b.Mark}.End(grace)
	return errors.Join(err, os.RemoveAll(b.Work))
}
