package s3store

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// busyWait is the least time after which to ask again when all places are
	// taken.
	busyWait = 20 * time.Millisecond

	// maxWait limits the time after which to ask again, unless the store itself has
	// asked for a longer pause. When more callers wait than have a turn in that
	// time, they share turns, and some are rejected again.
	maxWait = 30 * time.Second
)

// Limiter bounds the requests to one store: how many a second, how many at the
// same time, and none at all during a pause that the store asked for. It is
// safe for concurrent use.
type Limiter struct {
	tokens *rate.Limiter
	places chan struct{}
	gap    time.Duration

	mu     sync.Mutex
	paused time.Time
	// turn is the time at which the last rejected caller may ask again. The next one
	// gets a later time, so that they do not come back all at once.
	turn time.Time
}

// NewLimiter allows that many requests a second, in bursts of at most a quarter of a
// second's worth, and that many at the same time. Both are at least one.
func NewLimiter(requestsPerSecond float64, concurrency int) *Limiter {
	// In this form NaN becomes 1 as well.
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

// DefaultLimiter has the operator's default limits.
func DefaultLimiter() *Limiter { return NewLimiter(300, 16) }

// Concurrency returns the number of requests that may be in progress at the same
// time.
func (l *Limiter) Concurrency() int { return cap(l.places) }

// TryAcquire takes a place for one request, to be released after it, or returns the
// time after which to ask again; it never waits. Rejected callers get different times.
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

// sendAway gives out the next turn that is not before earliest. It needs l.mu.
func (l *Limiter) sendAway(now, earliest time.Time) time.Duration {
	l.turn = l.turn.Add(l.gap)
	if l.turn.Before(earliest) || l.turn.Sub(earliest) > maxWait {
		l.turn = earliest
	}
	return max(l.turn.Sub(now), time.Millisecond)
}

// Acquire takes a place for one request, to be released after it, and waits
// until there is one or the context ends.
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

// sleepUntil returns an error when the context ends first, at once where that
// can be foreseen.
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

// charge records a request that was made in the place of another. Those that
// come after wait for it.
func (l *Limiter) charge() { l.tokens.ReserveN(time.Now(), 1) }

// Pause keeps all callers away until then. It never shortens a pause, and none
// is longer than MaxRetryAfter.
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

// PausedUntil is when the present pause ends, or the last one ended.
func (l *Limiter) PausedUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}
