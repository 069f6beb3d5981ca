package s3store

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// busyWait is the minimum time after which to ask again if all places are
	// taken.
	busyWait = 20 * time.Millisecond

	// maxWait limits the time after which to ask again, unless the store itself has
	// asked for a longer pause. If there are more waiting callers than turns in
	// that time, they share turns, and some are rejected again.
	maxWait = 30 * time.Second
)

// Limiter limits the requests to one store: their number per second, their
// number at the same time, and none at all during a pause that the store asked
// for. It is safe for concurrent use.
type Limiter struct {
	tokens *rate.Limiter
	places chan struct{}
	gap    time.Duration

	mu     sync.Mutex
	paused time.Time
	// turn is the time at which the last rejected caller may ask again. The next
	// caller gets a later time, so that callers do not all come back at the same
	// time.
	turn time.Time
}

// NewLimiter returns a Limiter that allows the given number of requests per second,
// in bursts of at most a quarter of a second's worth, and the given number at the
// same time. Both are at least one.
func NewLimiter(requestsPerSecond float64, concurrency int) *Limiter {
	// Written like this, the condition also changes NaN to 1.
	if !(requestsPerSecond >= 1) {
		requestsPerSecond = 1
	}
	requestsPerSecond = min(requestsPerSecond, 1e6)
	return &Limiter{
		tokens: rate.NewLimiter(rate.Limit(requestsPerSecond), max(1, int(requestsPerSecond/4))),
		places: make(chan struct{}, max(1, concurrency)),
		gap:    time.Duration(float64(time.Second) / requestsPerSecond),
	}
}

// DefaultLimiter returns a Limiter with the operator's default limits.
func DefaultLimiter() *Limiter { return NewLimiter(300, 16) }

// Concurrency returns the number of requests that may be in progress at the same
// time.
func (l *Limiter) Concurrency() int { return cap(l.places) }

// TryAcquire takes a place for one request, which the caller must release after the
// request, or returns the time after which to ask again. It never waits. Rejected
// callers get different times.
func (l *Limiter) TryAcquire() (release func(), wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.paused) {
		return nil, l.sendAway(now, l.paused)
	}
	select {
	case l.places <- struct{}{}:
	default:
		return nil, l.sendAway(now, now.Add(busyWait))
	}
	if !l.tokens.AllowN(now, 1) {
		<-l.places
		missing := 1 - l.tokens.TokensAt(now)
		return nil, l.sendAway(now, now.Add(time.Duration(missing*float64(l.gap))))
	}
	return l.releaser(), 0
}

// sendAway assigns the next turn that is not before earliest. The caller must hold l.mu.
func (l *Limiter) sendAway(now, earliest time.Time) time.Duration {
	l.turn = l.turn.Add(l.gap)
	if l.turn.Before(earliest) || l.turn.Sub(earliest) > maxWait {
		l.turn = earliest
	}
	return max(l.turn.Sub(now), time.Millisecond)
}

// Acquire waits until it can take a place for one request, or until the
// context ends. The caller must release the place after the request.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = l.releaser()
	for {
		if err := sleepUntil(ctx, l.PausedUntil()); err != nil {
			release()
			return nil, err
		}
		if err := l.tokens.Wait(ctx); err != nil {
			release()
			return nil, err
		}
		if !time.Now().Before(l.PausedUntil()) {
			return release, nil
		}
	}
}

func (l *Limiter) releaser() func() {
	return sync.OnceFunc(func() { <-l.places })
}

// sleepUntil returns an error if the context ends first. It does so
// immediately if the deadline of the context shows that in advance.
func sleepUntil(ctx context.Context, t time.Time) error {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(t) {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// charge counts an additional request that was made in the place of another
// one. Later requests wait for it.
func (l *Limiter) charge() { l.tokens.ReserveN(time.Now(), 1) }

// Pause makes all callers wait until the given time. It never shortens a
// pause, and no pause is longer than MaxRetryAfter.
func (l *Limiter) Pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit := time.Now().Add(MaxRetryAfter); until.After(limit) {
		until = limit
	}
	if until.After(l.paused) {
		l.paused = until
	}
}

// PausedUntil returns when the current pause ends, or when the last one ended.
func (l *Limiter) PausedUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}
