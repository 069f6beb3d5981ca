package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// replayWithin limits the wait for an answer, like the longest timeout of a webhook.
const replayWithin = 30 * time.Second

// errNoProcess is the answer to a replay while there is no process.
var errNoProcess = errors.New("no manager serves webhooks now; the output of koboshi dev shows the reason; try again when one runs")

// Replay sends a review again to the process that answers reviews now. Unlike a review of the
// API server, it does not wait for a process: if there is none, Replay fails with the reason.
// The observer is not called.
func (l *Listener) Replay(ctx context.Context, path string, body []byte) (Review, error) {
	ctx, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL(path), bytes.NewReader(body))
	if err != nil {
		return Review{}, fmt.Errorf("sending the call of a webhook again: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	to, err := l.current()
	if err != nil {
		return Review{}, err
	}
	began := time.Now()
	answered, err := l.send(r, to.address, body)
	if err != nil {
		err = l.unanswered(ctx, to, err)
	}
	review := newReview(r, body, began, 0, answered, err)
	review.Took = time.Since(began)
	return review, nil
}

// current returns the process that answers reviews. A replay is not counted as forwarded, so a
// restart does not wait for its answer.
func (l *Listener) current() (*target, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.target != nil:
		return l.target, nil
	case l.refusal != nil:
		return nil, l.refusal
	}
	return nil, errNoProcess
}

// unanswered explains why a replay has no answer.
func (l *Listener) unanswered(ctx context.Context, to *target, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the manager did not answer within %s", replayWithin)
	case ctx.Err() != nil:
		return err
	case l.lives(ctx, to):
		return errDropped
	}
	return errors.New("the manager ended before it answered")
}
