package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/devloop/session"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// replayer sends recorded reviews again to the manager of koboshi dev, and records the answers.
type replayer struct {
	log     *trace.Log
	session atomic.Pointer[session.Session] // nil until it has started
}

// send implements api.Replayer.
func (r *replayer) send(ctx context.Context, of int64, review *trace.Review) (trace.Entry, error) {
	s := r.session.Load()
	if s == nil {
		return trace.Entry{}, errors.New("koboshi dev is still starting; try again when the manager runs")
	}
	body, err := review.RawRequest.Plain()
	if err != nil {
		return trace.Entry{}, err
	}
	answered, err := s.Replay(ctx, review.Path, body)
	if err != nil {
		return trace.Entry{}, err
	}
	again := recorded(answered)
	again.Replays = of
	return r.log.Record(trace.Entry{Review: again}), nil
}

// newInspectReplay returns the only verb of koboshi inspect that does more than read.
func newInspectReplay(stdio Stdio) *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:   "replay SOURCE NUMBER",
		Short: "Send a recorded call of a webhook again",
		Long: `Send a recorded call of a webhook again, to the manager as it runs now, and compare
the answer with the recorded one. NUMBER is the number of the entry, which koboshi
inspect admissions shows.

SOURCE must be a session of koboshi dev that is running: the address that it
prints, or the folder of its project. If the manager does not run, the command
fails with the reason, and does not wait.

Nothing in the cluster changes: the API server applies the answer of a webhook only
to the request that it is handling, and this call is not part of one. The API server
itself may call a webhook several times for one request, so webhooks must tolerate this.`,
		Example: "  koboshi inspect admissions .\n  koboshi inspect replay . 1234",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("%s takes SOURCE and NUMBER, but got %d arguments; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.replay(cmd.Context(), args, stdio) },
	}
	f.common(cmd)
	return cmd
}

func (f *inspectFlags) replay(ctx context.Context, args []string, stdio Stdio) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	seq, err := entryNumber(args[1])
	if err != nil {
		return err
	}
	from, err := openSource(args[0])
	if err != nil {
		return usageError{err}
	}
	running, ok := from.(interface {
		Replay(ctx context.Context, seq int64) (*inspect.Admission, error)
	})
	if !ok {
		return usageError{fmt.Errorf("%s is a recording, which cannot call webhooks; name a project in which koboshi dev is running, or its address", args[0])}
	}
	answer, err := running.Replay(ctx, seq)
	if err != nil {
		return err
	}
	return f.show(answer, stdio.Out)
}

func (f *inspectFlags) checkOutput() error {
	if f.output != "text" && f.output != "json" {
		return usageError{fmt.Errorf("-o %s: unknown format; choose text or json", f.output)}
	}
	return nil
}

func entryNumber(argument string) (int64, error) {
	n, err := strconv.ParseInt(argument, 10, 64)
	if err != nil || n < 1 {
		return 0, usageError{fmt.Errorf("%q is not the number of an entry", argument)}
	}
	return n, nil
}
