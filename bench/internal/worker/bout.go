package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/koboshi-dev/koboshi/bench/internal/family"
	"github.com/koboshi-dev/koboshi/bench/internal/measure"
)

// Argument is the first argument of a process that runs one bout. The bout
// follows as JSON.
const Argument = "run-bout"

// Main runs one bout and prints the values as JSON.
func Main(ctx context.Context, told string, stdin io.Reader, stdout io.Writer) error {
	var b measure.Bout
	if err := json.Unmarshal([]byte(told), &b); err != nil {
		return fmt.Errorf("reading the bout: %w", err)
	}
	orphaned := make(chan struct{})
	go endWith(stdin, b, orphaned)
	log.SetLogger(logr.Discard()) // otherwise controller-runtime complains after 30 s
	values, err := measure.Run(ctx, b)
	select {
	case <-orphaned:
		select {} // endWith ends the process when it has cleaned up
	default:
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(values)
}

// endWith ends everything when the other end of stdin is closed, which happens
// even if the process that holds it is killed.
func endWith(stdin io.Reader, b measure.Bout, orphaned chan<- struct{}) {
	_, _ = io.Copy(io.Discard, stdin)
	close(orphaned)
	_, _ = family.Family{Root: os.Getpid(), Mark: b.Mark}.End(grace)
	_ = os.RemoveAll(b.Work)
	os.Exit(1)
}
