// Package poll asks a question repeatedly until the answer is yes, and reports the
// reason for long waits.
package poll

import (
	"context"
	"fmt"
	"time"
)

// reportInterval is longer than any successful start takes, even on a busy machine.
const reportInterval = 10 * time.Second

// A Poll configures how to ask. The zero Poll asks without pauses and reports nothing.
type Poll struct {
	// Interval is the pause between two questions.
	Interval time.Duration
	// Waiting is called every 10 seconds with a description of what is being waited
	// for. It may be nil.
	Waiting func(what string)
}

// Until calls ask until the answer is yes. Errors of ask do not end the wait: the last error is
// reported to Waiting, and is part of the returned error if ctx ends first.
func (p Poll) Until(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	var last error
	reported := time.Now()
	for {
		var yes bool
		if yes, last = ask(ctx); yes && last == nil {
			return nil
		}
		if p.Waiting != nil && time.Since(reported) > reportInterval {
			reported = time.Now()
			p.Waiting(describe(what, last))
		}
		select {
		case <-time.After(p.Interval):
		case <-ctx.Done():
		}
		switch {
		case ctx.Err() == nil:
		case last != nil:
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), last)
		default:
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

func describe(what string, last error) string {
	if last == nil {
		return what
	}
	return fmt.Sprintf("%s (%v)", what, last)
}
